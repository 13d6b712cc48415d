/** Registers tests whose result depends on the permissions of their process. */

/** Registers a test that has the permissions of `deno task unit` and no more, also in a run with `-A`. */
export function testWithUnitPermissions(name: string, fn: () => Promise<void>): void {
  const permissions = { net: ["127.0.0.1"], read: true, write: true, env: true, run: true };
  Deno.test({ name, permissions, fn });
}
