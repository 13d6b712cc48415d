/** Runs that wait at a limit: answers, the policy's maximum, sub-agents, other processes, replay. */
import type { Caller } from "../../src/runs/types.ts";
import type { JsonObject } from "../../src/sdk/types.ts";
import { assertEquals } from "../assert.ts";
import { codeOf } from "../support/asking_runs.ts";
import { CALLER, replayed, service, type ServiceOptions, STRANGER, type TestPlan } from "../support/runs.ts";
import { calls, tool } from "../support/sessions.ts";
import { agentsKit, planOf, sum, tasks } from "../support/sub_agents.ts";
import { settle, shared, type SharedStore } from "./shared_store.ts";

const PLAN: TestPlan = {
  providers: [[calls(["t", { n: 1 }]), calls(["t", { n: 2 }]), calls(["t", { n: 3 }]), "done"]],
  tools: [tool("t", () => "ran")],
  limits: { max_tool_calls: 1, on_limit: "pause" },
};

/** Starts a run, which waits at its limit. */
async function waiting(options: ServiceOptions = {}, plan: TestPlan = PLAN) {
  const made = service({ plans: { paused: plan }, ...options });
  const handle = await made.post("paused");
  const run = await handle.settled("attention");
  return { ...made, handle, run, approval: run.approvals[0]! };
}

Deno.test("a run waits at its limit, and continues when the limit is raised", async () => {
  const made = await waiting();
  const { runs, handle, run, approval } = made;
  assertEquals([run.status, run.stop_reason, approval.limit], [
    "awaiting_limit",
    null,
    { name: "max_tool_calls", value: 1, used: 1, next: null },
  ]);
  assertEquals((await runs.list(CALLER, { status: "awaiting_limit" })).data.map(({ id }) => id), [run.id]);
  const raised = await runs.raiseLimits(CALLER, run.id, { max_tool_calls: 3 });
  assertEquals([raised.limits.max_tool_calls, raised.limits.on_limit], [3, "pause"]);
  const ended = await handle.settled("end");
  assertEquals([ended.status, ended.output_text, ended.limits.max_tool_calls], ["completed", "done", 3]);
  const [limits] = (await made.entries(run.id)).filter(({ event }) => event === "run:limits");
  assertEquals(limits?.data.raised_by, CALLER.name);
  assertEquals((await runs.approvals(CALLER, run.id)).map(({ status }) => status), ["granted"]);
  assertEquals((await replayed(made, run.id)).equal, true);
});

Deno.test("an approval that is allowed raises the limit by as much again, at most to the policy's", async () => {
  const { runs, handle, approval } = await waiting({ limits: { max_tool_calls: 2 } });
  await runs.decide(CALLER, handle.id, approval.id, { decision: "allow" });
  const ended = await handle.settled("end");
  assertEquals([ended.limits.max_tool_calls, ended.stop_reason], [2, "limit:max_tool_calls"]);
  assertEquals((await runs.approvals(CALLER, handle.id)).length, 1); // the policy's limit is not asked about
});

Deno.test("a run whose limit is not raised ends as without pause", async () => {
  const made = await waiting();
  await made.runs.decide(CALLER, made.handle.id, made.approval.id, { decision: "deny" });
  const ended = await made.handle.settled("end");
  assertEquals([ended.status, ended.stop_reason, ended.approvals], [
    "incomplete",
    "limit:max_tool_calls",
    [],
  ]);
  assertEquals((await replayed(made, ended.id)).equal, true);
  assertEquals(
    await codeOf(() => made.runs.raiseLimits(CALLER, ended.id, { max_tool_calls: 3 })),
    "run_ended",
  );
});

Deno.test("limits are raised above what was used and within the policy, by the owner of the run", async () => {
  const { runs, run } = await waiting({ limits: { max_tool_calls: 10 } });
  const refused = (limits: JsonObject, caller: Caller = CALLER) =>
    codeOf(() => runs.raiseLimits(caller, run.id, limits));
  assertEquals(
    [
      await refused({ max_tool_calls: 1 }),
      await refused({ max_tool_calls: 11 }),
      await refused({ max_cost_usd: "4.99" }),
      await refused({ max_tool_calls: 5 }, STRANGER),
    ],
    ["request_invalid", "policy_refused", "request_invalid", "not_found"],
  );
  assertEquals((await runs.get(CALLER, run.id)).status, "awaiting_limit");
});

Deno.test("another limit that is raised does not answer the question", async () => {
  const { runs, run } = await waiting({ limits: { max_iterations: 100 } });
  assertEquals((await runs.raiseLimits(CALLER, run.id, { max_iterations: 60 })).status, "awaiting_limit");
});

Deno.test("a run that waits at a limit is continued by another process, which raises it", async () => {
  const { run, clock, ...one } = await waiting({ store: shared });
  await clock.advance(6_000);
  const plans = { paused: { ...PLAN, providers: [[calls(["t", { n: 3 }]), "done"]] } };
  const other = service({ plans, beside: { clock, run, ...one } as never, store: shared });
  assertEquals(await other.runs.recover(), [run.id]);
  const continued = await other.runs.handle(CALLER, run.id);
  await settle();
  assertEquals(continued.current().status, "awaiting_limit");
  await other.runs.raiseLimits(CALLER, run.id, { max_tool_calls: 9 });
  const ended = await continued.settled("end");
  assertEquals([ended.status, ended.limits.max_tool_calls], ["completed", 9]);
  assertEquals((await other.runs.approvals(CALLER, run.id)).map(({ status }) => status), ["granted"]);
});

Deno.test("a process that dies between raising and answering leaves a run that continues", async () => {
  const { run, clock, runs, ...one } = await waiting({ store: shared });
  const store = one.store as SharedStore;
  store.committing = (changes) => {
    const answers = changes.some((change) => "put" in change && change.put.value.status === "granted");
    if (answers) return new Promise(() => {}); // the process dies
  };
  void runs.raiseLimits(CALLER, run.id, { max_tool_calls: 9 });
  await settle();
  await clock.advance(6_000);
  const plans = { paused: { ...PLAN, providers: [[calls(["t", { n: 3 }]), "done"]] } };
  const other = service({ plans, beside: { clock, run, ...one } as never, store: shared });
  assertEquals(await other.runs.recover(), [run.id]);
  const ended = await (await other.runs.handle(CALLER, run.id)).settled("end");
  assertEquals([ended.status, ended.limits.max_tool_calls], ["completed", 9]);
  const entries = await other.entries(run.id);
  const statuses = entries.filter(({ event }) => event === "run:status").map(({ data }) => data.status);
  assertEquals(statuses.at(-1), "running");
});

Deno.test("another server carries a raise to the process that executes the run", async () => {
  const { run, clock, runs, handle, ...one } = await waiting({ store: shared });
  runs.shareStore();
  const other = service({ plans: { paused: PLAN }, beside: { clock, run, ...one } as never, store: shared });
  const raised = other.runs.raiseLimits(CALLER, run.id, { max_tool_calls: 9 });
  for (let tick = 0; tick < 20; tick++) {
    await clock.advance(1_000);
    await settle();
  }
  assertEquals((await raised).limits.max_tool_calls, 9);
  assertEquals((await handle.settled("end")).output_text, "done");
  await Promise.all([runs.close(), other.runs.close()]);
});

Deno.test("a sub-agent at the run's limit waits with the run; its own limit ends it", async () => {
  const kit = agentsKit();
  const helper = (limits: JsonObject) => ({
    providers: [{ module: "provider-mock", config: { responses: [sum(), sum("2+1"), "summed"] } }],
    limits,
  });
  const ask = tasks({ agent: "helper", instruction: "Add." });
  const start = async (limits: JsonObject) =>
    await kit.start(planOf([ask, "done"], { helper: helper(limits) }, {
      limits: { max_tool_calls: 2, on_limit: "pause" },
    }));
  for (const limits of [{}, { max_total_tokens: 100_000 }]) {
    const handle = await start(limits);
    const { status, approvals: [approval] } = await handle.settled("attention");
    assertEquals([status, approval?.session_id === handle.session_id], ["awaiting_limit", false]);
    await kit.runs.raiseLimits(CALLER, handle.id, { max_tool_calls: 5 });
    const ended = await handle.settled("end");
    assertEquals([ended.status, ended.tool_call_count], ["completed", 3]);
  }
  const own = await (await start({ max_tool_calls: 1 })).settled("end");
  assertEquals([own.status, own.tool_call_count], ["completed", 2]);
});

Deno.test("sub-agents at the same limit of the run wait for the answer to one question", async () => {
  const kit = agentsKit();
  const helper = { providers: [{ module: "provider-mock", config: { responses: [sum(), "summed"] } }] };
  const ask = tasks({ agent: "helper", instruction: "One." }, { agent: "helper", instruction: "Two." });
  const handle = await kit.start(planOf([ask, "done"], { helper }, {
    limits: { max_tool_calls: 2, on_limit: "pause" },
  }));
  const { approvals } = await handle.settled("attention");
  assertEquals(approvals.length, 1); // both wait for the answer to one question
  await kit.runs.raiseLimits(CALLER, handle.id, { max_tool_calls: 9 });
  const ended = await handle.settled("end");
  assertEquals([ended.status, ended.tool_call_count], ["completed", 4]);
});

Deno.test("a new run in a session whose run waits at a limit cancels that one", async () => {
  const { post, handle, run } = await waiting();
  const next = await post("plain", { session_id: run.session_id });
  assertEquals((await next.settled("end")).status, "completed");
  assertEquals((await handle.settled("end")).status, "cancelled");
});
