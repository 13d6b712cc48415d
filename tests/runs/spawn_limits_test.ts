/** What holds sub-agents: levels, sessions, shared ceilings, prompts, deadlines; and what reaches them: approvals, cancellation. */
import { assert, assertEquals, assertStringIncludes } from "../assert.ts";
import type { JsonObject, Message, Module } from "../../src/sdk/types.ts";
import { agentsKit, CALLER, names, planOf, resultsOf, script, sessionOf, sum, tasks } from "./agents_kit.ts";

const HELPER = { providers: [script("helped", "again", "more")] };
const ASK_HELPER = tasks({ agent: "helper", instruction: "x" });

Deno.test("sub-agents are at most max_depth levels deep (W-41)", async () => {
  const down = { providers: [script(tasks({ agent: "down", instruction: "deeper" }), "back")] };
  const { run, entries } = await agentsKit({ limits: { max_depth: 2 } }).run(
    planOf([tasks({ agent: "down", instruction: "deeper" }), "done"], { down }),
  );
  assertEquals(run.status, "completed");
  const forks = entries.filter(({ event }) => event === "session:fork");
  assertEquals(forks.map(({ session_id, parent_id, data }) => [session_id, parent_id, data.metadata]), [
    ["ses_2", "ses_1", { agent: "down", depth: 1 }],
    ["ses_3", "ses_2", { agent: "down", depth: 2 }],
  ]);
  const [deepest] = resultsOf(entries);
  assertEquals([deepest?.success, deepest?.error?.type], [false, "limit_reached"]);
  assertStringIncludes(deepest?.error?.message ?? "", "max_depth");
});

Deno.test("a run has at most max_sessions sessions, its own included, also when spawns overlap", async () => {
  const many = Array.from({ length: 5 }, () => ({ agent: "helper", instruction: "x" }));
  const { run, entries } = await agentsKit({ limits: { max_sessions: 3 } }).run(
    planOf([tasks(...many), tasks({ session_id: "ses_2", instruction: "again" }), "done"], {
      helper: HELPER,
    }),
  );
  assertEquals(run.status, "completed");
  const results = resultsOf(entries);
  assertEquals(results.filter(({ success }) => success).length, 3); // two new ones, and one of them again
  const refused = results.filter(({ success }) => !success);
  assertEquals(refused.length, 3);
  for (const { error } of refused) assertStringIncludes(error?.message ?? "", "max_sessions");
});

Deno.test("a spawn that is refused takes no session's place", async () => {
  const { entries } = await agentsKit({ limits: { max_sessions: 2 } }).run(
    planOf([tasks({ session_id: "ses_9", instruction: "x" }), ASK_HELPER, "done"], { helper: HELPER }),
  );
  assertEquals(resultsOf(entries).map(({ success }) => success), [false, true]);
});

Deno.test("ceilings are shared: what a child used is gone for its parent", async () => {
  const calls = await agentsKit().run(
    planOf([sum(), ASK_HELPER, "done"], { helper: { providers: [script(sum(), sum(), sum(), "never")] } }, {
      limits: { max_tool_calls: 4 },
    }),
  );
  // a calculator, the task, two calculators of the child: its third is refused
  assertEquals([calls.run.tool_call_count, calls.run.status], [4, "completed"]);
  assertEquals(resultsOf(calls.entries).map(({ success, output }) => [success, output.stop_reason]), [
    [false, "limit:max_tool_calls"],
  ]);
  const iterations = await agentsKit().run(
    planOf([ASK_HELPER, "never"], { helper: { providers: [script(sum(), "end")] } }, {
      limits: { max_iterations: 3 },
    }),
  );
  const { turn_count, status, stop_reason } = iterations.run;
  assertEquals([turn_count, status, stop_reason], [3, "incomplete", "limit:max_iterations"]);
});

Deno.test("an agent's own limits hold for it alone, and never above its parent's", async () => {
  const own = { providers: [script(sum(), sum(), "never")], limits: { max_tool_calls: 1 } };
  const narrow = await agentsKit().run(planOf([ASK_HELPER, sum(), sum(), "done"], { helper: own }));
  assertEquals([narrow.run.output_text, narrow.run.tool_call_count], ["done", 4]);
  assertEquals(resultsOf(narrow.entries)[0]?.output.stop_reason, "limit:max_tool_calls");
  const wide = await agentsKit().run(
    planOf([ASK_HELPER, "done"], { helper: { ...own, limits: { max_tool_calls: 100 } } }, {
      limits: { max_tool_calls: 2 },
    }),
  );
  assertEquals([wide.run.tool_call_count, resultsOf(wide.entries)[0]?.output.stop_reason], [
    2,
    "limit:max_tool_calls",
  ]);
});

Deno.test("max_duration_s stops the child, then its parent", async () => {
  const kit = agentsKit();
  const slow = { providers: [script({ delay_ms: 60_000, text: "late" })] };
  const plan = planOf([tasks({ agent: "slow", instruction: "x" }), "never"], { slow }, {
    limits: { max_duration_s: 5 },
  });
  const handle = await kit.start(plan);
  await kit.until(
    handle.id,
    ({ event, parent_id }) => event === "provider:request" && parent_id !== undefined,
  );
  await kit.clock.advance(5_000);
  const run = await handle.settled("end");
  assertEquals([run.status, run.stop_reason], ["incomplete", "limit:max_duration_s"]);
  const entries = await kit.entries(run.id);
  const completed = entries.find(({ event }) => event === "task:agent_completed");
  assertEquals(completed?.data.stop_reason, "limit:max_duration_s");
  assertEquals(entries.at(-1)?.event, "run:end");
});

Deno.test("a prompt that the run cannot pay for is refused before anything is made (W-33)", async () => {
  const long = tasks({ agent: "helper", instruction: "word ".repeat(5_000) });
  const { entries } = await agentsKit().run(
    planOf([{ ...long, usage: { input_tokens: 4_000, output_tokens: 2_000 } }, "done"], { helper: HELPER }, {
      limits: { max_total_tokens: 10_000 },
    }),
  );
  assertStringIncludes(resultsOf(entries)[0]?.error?.message ?? "", "max_total_tokens");
  assert(!names(entries).includes("task:agent_spawned"));
});

Deno.test("a prompt that fills half of the model's context window is refused before the provider is called", async () => {
  const config = { responses: ["never"], context_window: 4_000, max_output_tokens: 500 };
  const { run, entries } = await agentsKit().run(
    planOf([tasks({ agent: "small", instruction: "word ".repeat(3_000) }), "done"], {
      small: { providers: [{ module: "provider-mock", config }] },
    }),
  );
  assertEquals([run.status, run.turn_count], ["completed", 2]);
  const [result] = resultsOf(entries);
  assertEquals([result?.success, result?.error?.type], [false, "failed"]);
  assertStringIncludes(result?.error?.message ?? "", "half of its model's context window");
  assertEquals(names(sessionOf(entries, "ses_2")).slice(-3), [
    "session:fork",
    "session:end",
    "session:cleanup",
  ]);
});

Deno.test("the deadline of a task stands still while its agent runs; other tools keep theirs", async () => {
  const kit = agentsKit({ limits: { tool_timeout_s: 10 } });
  const slow = { providers: [script({ delay_ms: 100_000, text: "at last" })] };
  const handle = await kit.start(planOf([tasks({ agent: "slow", instruction: "x" }), "done"], { slow }));
  await kit.until(
    handle.id,
    ({ event, parent_id }) => event === "provider:request" && parent_id !== undefined,
  );
  await kit.clock.advance(100_000);
  const run = await handle.settled("end");
  const [result] = resultsOf(await kit.entries(run.id));
  assertEquals([run.output_text, result?.output.response], ["done", "at last"]);

  const hanging: Module["mount"] = (coordinator) =>
    coordinator.mount("tools", {
      name: "calculator",
      description: "Hangs",
      execute: () => new Promise(() => {}),
    });
  const other = agentsKit({ limits: { tool_timeout_s: 10 }, modules: { "tool-calculator": hanging } });
  const second = await other.start(planOf([sum(), "done"]));
  await other.until(second.id, ({ event }) => event === "tool:pre");
  await other.clock.advance(10_000);
  const error = await other.until(second.id, ({ event }) => event === "tool:error");
  assertEquals((error.data.error as JsonObject).type, "tool_timeout");
  await second.settled("end");
});

const ASKING = {
  hooks: [{ module: "hooks-approval", config: { rules: [{ tool: "calculator", action: "ask" }] } }],
};

for (
  const [decision, answer, success] of [["allow", "2", true], [
    "deny",
    "Denied by hook: User denied",
    false,
  ]] as const
) {
  Deno.test(`an approval in a child is the run's, says whose it is, and is answered once: ${decision}`, async () => {
    const kit = agentsKit();
    const helper = { providers: [script(sum(), "that is all")] };
    const handle = await kit.start(planOf([ASK_HELPER, "done"], { helper }, ASKING));
    const waiting = await handle.settled("attention");
    const [approval] = waiting.approvals;
    assertEquals([waiting.status, approval?.session_id, approval?.tool_name], [
      "awaiting_approval",
      "ses_2",
      "calculator",
    ]);
    await kit.runs.decide(CALLER, handle.id, approval!.id, { decision });
    const run = await handle.settled("end");
    assertEquals([run.status, run.output_text], ["completed", "done"]);
    const entries = await kit.entries(run.id);
    const told = sessionOf(entries, "ses_2").find(({ event, data }) =>
      event === "context:message" && (data.message as unknown as Message).role === "tool"
    );
    assertStringIncludes(String((told?.data.message as unknown as Message).content), answer);
    assertEquals(resultsOf(entries)[0]?.success, true);
    assertEquals(names(sessionOf(entries, "ses_2")).includes("tool:post"), success);
    // waiting for a person is the run's state, told by the run
    const statuses = entries.filter(({ event }) => event === "run:status");
    assertEquals(statuses.map(({ session_id, data }) => [session_id, data.status]), [
      ["ses_1", "awaiting_approval"],
      ["ses_1", "running"],
    ]);
  });
}

Deno.test("a child whose prompt a hook denies is a denied task", async () => {
  const guard: Module["mount"] = (coordinator) => {
    coordinator.hooks.register(
      "prompt:submit",
      () =>
        coordinator.parent_id === null
          ? { action: "continue" }
          : { action: "deny", reason: "not by delegation" },
    );
  };
  const { run, entries } = await agentsKit({ modules: { "hooks-timing": guard } }).run(
    planOf([ASK_HELPER, "done"], { helper: HELPER }, { hooks: ["hooks-timing"] }),
  );
  assertEquals(run.status, "completed");
  assertEquals(resultsOf(entries).map(({ success, error }) => [success, error?.type, error?.message]), [
    [false, "denied", "not by delegation"],
  ]);
});

Deno.test("graceful cancellation lets the child finish its step, then both stop (CANC-01, CANC-04)", async () => {
  const kit = agentsKit();
  const slow = { providers: [script({ delay_ms: 1_000, ...sum() }, "never")] };
  const handle = await kit.start(planOf([tasks({ agent: "slow", instruction: "x" }), "never"], { slow }));
  await kit.until(
    handle.id,
    ({ event, parent_id }) => event === "provider:request" && parent_id !== undefined,
  );
  await kit.runs.cancel(CALLER, handle.id, "graceful");
  await kit.clock.advance(1_000);
  const run = await handle.settled("end");
  assertEquals([run.status, run.turn_count], ["cancelled", 2]);
  const entries = await kit.entries(run.id);
  assertOneCancelEach(entries, "graceful");
  // the child's own call finished, and its task was answered
  assertEquals(names(sessionOf(entries, "ses_2")).filter((name) => name === "tool:post"), ["tool:post"]);
  assertEquals(resultsOf(entries).map(({ success, error }) => [success, error?.type]), [[
    false,
    "cancelled",
  ]]);
});

Deno.test("immediate cancellation reaches the child at once; every call is answered once, nothing is left behind (CANC-02, CANC-04)", async () => {
  const kit = agentsKit();
  const slow = { providers: [script({ delay_ms: 1_000_000, text: "never" })] };
  const down = { providers: [script(tasks({ agent: "slow", instruction: "deeper" }), "never")] };
  const plan = planOf([
    tasks({ agent: "down", instruction: "x" }, { agent: "slow", instruction: "y" }),
    "never",
  ], {
    slow,
    down,
  });
  const handle = await kit.start(plan, { limits: { max_duration_s: 600 } });
  const asked = new Set<string>();
  await kit.until(handle.id, ({ event, session_id, iteration }) => {
    if (event === "provider:request") asked.add(`${session_id}/${iteration}`);
    return asked.size === 4; // the root, both children, the grandchild
  });
  await kit.runs.cancel(CALLER, handle.id, "immediate");
  const run = await handle.settled("end");
  assertEquals(run.status, "cancelled");
  const entries = await kit.entries(run.id);
  assertOneCancelEach(entries, "immediate");
  const messages = (await kit.runs.sessions.messages(CALLER, "ses_1")) as unknown as Message[];
  const answers = messages.filter(({ role }) => role === "tool");
  assertEquals(answers.map(({ tool_call_id }) => tool_call_id), ["call_1", "call_2"]);
  for (const { content } of answers) {
    assertEquals(JSON.parse(String(content)), {
      error: "Tool execution was cancelled by user",
      cancelled: true,
      tool: "task",
    });
  }
  // children end before the run does, and before their parents
  const ends = entries.filter(({ event }) => event === "session:cleanup").map(({ session_id }) => session_id);
  assertEquals([ends.length, ends.at(-1)], [4, "ses_1"]);
  assertEquals(entries.filter(({ event }) => event === "task:agent_completed").length, 3);
  assertEquals(entries.at(-1)?.event, "run:end");
  assertEquals(kit.clock.pending, 0);
});

Deno.test("a spawn after cancellation makes nothing", async () => {
  const late: Module["mount"] = (coordinator) =>
    coordinator.mount("tools", {
      name: "calculator",
      description: "Cancels, then spawns",
      async execute() {
        coordinator.requestCancel();
        const spawn = coordinator.getCapability("session.spawn") as (request: JsonObject) => Promise<unknown>;
        return await spawn({ agent: "helper", instruction: "x" });
      },
    });
  const { run, entries } = await agentsKit({ modules: { "tool-calculator": late } }).run(
    planOf([sum(), "never"], { helper: HELPER }),
  );
  assertEquals([run.status, names(entries).includes("task:agent_spawned")], ["cancelled", false]);
});

Deno.test("a run that must stop does not wait for an agent's modules, and makes no agent when they come", async () => {
  const plan = planOf([ASK_HELPER, "never"], { helper: HELPER });
  for (const mode of ["graceful", "immediate"] as const) {
    const fetching = Promise.withResolvers<void>();
    const kit = agentsKit({ fetching: fetching.promise });
    const handle = await kit.start(plan);
    await kit.until(handle.id, ({ event }) => event === "tool:pre");
    await kit.runs.cancel(CALLER, handle.id, mode);
    const run = await handle.settled("end");
    assertEquals([run.status, kit.clock.pending], ["cancelled", 0]);
    fetching.resolve();
    await kit.clock.advance(0);
    assert(!names(await kit.entries(run.id)).includes("task:agent_spawned"));
  }
});

Deno.test("a run waits for a child that a module left behind, and stops it", async () => {
  const careless: Module["mount"] = (coordinator) =>
    coordinator.mount("tools", {
      name: "calculator",
      description: "Spawns and forgets",
      execute() {
        const spawn = coordinator.getCapability("session.spawn") as (request: JsonObject) => Promise<unknown>;
        spawn({ agent: "slow", instruction: "x" }).catch(() => {}); // forgotten: that is the point
        return "on its way";
      },
    });
  const slow = { providers: [script({ delay_ms: 1_000_000, text: "never" })] };
  const { run, entries } = await agentsKit({ modules: { "tool-calculator": careless } }).run(
    planOf([sum(), { delay_ms: 0, text: "done" }], { slow }),
  );
  assertEquals(run.status, "completed");
  const completed = entries.find(({ event }) => event === "task:agent_completed");
  assertEquals(completed?.data.status, "cancelled");
  assertEquals(names(entries).slice(-3), ["session:end", "session:cleanup", "run:end"]);
});

Deno.test("what a child costs is told among its parent's costs, under its name (OBS-03, behaviour.md §9.9)", async () => {
  const told: unknown[] = [];
  const asking: Module["mount"] = (coordinator) =>
    coordinator.mount("tools", {
      name: "calculator",
      description: "Asks for costs",
      async execute() {
        told.push(await coordinator.collectContributions("session.cost"));
        return "asked";
      },
    });
  let calls = 0;
  const priced: Module["mount"] = (coordinator) =>
    coordinator.mount("providers", {
      name: "mock",
      getInfo: () => ({
        id: "mock",
        display_name: "Mock",
        credential_env_vars: [],
        capabilities: [],
        defaults: {},
      }),
      listModels: () => Promise.resolve([]),
      parseToolCalls: () => [],
      complete() {
        calls++;
        const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2, cost_usd: "0.10" };
        const call = (name: string, args: JsonObject) => [{ id: `c${calls}`, name, arguments: args }];
        const tool_calls = coordinator.parent_id !== null
          ? []
          : calls === 1
          ? call("task", { agent: "helper", instruction: "x" })
          : calls === 3
          ? call("task", { session_id: "ses_2", instruction: "again" })
          : calls === 5
          ? call("calculator", {})
          : [];
        return Promise.resolve({
          content: [{ type: "text", text: "ok" }],
          usage,
          ...(tool_calls.length > 0 ? { tool_calls } : {}),
        } as never); // as far as a provider must tell
      },
    });
  const { run } = await agentsKit({ modules: { "tool-calculator": asking, "provider-mock": priced } }).run(
    planOf([], { helper: {} }),
  );
  assertEquals(run.status, "completed");
  assertEquals(told, [[{ cost_usd: "0.2" }]]);
  assertEquals(Number(run.usage.cost_usd), 0.6);
});

/** Each session that was at work is told once that it is to stop, then once that it has. */
function assertOneCancelEach(
  entries: Awaited<ReturnType<ReturnType<typeof agentsKit>["entries"]>>,
  state: string,
): void {
  for (const id of new Set(entries.map(({ session_id }) => session_id))) {
    const told = sessionOf(entries, id).filter(({ event }) => event.startsWith("cancel:"));
    assertEquals(told.map(({ event }) => event), ["cancel:requested", "cancel:completed"], id);
    assertEquals(
      told.map(({ data }) => data.state ?? data.was_immediate),
      [state, state === "immediate"],
      id,
    );
  }
}
