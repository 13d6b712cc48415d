/**
 * The escape suite in workers: every kind of attack that this tier claims to stop. The tier does not limit
 * memory, stalls and raw lines on stderr (src/docs/security.md#tiers), so nothing is measured.
 */
import { assertEquals } from "../assert.ts";
import {
  assertNothingLeft,
  assertUntouched,
  attackAll,
  kindOf,
  openFiles,
  rowsOf,
} from "./escape_attacks.ts";
import { startEscapeServer } from "./escape_server.ts";

/** Other tests run beside these. */
const AT_ONCE = 4;

Deno.test("hostile modules: no kind gets anything it was not granted in a worker", async (t) => {
  await using suite = await startEscapeServer();
  assertEquals(await attackAll(suite, [[kindOf("look"), "worker"]], 1), []); // what starts lazily has started
  const descriptors = await openFiles(suite.server.pid);

  await t.step("tier worker: every kind", async () => {
    const probe = suite.probe(50);
    assertEquals(await attackAll(suite, rowsOf("worker"), AT_ONCE), []);
    assertEquals((await probe()).server.failed, 0);
  });

  await t.step(
    "tier worker: a guest finds nothing of the one before it",
    () => assertNothingLeft(suite, "worker"),
  );
  await assertUntouched(t, suite, descriptors);
});
