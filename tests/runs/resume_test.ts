/**
 * Recovery: what a run whose process is killed keeps. What becomes of it at each step is the table of
 * crashes_test.ts; see also killed_runs_slow_test.ts.
 */
import * as hooksApproval from "../../modules/hooks-approval/mod.ts";
import type { MemoryStore } from "../../src/store/memory.ts";
import { MockProvider } from "../../src/testing/mock_provider.ts";
import { assertToolPairs } from "../../src/testing/assertions.ts";
import type {
  ContextManager,
  JsonObject,
  Message,
  Orchestrator,
  Prompt,
  Provider,
  Tool,
} from "../../src/sdk/types.ts";
import { assert, assertEquals } from "../assert.ts";
import { someOf } from "../support/cases.ts";
import { type TestModule, tool } from "../support/sessions.ts";
import { CALLER, replayed, service, type TestPlan } from "../support/runs.ts";
import { again, killAndResume, MortalStore, postAndDie, runUntilGone } from "./killed.ts";
import { builtin, mock, play, runToEnd, type Scenario } from "./play.ts";
import { PICTURE, SCENARIOS } from "./scenarios.ts";

/** Returns the plan of the scenario with a tool that counts its executions. */
function countingPlan(more: Partial<Tool> = {}): { plan: TestPlan; ran: string[] } {
  const ran: string[] = [];
  const calculator = tool("calculator", (_, call) => {
    ran.push(call!.id);
    return Promise.resolve("42");
  }, more);
  return { ran, plan: { ...SCENARIOS["a tool call with approval"]!.plan, tools: [calculator] } };
}

const allow: NonNullable<Scenario["react"]> = (entry, { decide }) =>
  entry.event === "approval:required" ? decide(entry, "allow") : undefined;

/** Numbers of the entries after which the process is killed. */
const BEHIND = {
  provider_request: 12,
  awaiting: 20,
  granted: 21,
  running: 22,
  first_delta: 27,
} as const;

Deno.test("killed while a parallel call waits: the picture of a call that ended is in the history", async () => {
  const scenario = SCENARIOS["a picture from a tool, while another call waits for approval"]!;
  const { entries: whole } = await play(scenario);
  const waits = whole.findIndex(({ data }) => data.status === "awaiting_approval") + 1;
  const { entries, next, run } = await killAndResume(scenario, waits);
  assertEquals(run.status, "completed");
  const stored = entries.flatMap(({ event, data }) =>
    event === "context:message" ? [data.message as Message] : []
  );
  assertEquals(stored.find(({ name }) => name === "picture")?.content, PICTURE);
  assertEquals(await replayed(next, run.id), { equal: true });
});

Deno.test("an open approval keeps its remaining time", async () => {
  const { plan: counted, ran } = countingPlan();
  const plan = { ...counted, limits: { max_duration_s: 100_000 } };
  const { entries, run } = await killAndResume({ plan }, BEHIND.awaiting, 20_000);
  const asked = entries.find(({ event }) => event === "approval:required")!;
  const denied = entries.find(({ event }) => event === "approval:denied")!;
  assertEquals([denied.data.decision, ran, run.status], ["timeout", [], "completed"]);
  const late_ms = Date.parse(denied.ts) - Date.parse(String(asked.data.expires_at));
  assert(late_ms >= 0 && late_ms <= 40_000, `${late_ms} ms behind its time`);
});

Deno.test("killed after the answer: the call of an idempotent tool is repeated without another question", async () => {
  for (const last of [BEHIND.granted, BEHIND.running]) {
    const { plan, ran } = countingPlan({ idempotent: true });
    const { entries, run } = await killAndResume({ plan, react: allow }, last);
    const outcomes = entries.slice(last).filter(({ event }) =>
      event === "tool:post" || event === "tool:error"
    );
    assertEquals(outcomes.map(({ event }) => event), ["tool:post"]);
    assert(ran.length >= 1 && ran.length <= 2, `ran ${ran.length} times`);
    assertEquals(entries.filter(({ event }) => event.startsWith("approval:")).length, 2);
    assertEquals(run.status, "completed");
  }
});

Deno.test("a later call with the id and arguments of an interrupted one is asked about and runs again", async () => {
  const addingTwice: Provider = {
    name: "mock",
    getInfo: () => new MockProvider().getInfo(),
    listModels: () => Promise.resolve([]),
    parseToolCalls: ({ tool_calls }) => tool_calls ?? [],
    complete({ messages }) {
      const added = messages.filter(({ role }) => role === "tool").length;
      if (added === 2) return Promise.resolve({ content: [{ type: "text", text: "done" }] });
      return Promise.resolve({
        content: [],
        tool_calls: [{ id: "call_0", name: "add", arguments: { n: 1 } }],
      });
    },
  };
  let sum = 0;
  const plan: TestPlan = {
    providers: [addingTwice],
    tools: [tool("add", ({ n }) => Promise.resolve(`The sum is ${sum += Number(n)}.`))],
    hooks: [builtin(hooksApproval, { rules: [{ tool: "add", action: "ask" }] })],
  };
  const { entries } = await play({ plan, react: allow });
  const ends = entries.findIndex(({ event }) => event === "tool:post") + 1;
  for (const last of [ends, ends + 1]) {
    sum = 0;
    const resumed = await killAndResume({ plan, react: allow }, last);
    const of = (event: string) => resumed.entries.filter((entry) => entry.event === event);
    assertEquals(of("tool:post").map(({ data }) => (data.result as JsonObject).output), [
      "The sum is 1.",
      "The sum is 2.",
    ]);
    assertEquals([of("approval:required").length, of("approval:granted").length, sum], [2, 2, 2]);
    assertEquals(await replayed(resumed.next, resumed.run.id), { equal: true });
  }
});

Deno.test("killed during a provider call: the call is repeated and its first deltas are void", async () => {
  const { plan } = countingPlan();
  const { entries } = await killAndResume({ plan, react: allow }, BEHIND.first_delta);
  assertEquals(entries[BEHIND.first_delta]!.data, { status: "running", resumed: true });
  const { request_id } = entries[BEHIND.first_delta - 1]!.data;
  const { event, data } = entries[BEHIND.first_delta + 1]!;
  assertEquals([event, data], ["content_block:void", { request_id }]);
  const later = entries.slice(BEHIND.first_delta + 2);
  assertEquals(later.filter(({ data }) => data.request_id === request_id), []);
  const requests = entries.filter(({ event }) => event === "provider:request");
  assertEquals(requests.map(({ iteration }) => iteration), [1, 2, 2]);
  const ids = entries.filter(({ event, iteration }) => event === "content_block:start" && iteration === 2)
    .map(({ data }) => data.request_id);
  assertEquals([ids.length, new Set(ids).size], [2, 2]);
  assertEquals(entries.filter(({ event }) => event === "execution:start").length, 1);
});

Deno.test("a model call that is lost with its process each time is repeated twice, and the run ends with the reason", async () => {
  const { plan } = countingPlan();
  const scenario = { plan, react: allow };
  const { entries: whole } = await killAndResume(scenario, BEHIND.provider_request);
  const requests = whole.filter(({ event }) => event === "provider:request").map(({ seq }) => seq);
  const between = requests[1]! - requests[0]!;
  let last: number = BEHIND.provider_request;
  let mortal: MortalStore | undefined;
  const store = (memory: MemoryStore) => mortal = new MortalStore(memory, last);
  const first = service({ plans: { plan }, store });
  const handle = await first.post("plan");
  await runUntilGone(first, handle.id, scenario, mortal!);
  for (let repeated = 0; repeated < 2; repeated++) {
    await first.clock.advance(5_001);
    last += between;
    const next = service({ plans: { plan }, beside: first, store });
    assertEquals(await next.runs.recover(), [handle.id]);
    await runUntilGone(next, handle.id, scenario, mortal!);
  }
  await first.clock.advance(5_001);
  const next = service({ plans: { plan }, beside: first });
  assertEquals(await next.runs.recover(), [handle.id]);
  const { status, error } = await next.runs.get(CALLER, handle.id);
  const begin = "Cannot continue the run: its process ended: its model call was lost 3 times";
  assertEquals([status, error?.code, error?.message.slice(0, begin.length)], [
    "failed",
    "interrupted",
    begin,
  ]);
  const entries = await next.entries(handle.id);
  assertEquals(entries.filter(({ event }) => event === "provider:request").length, 3);
  assertEquals(await next.runs.recover(), []);
});

Deno.test("a tool that is not idempotent never runs twice, wherever the process is killed", async () => {
  for (const last of someOf(Array.from({ length: 31 }, (_, index) => 7 + index), 11)) {
    const { plan, ran } = countingPlan();
    await killAndResume({ plan, react: allow }, last);
    assert(ran.length <= 1, `killed behind ${last}: ran ${ran.length} times`);
  }
});

Deno.test("a loop that is not resumable ends failed and interrupted with a closed history, and its session stays usable", async () => {
  const orchestrator: TestPlan["orchestrator"] = async (coordinator) =>
    await coordinator.mount("orchestrator", {
      async execute(
        prompt: Prompt,
        context: ContextManager,
        providers: Record<string, Provider>,
        tools: Record<string, Tool>,
        _hooks: unknown,
      ) {
        await context.addMessage({ role: "user", content: prompt });
        const messages = await context.getMessages();
        const response = await providers.mock!.complete({ messages });
        await context.addMessage({ role: "assistant", content: response.content });
        for (const { id, input } of response.tool_calls ?? []) {
          const result = await tools.calculator!.execute(input) as { output: string };
          await context.addMessage({ role: "tool", tool_call_id: id, content: result.output });
        }
        return "plain";
      },
    });
  const { plan } = countingPlan();
  const plain: Scenario = { plan: { ...plan, orchestrator }, react: allow };
  const { entries: whole } = await play(plain);
  const pre = whole.find(({ event }) => event === "tool:pre")!;
  const { next, run, entries } = await killAndResume(plain, pre.seq);
  assertEquals([run.status, run.stop_reason, run.error?.code], ["failed", "error", "interrupted"]);
  assertEquals(await replayed(next, run.id), { equal: true });
  const complete = entries.filter(({ event }) => event === "orchestrator:complete");
  assertEquals(complete.map(({ data }) => data.status), ["error"]);
  const { data: messages } = await next.runs.sessions.messages(CALLER, run.session_id);
  assertToolPairs(messages as unknown as Message[]);
  const again = await next.post(null, { session_id: run.session_id, prompt: "again" });
  assertEquals((await runToEnd(next, again.id, plain)).status, "completed");
});

Deno.test("a run whose plan cannot be mounted any more ends failed and interrupted", async () => {
  const { plan } = countingPlan();
  const first = service({
    plans: { plan },
    store: (memory) => new MortalStore(memory, BEHIND.provider_request),
  });
  const handle = await postAndDie(first, "plan");
  await first.clock.advance(5_001);
  const broken: TestPlan = { ...plan, context: () => Promise.reject(new Error("gone")) };
  const next = service({ plans: { plan: broken }, beside: first });
  assertEquals(await next.runs.recover(), [handle.id]);
  const run = await next.runs.get(CALLER, handle.id);
  assertEquals([run.status, run.error?.code], ["failed", "interrupted"]);
  assertEquals(await next.runs.recover(), []);
});

Deno.test("limits include what was used before the crash", async () => {
  const plan: TestPlan = {
    providers: [mock(...Array.from({ length: 9 }, () => ({ tool_calls: [{ name: "a", arguments: {} }] })))],
    tools: [tool("a")],
    limits: { max_tool_calls: 3 },
  };
  const { entries: whole } = await play({ plan });
  const second = whole.findLast(({ event, iteration }) => event === "tool:post" && iteration === 2)!;
  const { run } = await killAndResume({ plan }, second.seq);
  assertEquals([run.stop_reason, run.tool_call_count], ["limit:max_tool_calls", 3]);
});

Deno.test("a call with redacted arguments is never repeated after an interruption, idempotent or not", async () => {
  const ran: JsonObject[] = [];
  const open = tool("open", (input) => {
    ran.push(input);
    return Promise.resolve("open");
  }, { idempotent: true });
  const plan: TestPlan = {
    providers: [mock({ tool_calls: [{ name: "open", arguments: { password: "opensesame" } }] }, "done")],
    tools: [open],
    secrets: ["opensesame"],
  };
  const { entries: whole } = await play({ plan });
  const answered = whole.find(({ event }) => event === "provider:response")!;
  ran.length = 0;
  const { entries, run } = await killAndResume({ plan }, answered.seq);
  assertEquals([ran, run.status], [[], "completed"]);
  const outcomes = entries.filter(({ event }) => event === "tool:error");
  assertEquals(outcomes.map(({ data }) => (data.error as JsonObject).type), ["interrupted"]);
});

Deno.test("a run of a living process is not recovered, and a recovered run belongs to the new process alone", async () => {
  const { plan } = countingPlan();
  const first = service({ plans: { plan } });
  const handle = await first.post("plan");
  await handle.settled("attention");
  const next = service({ plans: { plan }, beside: first });
  assertEquals(await next.runs.recover(), []); // its lease has not expired
  await first.clock.advance(5_001);
  assertEquals(await next.runs.recover(), [handle.id]);
  const [approval] = await next.runs.approvals(CALLER, handle.id);
  await next.runs.decide(CALLER, handle.id, approval!.id, { decision: "allow" });
  assertEquals((await runToEnd(next, handle.id, { plan })).status, "completed");
  // the first process continues after a long pause: its commits are refused
  const late = first.runs.cancel(CALLER, handle.id, "immediate").catch(() => {});
  await first.clock.advance(100);
  await late;
  await handle.settled("end");
  const entries = await next.entries(handle.id);
  assertEquals(entries.filter(({ event }) => event === "run:end").length, 1);
  assertEquals(entries.map(({ seq }) => seq), entries.map((_, index) => index + 1));
});

Deno.test("a session continues after a crash: history, state, number of runs", async () => {
  const plan: TestPlan = { providers: [mock("one", "two", "three")] };
  const before = service({ plans: { plan } });
  const { session_id } = await before.finish("plan", { prompt: "first" });
  const first = service({
    plans: { plan },
    beside: before,
    store: (memory) => new MortalStore(memory, 10, "run_1b"),
  });
  const handle = await postAndDie(first, null, { prompt: "second", session_id });
  await first.clock.advance(5_001);
  const next = service({ plans: { plan }, beside: before });
  assertEquals(await next.runs.recover(), [handle.id]);
  assertEquals((await runToEnd(next, handle.id, { plan })).output_text, "two");
  assertEquals((await next.runs.sessions.get(CALLER, session_id)).run_count, 2);
  const { data: messages } = await next.runs.sessions.messages(CALLER, session_id);
  assertEquals(messages.map(({ role, content }) => role === "user" ? content : role), [
    "first",
    "assistant",
    "second",
    "assistant",
  ]);
});

Deno.test("shareStore() recovers the runs of a crashed process until the service is drained", async () => {
  const plan: TestPlan = { providers: [mock("done")] };
  const first = service({ plans: { plan }, store: (memory) => new MortalStore(memory, 10) });
  const handle = await postAndDie(first, "plan");
  const next = service({ plans: { plan }, beside: first });
  next.runs.shareStore();
  let status = "running";
  for (let steps = 0; steps < 200 && status === "running"; steps++) {
    await next.clock.advance(100);
    ({ status } = await next.runs.get(CALLER, handle.id));
  }
  assertEquals(status, "completed");
  await next.runs.close();
  assertEquals(next.clock.pending, 0);
});

Deno.test("a rerun continues after a crash too: one prompt, no call twice", async () => {
  const { plan, ran } = countingPlan();
  const plans = { plan };
  const before = await play({ plan, react: allow });
  const { memory, clock } = before.service;
  const { entries } = before;
  const stored = entries.find(({ event, data }) => event === "context:message" && data.index === 2)!;
  const whole = await before.service.runs.rerun(CALLER, before.run.id, { from_event: stored.seq });
  await runToEnd(before.service, whole.id, { plan, react: allow });
  const length = (await before.service.entries(whole.id)).length;
  const first_entry = (await before.service.entries(whole.id)).findIndex(({ event }) =>
    event === "session:resume"
  );
  for (let last = first_entry + 1; last < length; last++) {
    ran.length = 0;
    const beside = { ...before.service, memory, clock };
    let mortal: MortalStore | undefined;
    const first = service({
      plans,
      beside,
      ids: (prefix, count) => `${prefix}_${last}x${count}`,
      store: (own) => mortal = new MortalStore(own, last, `run_${last}x1`),
    });
    const handle = await first.runs.rerun(CALLER, before.run.id, { from_event: stored.seq });
    await runUntilGone(first, handle.id, { react: allow }, mortal!);
    await clock.advance(5_001);
    const next = service({ plans, beside, ids: (prefix, count) => `${prefix}_${last}y${count}` });
    assertEquals(await next.runs.recover(), [handle.id]);
    const run = await runToEnd(next, handle.id, {
      plan,
      react: (entry, outside) => again({ react: allow }, entry, outside),
    });
    assertEquals([last, run.status], [last, "completed"]);
    assert(ran.length <= 1, `killed behind ${last}: ran ${ran.length} times`);
    const { data: messages } = await next.runs.sessions.messages(CALLER, run.session_id);
    assertEquals(messages.filter(({ role }) => role === "user").length, 1);
    assertToolPairs(messages as unknown as Message[]);
    assertEquals([last, await replayed(next, run.id)], [last, { equal: true }]);
  }
});

Deno.test("answers of a loop's own model count after a crash too", async () => {
  const USAGE = { input_tokens: 90, output_tokens: 10, total_tokens: 100, cost_usd: "0.1" };
  const own: Orchestrator = {
    resumable: true,
    async execute(prompt, context, _providers, _tools, hooks, options) {
      if (!options?.resume) await context.addMessage({ role: "user", content: prompt as string });
      for (let iteration = options?.iteration ?? 0; iteration < 3; iteration++) {
        await hooks.emit("provider:request", { provider: "own", iteration: iteration + 1 });
        const response = { content: [{ type: "text", text: `part ${iteration}` }] };
        await hooks.emit("provider:response", { provider: "own", tool_calls: false, usage: USAGE, response });
        await context.addMessage({ role: "assistant", content: response.content });
      }
      return "done";
    },
  };
  const orchestrator: TestModule = {
    id: "own-loop",
    module: { id: "own-loop", type: "orchestrator" },
    mount: (coordinator) => coordinator.mount("orchestrator", own),
  };
  const scenario = { plan: { orchestrator } };
  const { entries } = await play(scenario);
  const { seq } = entries.find(({ event }) => event === "provider:response")!;
  const { run } = await killAndResume(scenario, seq);
  assertEquals([run.status, run.usage.total_tokens, run.turn_count], ["completed", 300, 3]);
});
