/** The host's end of the wire: calls, their end, and what a guest asks for meanwhile. */
import { PreampError } from "../../../src/sdk/errors.ts";
import { assert, assertEquals, assertMatch, assertRejects, assertStrictEquals } from "../../assert.ts";
import { codeOf, failure, scripted } from "./scripted_guest.ts";

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
  for (const failed of [() => answer, () => guest.start("", [], 1_000)]) {
    const error = await assertRejects(failed);
    assertEquals([codeOf(error), error.message], ["tool_memory_exceeded", message]);
  }
});

Deno.test("GuestConnection.call() uses call ids that cannot be guessed", async () => {
  const { call } = scripted();
  const nonces = new Set<string>();
  for (let n = 0; n < 50; n++) nonces.add((await call()).id.split(".")[1]!);
  assertEquals(nonces.size, 50);
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
  const later = await assertRejects(() => guest.call(1, "run", [], { host, max_bytes: 1 }));
  const message = 'Cannot use module "m" again in this run: too much';
  assertEquals([codeOf(later), later.message], ["tool_crashed", message]);
  assertEquals([channel.sent.length, (await guest.exited).cause], [sent, "memory"]);
});

Deno.test("GuestConnection.call() ends a guest whose engine got no memory", async () => {
  const { call, channel } = scripted();
  const { answer, id } = await call();
  channel.say({
    t: "result",
    call: id,
    error: { name: "RangeError", message: "Array buffer allocation failed" },
  });
  assertEquals([await failure(answer), channel.death?.cause], ["tool_memory_exceeded", "memory"]);
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
  assertEquals(channel.watched, [0, 0]);
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
