/** Finds out whether a host starts this program, and may stop it between requests, as Deno Deploy does. */

/**
 * Variables of a host that makes `deno run` serve, and of Deno Deploy. Applications may not set variables of
 * these names there.
 */
const HOST_VARIABLES = ["DENO_AUTO_SERVE", "DENO_DEPLOY"];

/**
 * Returns whether the host chose the address, and may stop the process between requests, as Deno Deploy does.
 */
export function isHosted(env: (name: string) => string | undefined): boolean {
  return HOST_VARIABLES.some((name) => (env(name) ?? "") !== "");
}
