/** Parts of the kernel for sub-agents: limits with a parent, deadlines that pause, sessions with a parent. */
import { assert, assertEquals, assertRejects, assertThrows } from "../assert.ts";
import { RunLimitGuard } from "../../src/kernel/run_limits.ts";
import { StepAbort } from "../../src/kernel/timeouts.ts";
import { CallDeadline } from "../../src/kernel/call_deadline.ts";
import { CancellationToken } from "../../src/sdk/cancellation.ts";
import { errorCode } from "../../src/sdk/errors.ts";
import { FakeClock } from "../../src/testing/clocks.ts";
import type { RunLimits, Usage } from "../../src/sdk/types.ts";
import { kit, listContext, nextTurn, tool, until } from "../support/sessions.ts";

const LIMITS: RunLimits = {
  max_iterations: 4,
  max_tool_calls: 3,
  max_total_tokens: 10_000,
  max_cost_usd: "1",
  max_duration_s: 100,
};
const USED: Usage = { input_tokens: 1_000, output_tokens: 1_000, total_tokens: 2_000, cost_usd: null };

function nested(own: Partial<RunLimits>, clock = new FakeClock()) {
  const outer = new RunLimitGuard({ limits: LIMITS, clock });
  const inner = new RunLimitGuard({ limits: { ...LIMITS, ...own }, clock, parent: outer });
  return { outer, inner, clock };
}

function limitOf(act: () => unknown): unknown {
  return (assertThrows(act) as Error & { facts?: { limit?: string } }).facts?.limit;
}

Deno.test("RunLimitGuard with a parent counts in both; reaching its own limit stops only itself", () => {
  const { outer, inner } = nested({ max_iterations: 1, max_tool_calls: 1 });
  inner.reserveCall(100, 500).settle(USED);
  inner.countToolCall();
  assertEquals(limitOf(() => inner.reserveCall(100, 500)), "max_iterations");
  assertEquals(limitOf(() => inner.countToolCall()), "max_tool_calls");
  assertEquals(outer.tokens_left, 8_000);
  outer.countToolCall();
  outer.countToolCall();
  assertEquals(limitOf(() => outer.countToolCall()), "max_tool_calls");
});

Deno.test("RunLimitGuard with a parent lowers tokens to the parent's; a refused call reserves nothing", () => {
  const { outer, inner } = nested({});
  outer.reserveCall(1_000, 500).settle({ ...USED, total_tokens: 8_500 });
  assertEquals([inner.tokens_left, outer.tokens_left], [1_500, 1_500]);
  const lowered = inner.reserveCall(500, 4_000);
  assertEquals(lowered.max_output_tokens, 1_000);
  assertEquals(inner.tokens_left, 0);
  assertEquals(limitOf(() => inner.reserveCall(500, 4_000)), "max_total_tokens");
  lowered.settle(null);
  assertEquals([inner.tokens_left, outer.tokens_left], [1_500, 1_500]);
  const narrow = nested({ max_total_tokens: 400 });
  assertEquals(limitOf(() => narrow.inner.reserveCall(300, 4_000)), "max_total_tokens");
  assertEquals(narrow.outer.tokens_left, 10_000);
});

Deno.test("RunLimitGuard with a parent counts the tokens and cost of a part of an answer, but no answer", () => {
  const { outer, inner } = nested({ max_iterations: 1, max_cost_usd: "0.5" });
  inner.reserveCall(100, 500).settle(null);
  inner.countPart({ ...USED, cost_usd: "0.2" });
  inner.reserveCall(100, 500).settle(null);
  inner.countPart({ ...USED, cost_usd: "0.3" });
  assertEquals([inner.tokens_left, outer.tokens_left], [6_000, 6_000]);
  assertEquals(limitOf(() => inner.reserveCall(100, 500)), "max_cost_usd");
});

Deno.test("RunLimitGuard with a parent settles a call without a price in the parent too", () => {
  const clock = new FakeClock();
  const outer = new RunLimitGuard({ limits: LIMITS, clock });
  const inner = new RunLimitGuard({ limits: LIMITS, clock, parent: outer, cost_limit_is_set: true });
  const reservation = inner.reserveCall(1_000, 1_000);
  assertEquals(limitOf(() => reservation.settle(USED)), "max_cost_usd");
  assertEquals(outer.tokens_left, 8_000);
});

Deno.test("RunLimitGuard with a parent ends at either duration; waiting for a person counts in neither", async () => {
  const { outer, inner, clock } = nested({ max_duration_s: 10 });
  inner.start();
  const answer = Promise.withResolvers<void>();
  const waiting = inner.paused(() => answer.promise);
  await clock.advance(1_000_000);
  assertEquals([inner.signal.aborted, outer.signal.aborted], [false, false]);
  answer.resolve();
  await waiting;
  await clock.advance(10_000);
  assertEquals([inner.signal.aborted, outer.signal.aborted], [true, false]);
  const second = nested({ max_duration_s: 1_000 });
  second.inner.start();
  await second.clock.advance(100_000);
  assertEquals(errorCode(second.inner.signal.reason), "limit_reached");
  inner.stop();
  second.inner.stop();
});

function deadline(clock: FakeClock, step = new StepAbort()) {
  const limits = { tool_timeout_s: 1, cleanup_timeout_s: 0.5, approval_timeout: 300 };
  return { made: new CallDeadline({ host: { clock }, step, limits }, "slow"), step };
}

Deno.test("CallDeadline is paused until the last of several pauses ends, and continues with the time that was left", async () => {
  const clock = new FakeClock();
  const { made } = deadline(clock);
  const waiting = assertRejects(() => made.wait(new Promise(() => {})), Error, "no result within 1 s");
  await clock.advance(600);
  const [first, second] = [made.pause(true), made.pause(true)];
  await clock.advance(100_000);
  first();
  first();
  await clock.advance(100_000);
  assert(!made.signal.aborted);
  second();
  await clock.advance(399);
  assert(!made.signal.aborted);
  await clock.advance(1);
  await waiting;
  made.stop();
  assertEquals(clock.pending, 0);
});

Deno.test("CallDeadline sets no timer for a call that answers at once, and one for any other call", async () => {
  const clock = new FakeClock();
  const quick = deadline(clock);
  const answered = quick.made.wait(Promise.resolve("done"));
  const pending = answered.then((answer) => {
    quick.made.stop();
    return [answer, clock.pending];
  });
  assertEquals(await pending, ["done", 0]);
  await nextTurn();
  assertEquals(clock.pending, 0);

  const slow = deadline(clock);
  const late = assertRejects(() => slow.made.wait(new Promise(() => {})), Error, "no result within 1 s");
  await nextTurn();
  assertEquals(clock.pending, 1);
  await clock.advance(1_000);
  await late;
  slow.made.stop();
});

Deno.test("CallDeadline abandons an aborted call at once, and a paused one after its grace period", async () => {
  const clock = new FakeClock();
  const plain = deadline(clock);
  const left = assertRejects(() => plain.made.wait(new Promise(() => {})), Error, "stop");
  plain.step.abort(new Error("stop"));
  await left;
  plain.made.stop();

  const held = deadline(clock);
  held.made.pause(true);
  const call = Promise.withResolvers<string>();
  const ended = held.made.wait(call.promise);
  held.step.abort(new Error("stop"));
  await nextTurn();
  call.resolve("in order");
  assertEquals(await ended, "in order");
  held.made.stop();

  const stuck = deadline(clock);
  stuck.made.pause(true);
  const late = assertRejects(() => stuck.made.wait(new Promise(() => {})), Error, "stop");
  stuck.step.abort(new Error("stop"));
  await nextTurn();
  await clock.advance(500);
  await late;
  stuck.made.stop();
  assertEquals(clock.pending, 0);
});

Deno.test("a session with a parent emits session:fork last in its initialisation, and each entry has parent_id", async () => {
  const made = kit({ options: { parent_id: "ses_0" } });
  await made.session.initialize();
  assertEquals(made.names().at(-1), "session:fork");
  assertEquals(made.data("session:fork"), [{ parent: "ses_0", session_id: "ses_1" }]);
  await made.run();
  await made.session.cleanup("completed");
  assert(made.entries.every((entry) => entry.parent_id === "ses_0"));
});

Deno.test("a continued session with a parent emits no session:fork", async () => {
  const made = kit({ options: { parent_id: "ses_0", continued: true } });
  await made.run();
  assertEquals([made.of("session:fork").length, made.of("session:resume").length], [0, 1]);
});

Deno.test("a child token registered after a graceful cancel is graceful at once, and follows a later immediate cancel", () => {
  const [parent, child] = [new CancellationToken(), new CancellationToken()];
  parent.requestGraceful();
  parent.registerChild(child);
  assertEquals(child.state, "graceful");
  parent.requestImmediate();
  assertEquals([child.state, child.signal.aborted], ["immediate", true]);
  parent.unregisterChild(child);
});

Deno.test("a session cancelled by its parent's token emits cancel:requested before cancel:completed, once", async () => {
  const token = new CancellationToken();
  const working = Promise.withResolvers<void>();
  const made = kit({
    providers: [[{ tool_calls: [{ name: "work", arguments: {} }] }, "never"]],
    tools: [tool("work", () => working.promise.then(() => "done"))],
    options: { cancellation: token, parent_id: "ses_0" },
  });
  const ended = made.run();
  await until(() => made.of("tool:pre").length === 1);
  token.requestGraceful(); // session.cancel() is not called
  working.resolve();
  assertEquals((await ended).status, "cancelled");
  await made.session.emitCancelRequested();
  assertEquals(made.names().filter((name) => name.startsWith("cancel:")), [
    "cancel:requested",
    "cancel:completed",
  ]);
});

Deno.test("a capability of the session's options exists before the first module, and after a failed start", async () => {
  const spawn = () => {};
  const seen: unknown[] = [];
  let fail = true;
  const made = kit({
    options: { capabilities: { "session.spawn": spawn } },
    context: async (coordinator) => {
      seen.push(coordinator.getCapability("session.spawn"));
      if (fail) throw new Error("not yet");
      await listContext(coordinator);
    },
  });
  await assertRejects(() => made.session.initialize());
  fail = false;
  await made.session.initialize();
  assertEquals(seen, [spawn, spawn]);
});
