import { GuestSemaphore } from "../../src/sandbox/sandbox.ts";
import { assertEquals, assertMatch, assertRejects } from "../assert.ts";

async function overload(taken: Promise<unknown>): Promise<string> {
  const error = await assertRejects(() => taken);
  assertEquals((error as { code?: string }).code, "overloaded");
  return error.message;
}

Deno.test("GuestSemaphore passes a released slot to the longest waiting module, once", async () => {
  const slots = new GuestSemaphore(2);
  const session = slots.session(10);
  const held = [await session.acquire("a"), await session.acquire("b")];
  const order: string[] = [];
  const waiting = ["c", "d", "e"].map((name) =>
    slots.session(10).acquire(name).then((release) => {
      order.push(name);
      return release;
    })
  );
  assertEquals([slots.used, order], [2, []]);
  held[0]!();
  held[0]!();
  held[0]!();
  const third = await waiting[0]!;
  await Promise.resolve();
  assertEquals([slots.used, order], [2, ["c"]]);
  held[1]!();
  const fourth = await waiting[1]!;
  third();
  const fifth = await waiting[2]!;
  assertEquals(order, ["c", "d", "e"]);
  for (const release of [fourth, fifth]) release();
  assertEquals(slots.used, 0);
});

Deno.test("GuestSemaphore refuses a module after its wait, and keeps the slots of those behind", async () => {
  const slots = new GuestSemaphore(1, 5);
  const release = await slots.session(10).acquire("a");
  const late = slots.session(10);
  assertMatch(
    await overload(late.acquire("b")),
    /module "b": all 1 guests of this server .*isolation\.max_guests\)/,
  );
  const patient = late.acquire("c");
  release();
  const held = await patient;
  assertEquals(slots.used, 1);
  held();
  assertEquals(slots.used, 0);
});

Deno.test("GuestSemaphore refuses a session more than its maximum at once; refused modules do not count", async () => {
  const slots = new GuestSemaphore(2, 5);
  const session = slots.session(2);
  const [first] = [await session.acquire("a"), await session.acquire("b")];
  assertMatch(await overload(session.acquire("c")), /its session has 2.*isolation\.max_guests_per_session/);
  first();
  const again = await session.acquire("c");
  again();
  const third = await slots.session(2).acquire("d");
  await overload(session.acquire("e"));
  third();
  const fifth = await session.acquire("f");
  fifth();
  assertEquals(slots.used, 1);
});
