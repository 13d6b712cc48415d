/**
 * The escape suite in processes: every kind of attack as runs over HTTP against one server, which must not
 * notice. It measures times, so it runs alone. That the attacks are attacks: `escape_bare_test.ts`.
 */
import { assert, assertEquals } from "../assert.ts";
import {
  assertNothingLeft,
  assertUntouched,
  attackAll,
  everyKind,
  kindOf,
  openFiles,
} from "./escape_attacks.ts";
import { heapBytes, startEscapeServer } from "./escape_server.ts";
import { residentBytes } from "./processes.ts";

const AT_ONCE = 8;
const MEGABYTE = 1024 * 1024;
/** Limit of the p99 of `/healthz` answers. */
const MAX_STALL_MS = 50;
/** Limits of the growth of the server's heap, which is what it keeps, and of its memory. */
const MAX_KEPT_BYTES = 48 * MEGABYTE;
const MAX_GROWN_BYTES = 192 * MEGABYTE;

Deno.test("hostile modules: no kind gets anything it was not granted in a process, and the server does not notice", async (t) => {
  await using suite = await startEscapeServer();
  const { server } = suite;
  const calm = kindOf("look");
  assertEquals(await attackAll(suite, [calm], 1), []); // what starts lazily has started
  const descriptors = await openFiles(server.pid);
  const resident = await residentBytes(server.pid) ?? 0;
  const heap = await heapBytes(suite);

  const calmly = suite.probe(8);

  await t.step("every kind", async () => {
    assertEquals(await attackAll(suite, everyKind(), AT_ONCE), []);
  });

  await t.step("eight busy loops at once are ended, each by its processor time", async () => {
    const loops = Array.from({ length: AT_ONCE }, () => kindOf("loop_sync"));
    assertEquals(await attackAll(suite, loops, AT_ONCE), []);
  });

  await t.step("the server answered all the time", async () => {
    const health = await calmly();
    assertEquals(health.server.failed, 0);
    assert(health.server.count > 100);
    // beside other tests, and with two processors for eight busy guests, everybody waits: that is not the
    // server's doing, and an idle server with the same requests measures the noise of the machine
    const own = health.server.own_p99 - health.idle.own_p99;
    assert(Math.min(health.server.p99, own) < MAX_STALL_MS, JSON.stringify(health));
  });

  await t.step("memory is what it was, and every line of the log is one", async () => {
    for (let rounds = 0;; rounds++) {
      const kept = await heapBytes(suite) - heap;
      const grown = (await residentBytes(server.pid) ?? 0) - resident;
      if (kept < MAX_KEPT_BYTES && grown < MAX_GROWN_BYTES) break;
      assert(rounds < 100, `the heap grew by ${kept / MEGABYTE} MB, the memory by ${grown / MEGABYTE} MB`);
      // garbage is collected when enough memory was asked for: some hundred calm runs do so
      assertEquals(await attackAll(suite, Array.from({ length: 2 * AT_ONCE }, () => calm), AT_ONCE), []);
    }
    const log = server.stderr.text;
    for (const line of log.split("\n")) if (line !== "") JSON.parse(line);
    // deno-lint-ignore no-control-regex -- that is what must not be there
    assert(!/[\u0000-\u0009\u000b-\u001f]/.test(log), "a control character is in the log");
  });

  await t.step(
    "a guest finds nothing of the one before it",
    () => assertNothingLeft(suite),
  );
  await assertUntouched(t, suite, descriptors);
});
