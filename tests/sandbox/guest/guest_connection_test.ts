/** The host's end of the wire against a guest that says anything at all. */
import fc from "fast-check";
import { PreampError } from "../../../src/sdk/errors.ts";
import { type CallOptions, GuestConnection } from "../../../src/sandbox/guest/guest_connection.ts";
import type { GuestRequestOptions } from "../../../src/sandbox/guest/open_requests.ts";
import { NOTE_CREDIT, type Notification } from "../../../src/sandbox/protocol.ts";
import { assert, assertEquals, assertMatch, assertRejects, assertStrictEquals } from "../../assert.ts";
import { FakeChannel } from "./fake_channel.ts";

type Ask = (
  target: string,
  method: string,
  args: readonly unknown[],
  options: GuestRequestOptions,
) => unknown;

/** A guest over a wire that the test holds. */
function scripted(ask: Ask = () => undefined) {
  const channel = new FakeChannel();
  const violations: string[] = [];
  const log: string[] = [];
  const effects: Notification[] = [];
  const guest = new GuestConnection(channel, {
    name: "m",
    onLog: (level, text) => log.push(`${level}: ${text}`),
    onViolation: (message) => violations.push(message),
  });
  const host: CallOptions["host"] = {
    view: () => undefined,
    apply: (given) => void effects.push(...given),
    request: (...asked) => Promise.try(ask, ...asked),
  };
  const call = async (options: Partial<CallOptions> = {}) => {
    const answer = guest.call(1, "run", [], { host, max_bytes: 1_000, ...options });
    answer.catch(() => {}); // each test says what it expects of it
    const opened = await channel.next("call", channel.of("call").length - 1);
    return { answer, id: opened.call };
  };
  return { channel, guest, host, call, violations, log, effects };
}

const codeOf = (error: unknown) => (error as { code?: unknown }).code;

/** Resolves to the code that a call of a dead guest fails with. */
async function failure(answer: Promise<unknown>): Promise<unknown> {
  return codeOf(await assertRejects(() => answer));
}

Deno.test("GuestConnection.call() resolves to the answer, each call its own", async () => {
  const { channel, call } = scripted();
  const [one, two] = [await call(), await call()];
  channel.say({ t: "result", call: two.id, value: { n: 2 } });
  channel.say({ t: "result", call: one.id });
  assertEquals(await two.answer, { n: 2 });
  assertEquals(await one.answer, undefined);
  assert(one.id !== two.id);
});

Deno.test("GuestConnection names the module once in the error of a guest that has exited", async () => {
  const { channel, guest, call } = scripted();
  const { answer } = await call();
  await channel.kill({ cause: "memory", detail: "it exceeded its memory limit" });
  const message = 'Cannot use module "m": it exceeded its memory limit';
  for (const failed of [answer, call().then(({ answer }) => answer), guest.start("", [], 1_000)]) {
    const error = await assertRejects(() => failed);
    assertEquals([codeOf(error), error.message], ["tool_memory_exceeded", message]);
  }
});

Deno.test("GuestConnection.call() uses call ids that cannot be guessed", async () => {
  const { call } = scripted();
  const nonces = new Set<string>();
  for (let n = 0; n < 50; n++) nonces.add((await call()).id.split(".")[1]!);
  assertEquals(nonces.size, 50);
});

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

Deno.test("Guest does effects before it answers and before the call resolves", async () => {
  const order: string[] = [];
  const { channel, call, host } = scripted();
  const { answer, id } = await call({
    host: {
      ...host,
      apply: ([effect]) => void order.push(effect!.e),
      request: () => Promise.resolve(order.push("asked")),
    },
  });
  channel.say({
    t: "ask",
    call: id,
    id: 1,
    target: "x",
    method: "y",
    args: [],
    effects: [{ e: "reset_turn" }],
  });
  await channel.next("reply");
  channel.say({ t: "result", call: id, effects: [{ e: "cancel" }] });
  await answer.then(() => order.push("resolved"));
  assertEquals(order, ["reset_turn", "asked", "cancel", "resolved"]);
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

Deno.test("Guest gives credit for what it took, half of it at a time", async () => {
  const { channel, call } = scripted();
  const { answer, id } = await call({ max_bytes: 1_000_000 });
  for (let n = 1; n <= NOTE_CREDIT * 4; n++) {
    channel.say(n % 3 ? { t: "note", call: id, value: n } : { t: "log", level: "info", text: "x" });
    assertEquals(channel.of("credit").reduce((sum, { n }) => sum + n, 0), n - n % (NOTE_CREDIT / 2));
  }
  channel.say({ t: "result", call: id });
  await answer;
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

Deno.test("GuestConnection rethrows the host's own error, and removes codes of the host that a guest made up", async () => {
  const limit = new PreampError("limit_reached", "no more", { facts: { limit: "max_tool_calls" } });
  const { channel, call } = scripted(() => Promise.reject(limit));
  const { answer, id } = await call();
  channel.say({ t: "ask", call: id, id: 1, target: "x", method: "y", args: [] });
  const { error } = await channel.next("reply");
  assertEquals([error?.fields?.code, error?.stack, error?.cause], ["limit_reached", undefined, undefined]);
  channel.say({ t: "result", call: id, error: { name: "X", message: "mine", host: error!.host } });
  assertStrictEquals(await assertRejects(() => answer), limit);
  for (const code of ["limit_reached", "denied", "cancelled", "interrupted"]) {
    const made = await call();
    channel.say({
      t: "result",
      call: made.id,
      error: { name: "E", message: "m", fields: { code, kept: 1 }, host: 99 },
    });
    const thrown = await assertRejects(() => made.answer) as Error & { kept?: number };
    assertEquals([codeOf(thrown), thrown.kept, thrown.message], [undefined, 1, "m"]);
  }
  const own = await call();
  channel.say({ t: "result", call: own.id, error: { name: "E", message: "m", fields: { code: "E_OWN" } } });
  assertEquals(await failure(own.answer), "E_OWN");
});

Deno.test("Guest reads anything as an error", async () => {
  const { channel, call } = scripted();
  const odd: unknown[] = [
    null,
    5,
    "text",
    [],
    {},
    { name: 5, message: {}, stack: [], fields: 7, cause: "x", host: "1" },
    { name: "__proto__", fields: { message: "another", name: "N", stack: "s", cause: 1, constructor: 1 } },
    { cause: { cause: { cause: { cause: { cause: {} } } } } },
  ];
  for (const error of odd) {
    const { answer, id } = await call();
    channel.say({ t: "result", call: id, error });
    assertEquals(typeof (await assertRejects(() => answer)).message, "string");
  }
});

Deno.test("GuestConnection ends every call of a guest that dies, and what they asked for", async () => {
  const signals: AbortSignal[] = [];
  const { channel, call, guest, host } = scripted((_, __, ___, { signal }) => {
    signals.push(signal);
    return new Promise(() => {});
  });
  const calls = [await call(), await call()];
  for (const { id } of calls) channel.say({ t: "ask", call: id, id: 1, target: "x", method: "y", args: [] });
  await channel.kill({ cause: "memory", detail: "too much" });
  for (const { answer } of calls) assertEquals(await failure(answer), "tool_memory_exceeded");
  assertEquals(signals.map(({ aborted }) => aborted), [true, true]);
  const sent = channel.sent.length;
  channel.say({ t: "result", call: calls[0]!.id });
  guest.sendCancellation("graceful");
  assertEquals(await failure(guest.call(1, "run", [], { host, max_bytes: 1 })), "tool_memory_exceeded");
  assertEquals([channel.sent.length, guest.exit?.cause], [sent, "memory"]);
});

Deno.test("GuestConnection.call() ends a guest that does not answer in time", async () => {
  const { call, channel } = scripted();
  const { answer } = await call({ deadline_ms: 5 });
  assertEquals([await failure(answer), channel.death?.cause], ["tool_timeout", "timeout"]);
});

Deno.test("GuestConnection.call() forwards an abort, and ends a guest that ignores it", async () => {
  const { call, channel } = scripted();
  const controller = new AbortController();
  const obeyed = await call({ signal: controller.signal, grace_ms: 60_000 });
  const ignored = await call({ signal: controller.signal, grace_ms: 5 });
  controller.abort(new PreampError("tool_timeout", "too late"));
  assertEquals(channel.of("abort").map(({ call, reason }) => [call, reason.message]), [
    [obeyed.id, "too late"],
    [ignored.id, "too late"],
  ]);
  channel.say({ t: "result", call: obeyed.id, value: "stopped" });
  assertEquals(await obeyed.answer, "stopped");
  assertEquals(await failure(ignored.answer), "tool_timeout");
  const before = channel.sent.length;
  const late = scripted();
  await assertRejects(() =>
    late.guest.call(1, "x", [], { host: late.host, max_bytes: 1, signal: controller.signal })
  );
  assertEquals([late.channel.sent.length, channel.sent.length], [0, before]);
});

Deno.test("GuestConnection.call() lets the guest's watchdog rest when nothing is asked of it any more", async () => {
  const { call, channel } = scripted();
  const [one, two] = [await call({ deadline_ms: 60_000 }), await call({ deadline_ms: 60_000 })];
  channel.say({ t: "result", call: one.id });
  await one.answer;
  assert(channel.watched.at(-1)! >= 60_000);
  channel.say({ t: "result", call: two.id });
  await two.answer;
  assertEquals(channel.watched.at(-1), 0);
});

Deno.test("Guest lets a guest give up what it asked for", async () => {
  const reasons: unknown[] = [];
  const { channel, call } = scripted((_, __, ___, { signal }) =>
    new Promise((_, reject) =>
      signal.addEventListener("abort", () => {
        reasons.push((signal.reason as Error).message);
        reject(signal.reason);
      })
    )
  );
  const { answer, id } = await call();
  channel.say({ t: "ask", call: id, id: 7, target: "x", method: "y", args: [] });
  channel.say({ t: "abandon", call: id, id: 7, reason: { message: "changed my mind" } });
  assertEquals((await channel.next("reply")).id, 7);
  channel.say({ t: "ask", call: id, id: 9, target: "x", method: "y", args: [] });
  channel.say({ t: "result", call: id, value: 1 });
  assertEquals([await answer, reasons], [1, ["changed my mind", "the call is over"]]);
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

Deno.test("Guest answers with plain data whatever a module of ours gives it", async () => {
  const cycle: { self?: unknown; big: bigint } = { big: 1n };
  cycle.self = cycle;
  const { channel, call } = scripted((_, method, __, { onPiece }) => {
    if (method === "piece") onPiece(cycle);
    return cycle;
  });
  const { id } = await call();
  for (const [index, method] of ["value", "piece"].entries()) {
    channel.say({ t: "ask", call: id, id: index, target: "x", method, args: [] });
    const { value } = await channel.next("reply", index);
    assertEquals(value, { big: "1", self: "[Circular]" });
  }
  assertEquals(channel.of("piece").map(({ value }) => value), [{ big: "1", self: "[Circular]" }]);
  await channel.kill({ cause: "ended", detail: "done" });
});

Deno.test("GuestConnection.start() resolves to what the module exports, once", async () => {
  const { channel, guest, violations } = scripted();
  const started = guest.start("code", ["preamp"], 60_000);
  assertEquals(channel.of("start"), [{ t: "start", code: "code", uses: ["preamp"] }]);
  channel.say({ t: "ready", exports: { data: { a: 1 }, methods: ["mount", 5] } });
  assertEquals(await started, { data: { a: 1 }, methods: ["mount"] });
  assertEquals(channel.watched, [60_000, 0]);
  channel.say({ t: "ready", exports: { data: {}, methods: [] } });
  assertMatch(violations[0]!, /unexpected result of the start/);
});

Deno.test("GuestConnection.start() rejects with the error of the top level, for invalid exports, and after its timeout", async () => {
  const throwing = scripted();
  const thrown = throwing.guest.start("", [], 60_000);
  throwing.channel.say({ t: "failed", error: { name: "RangeError", message: "no" } });
  assertEquals((await assertRejects(() => thrown)).name, "RangeError");
  for (
    const exports of [undefined, null, 5, { data: {} }, { data: [], methods: [] }, { data: {}, methods: "x" }]
  ) {
    const { channel, guest } = scripted();
    const started = guest.start("", [], 60_000);
    channel.say({ t: "ready", exports });
    assertEquals(await failure(started), "tool_crashed");
  }
  assertEquals(await failure(scripted().guest.start("", [], 5)), "tool_timeout");
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
      assert(guest.exit !== null);
    }),
    { numRuns: 300 },
  );
  const after = [Object.prototype, Array.prototype, Function.prototype, Error.prototype].map((one) =>
    Reflect.ownKeys(one).length
  );
  assertEquals(after, before);
  assertEquals(Object.keys({}), []);
});
