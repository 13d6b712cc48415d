/**
 * Installs the SDK at `globalThis[Symbol.for("preamp.sdk")]`, where bundles find its parts by specifier. No
 * bundle contains a copy of the SDK; unused parts are not loaded.
 */

const PARTS: Readonly<Record<string, () => Promise<object>>> = {
  "preamp": () => import("./mod.ts"),
  "preamp/base": () => import("./base.ts"),
  "preamp/loop": () => import("./loop.ts"),
  "preamp/context": () => import("./context.ts"),
  "preamp/provider": () => import("./provider.ts"),
  "preamp/testing": () => import("./testing.ts"),
  "zod": () => import("zod"),
};

const KEY = Symbol.for("preamp.sdk");

/**
 * Installs parts of the SDK for bundles. Called before a bundle is linked.
 *
 * @throws {TypeError} when a name is not a part of the SDK.
 */
export async function installSdk(uses: readonly string[]): Promise<void> {
  const holder = globalThis as { [KEY]?: Record<string, object> };
  const sdk = holder[KEY] ??= Object.create(null) as Record<string, object>;
  for (const name of uses) {
    if (!Object.hasOwn(PARTS, name)) {
      throw new TypeError(`Cannot install the SDK: it has no part ${JSON.stringify(name)}`);
    }
    sdk[name] ??= await PARTS[name]!();
  }
}
