/** The host's end of the wire against a guest that says anything at all: it ends the guest, and survives. */
import fc from "fast-check";
import type { CallOptions } from "../../../src/sandbox/guest/guest_connection.ts";
import { assert, assertEquals, assertMatch, assertRejects } from "../../assert.ts";
import { type Ask, codeOf, failure, scripted } from "./scripted_guest.ts";

Deno.test("GuestConnection ends a guest that sends what is no frame, or a frame for no call", async () => {
  const wrong: unknown[] = [
    ...["", "{", "null", "5", "[]", '"x"', '{"t":"result"', "\u0000", "\ud800"],
    {},
    { t: "nothing" },
    { t: "__proto__" },
    { t: "constructor" },
    { t: 5 },
    { t: "ready", exports: { data: {}, methods: [] } },
    { t: "failed", error: {} },
    { t: "result", call: "1.x", value: 1 },
    { t: "result", call: "__proto__" },
    { t: "result", call: null },
    { t: "note", call: "1.x", value: 1 },
    { t: "ask", call: "1.x", id: 1, target: "hooks", method: "emit", args: [] },
    { t: "abandon", call: "1.x", id: 1 },
  ];
  for (const frame of wrong) {
    const { channel, call, violations } = scripted();
    const { answer } = await call();
    channel.say(frame);
    assertEquals([await failure(answer), channel.death?.cause, violations.length], [
      ...["tool_crashed", "violation", 1],
    ], JSON.stringify(frame));
  }
});

Deno.test("GuestConnection ends a guest that says more of a call that is over", async () => {
  for (
    const later of [{ t: "result" }, { t: "note", value: 1 }, {
      t: "ask",
      id: 1,
      target: "clock",
      method: "after",
      args: [],
    }]
  ) {
    const { channel, call, violations } = scripted();
    const { answer, id } = await call();
    channel.say({ t: "result", call: id, value: "first" });
    assertEquals(await answer, "first");
    channel.say({ ...later, call: id });
    assertMatch(violations[0]!, /the call of a frame is not open/);
  }
});

Deno.test("GuestConnection ends a guest whose request is invalid, repeated or one too many", async () => {
  const good = { id: 1, target: "hooks", method: "emit", args: [] };
  const never: Ask = () => new Promise(() => {});
  const wrong: object[][] = [
    ...["one", 1.5, null, -Infinity, undefined].map((id) => [{ ...good, id }]),
    ...[5, null, undefined, {}].map((target) => [{ ...good, target }]),
    ...[5, null, undefined, []].map((method) => [{ ...good, method }]),
    ...["x", null, undefined, {}].map((args) => [{ ...good, args }]),
    [good, good],
    Array.from({ length: 257 }, (_, n) => ({ ...good, id: n })),
  ];
  for (const questions of wrong) {
    const { channel, call, violations } = scripted(never);
    const { answer, id } = await call();
    for (const question of questions) channel.say({ t: "ask", call: id, ...question });
    assertEquals(await failure(answer), "tool_crashed");
    assertEquals(violations.length, 1, JSON.stringify(questions.at(-1)));
  }
});

Deno.test("Guest counts questions of all calls together, and no longer when they are answered", async () => {
  const { channel, call, violations } = scripted((_, method) => method === "now" ? 1 : new Promise(() => {}));
  const [one, two] = [await call(), await call()];
  const question = { t: "ask", target: "x", args: [] };
  for (let id = 0; id < 2_000; id++) {
    channel.say({ ...question, call: one.id, id, method: "now" });
    await channel.next("reply", id);
  }
  for (let id = 0; id < 256; id++) {
    channel.say({ ...question, call: id % 2 ? one.id : two.id, id: 5_000 + id, method: "never" });
  }
  assertEquals(violations, []);
  channel.say({ ...question, call: two.id, id: 9_000, method: "never" });
  assertEquals(violations.length, 1);
});

Deno.test("GuestConnection ends a guest whose notifications are invalid", async () => {
  const { host } = scripted();
  const refusing = {
    ...host,
    apply: () => {
      throw new TypeError("an unknown effect");
    },
  };
  const cases: [unknown, Partial<CallOptions>][] = [
    ["none", {}],
    [{ length: 1 }, {}],
    [null, {}],
    [Array.from({ length: 2_001 }, () => ({ e: "cancel" })), {}],
    [[{ e: "?" }], { host: refusing }],
  ];
  for (const [effects, options] of cases) {
    for (const frame of [{ t: "result" }, { t: "ask", id: 1, target: "x", method: "y", args: [] }]) {
      const { channel, call, violations } = scripted();
      const { answer, id } = await call({ max_bytes: 100_000, ...options });
      channel.say({ ...frame, call: id, effects });
      assertEquals(await failure(answer), "tool_crashed");
      assertMatch(violations[0]!, /invalid notifications/);
    }
  }
});

Deno.test("Guest reads an answer with all its pieces up to its cap, then ends the guest", async () => {
  const { channel, call } = scripted();
  const pieces: unknown[] = [];
  const { answer, id } = await call({ max_bytes: 400, onNote: (piece) => pieces.push(piece) });
  const note = { t: "note", call: id, value: "x".repeat(60) };
  for (let n = 0; n < 3; n++) channel.say(note);
  assertEquals(pieces.length, 3);
  channel.say({ t: "result", call: id, value: "x".repeat(200) });
  assertEquals([await failure(answer), channel.death?.cause], ["tool_output_exceeded", "output"]);
  const second = scripted();
  const large = await second.call({ max_bytes: 400 });
  second.channel.say({ t: "result", call: large.id, value: "x".repeat(300) });
  assertEquals((await large.answer as string).length, 300);
});

Deno.test("Guest lets a guest say no more at once than its open calls allow", async () => {
  const { channel, call, guest } = scripted();
  const idle = channel.limit;
  const small = await call({ max_bytes: 1_000 });
  const with_small = channel.limit;
  const large = await call({ max_bytes: 1_000_000 });
  assert(idle <= 64 * 1024 && with_small > 1_000 && channel.limit > 1_000_000);
  channel.say({ t: "result", call: large.id });
  await large.answer;
  assertEquals(channel.limit, with_small);
  channel.say({ t: "result", call: small.id });
  await small.answer;
  assertEquals(channel.limit, idle);
  await guest.kill({ cause: "ended", detail: "done" });
});

Deno.test("Guest takes the console as lines of a level, until it is too much", async () => {
  const { channel, log, guest } = scripted();
  channel.say({ t: "log", level: "error", text: "a" });
  channel.say({ t: "log", level: "__proto__", text: { toString: 5 } });
  channel.say({ t: "log" });
  assertEquals(log.map((line) => line.split(": ")[0]), ["error", "info", "info"]);
  const line = { t: "log", level: "info", text: "x".repeat(60_000) };
  for (let n = 0; n < 80 && channel.death === null; n++) channel.say(line);
  await channel.exited;
  assertEquals([channel.death?.cause, codeOf(await assertRejects(() => guest.start("", [], 1_000)))], [
    "output",
    "tool_output_exceeded",
  ]);
});

Deno.test("Guest is ended when it gives up what it never asked for, or gives up more than it asked for", async () => {
  for (const ids of [[8], [7, 7]]) {
    const { channel, call } = scripted(() => new Promise(() => {}));
    const { answer, id } = await call();
    channel.say({ t: "ask", call: id, id: 7, target: "x", method: "y", args: [] });
    for (const one of ids) channel.say({ t: "abandon", call: id, id: one, reason: {} });
    await assertRejects(() => answer);
    assertEquals(channel.death?.cause, "violation");
  }
});

/** Any JSON value, with the keys that a careless reader would trip over. */
const anything = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    fc.constantFrom<unknown>(null, true, 0, -1, 1.5, 1e308, "", "__proto__", "constructor", "hooks", "x"),
    fc.array(tie("value"), { maxLength: 4 }),
    fc.dictionary(
      fc.oneof(
        fc.constantFrom(
          "__proto__",
          "constructor",
          "prototype",
          "then",
          "toString",
          "data",
          "methods",
          "fields",
          "e",
        ),
        fc.string({ maxLength: 6 }),
      ),
      tie("value"),
      { maxKeys: 5 },
    ),
  ),
})).value;

const frames = fc.record({
  t: fc.constantFrom("result", "ask", "abandon", "note", "log", "ready", "failed", "other"),
  call: fc.constantFrom<unknown>("OPEN", "OPEN", "OPEN", "1.x", null),
  id: fc.oneof(fc.integer({ min: 0, max: 3 }), anything),
  target: fc.oneof(fc.constantFrom("hooks", "tool/x", "capability", "__proto__"), anything),
  method: fc.oneof(fc.constantFrom("emit", "constructor", ""), anything),
  args: fc.oneof(fc.array(anything, { maxLength: 3 }), anything),
  value: anything,
  error: fc.oneof(fc.constant(undefined), anything),
  reason: anything,
  effects: fc.oneof(fc.constant(undefined), fc.array(anything, { maxLength: 3 })),
  exports: anything,
  level: anything,
  text: anything,
}, { requiredKeys: ["t"] });

Deno.test("Guest survives any frames, and no prototype is changed by them", async () => {
  const before = [Object.prototype, Array.prototype, Function.prototype, Error.prototype].map((one) =>
    Reflect.ownKeys(one).length
  );
  await fc.assert(
    fc.asyncProperty(fc.array(frames, { minLength: 1, maxLength: 8 }), async (said) => {
      const { channel, guest, call } = scripted((_, __, args) => args);
      const { answer, id } = await call({ max_bytes: 100_000 });
      for (const frame of said) {
        const text = JSON.stringify(frame.call === "OPEN" ? { ...frame, call: id } : frame);
        // as a stranger would write it: an own key, where a literal would set a prototype
        channel.say(text.replaceAll('"x":', '"__proto__":'));
      }
      await channel.kill({ cause: "ended", detail: "enough" });
      await Promise.allSettled([answer]);
      await guest.exited;
    }),
    { numRuns: 300 },
  );
  const after = [Object.prototype, Array.prototype, Function.prototype, Error.prototype].map((one) =>
    Reflect.ownKeys(one).length
  );
  assertEquals(after, before);
  assertEquals(Object.keys({}), []);
});
