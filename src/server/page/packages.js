// @ts-self-types="./packages.d.ts"
/**
 * Imports the packages of the page. JavaScript, because preact's types would bring those of browsers into the
 * whole program.
 */
export const PACKAGES = {
  "preact": () => import("preact"),
  "preact/hooks": () => import("preact/hooks"),
  "preact/jsx-runtime": () => import("preact/jsx-runtime"),
  "@preact/signals": () => import("@preact/signals"),
  "@preact/signals-core": () => import("@preact/signals-core"),
  "marked": () => import("marked"),
};
