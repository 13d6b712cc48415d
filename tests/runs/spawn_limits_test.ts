/**
 * Limits of sub-agents (depth, sessions, shared limits, prompts, deadlines), their approvals and
 * cancellation.
 */
import { assert, assertEquals, assertStringIncludes } from "../assert.ts";
import type { JsonObject, Message, Module } from "../../src/sdk/types.ts";
import {
  agentsKit,
  CALLER,
  names,
  planOf,
  resultsOf,
  script,
  sessionOf,
  sum,
  tasks,
} from "../support/sub_agents.ts";

const HELPER = { providers: [script("helped", "again", "more")] };
const ASK_HELPER = tasks({ agent: "helper", instruction: "x" });

Deno.test("sub-agents are at most max_depth levels deep", async () => {
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

Deno.test("a run has at most max_sessions sessions, its own included, also with concurrent spawns", async () => {
  const many = Array.from({ length: 5 }, () => ({ agent: "helper", instruction: "x" }));
  const { run, entries } = await agentsKit({ limits: { max_sessions: 3 } }).run(
    planOf([tasks(...many), tasks({ session_id: "ses_2", instruction: "again" }), "done"], {
      helper: HELPER,
    }),
  );
  assertEquals(run.status, "completed");
  const results = resultsOf(entries);
  assertEquals(results.filter(({ success }) => success).length, 3); // two new sessions, and one of them again
  const refused = results.filter(({ success }) => !success);
  assertEquals(refused.length, 3);
  for (const { error } of refused) assertStringIncludes(error?.message ?? "", "max_sessions");
});

Deno.test("a refused spawn does not count as a session", async () => {
  const { entries } = await agentsKit({ limits: { max_sessions: 2 } }).run(
    planOf([tasks({ session_id: "ses_9", instruction: "x" }), ASK_HELPER, "done"], { helper: HELPER }),
  );
  assertEquals(resultsOf(entries).map(({ success }) => success), [false, true]);
});

Deno.test("limits are shared: what a sub-agent used is missing for its parent", async () => {
  const calls = await agentsKit().run(
    planOf([sum(), ASK_HELPER, "done"], { helper: { providers: [script(sum(), sum(), sum(), "never")] } }, {
      limits: { max_tool_calls: 4 },
    }),
  );
  // a calculator, the task, two calculators of the sub-agent: its third is refused
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

/** Answers of a model that always calls a tool, and has a text where it is offered none. */
const looping = (count: number, text: string) => [
  ...Array.from({ length: count }, () => sum()),
  text,
];

Deno.test("a sub-agent that loops leaves its parent a call, in which no tools are offered", async () => {
  const { run, entries } = await agentsKit().run(
    planOf([ASK_HELPER, "the sum is 2 so far"], {
      helper: { providers: [script(...looping(5, "so far 2"))] },
    }, {
      limits: { max_iterations: 8 },
    }),
  );
  assertEquals([run.turn_count, run.output_text], [8, "the sum is 2 so far"]);
  assertEquals([run.status, run.stop_reason], ["incomplete", "limit:max_iterations"]);
  assertEquals(
    resultsOf(entries).map(({ output }) => [output.response, output.stop_reason, output.turn_count]),
    [
      ["so far 2", "limit:max_iterations", 6],
    ],
  );
  const wrapped = entries.filter(({ event, data }) =>
    event === "provider:request" && data.max_reached === true
  );
  assertEquals(wrapped.map(({ session_id, data }) => [session_id, data.iteration]), [["ses_2", 6], [
    "ses_1",
    2,
  ]]);
});

Deno.test("sub-agents that loop at once, and within each other, leave each of their parents a call", async () => {
  const helper = { providers: [script(...looping(30, "never"))] };
  const at_once = await agentsKit().run(
    planOf(
      [tasks(...["a", "b", "c"].map((instruction) => ({ agent: "helper", instruction }))), "what there is"],
      { helper },
      { limits: { max_iterations: 12 } },
    ),
  );
  assertEquals([at_once.run.output_text, at_once.run.turn_count], ["what there is", 12]);
  const down = { providers: [script(ASK_HELPER, "from below")] };
  const nested = await agentsKit({ limits: { max_depth: 2 } }).run(
    planOf([tasks({ agent: "down", instruction: "x" }), "from the top"], { down, helper }, {
      limits: { max_iterations: 9 },
    }),
  );
  assertEquals([nested.run.output_text, nested.run.turn_count], ["from the top", 9]);
  assertEquals(resultsOf(nested.entries).map(({ output }) => output.response), ["", "from below"]);
});

Deno.test("a sub-agent does not begin when the last model call of the run is left", async () => {
  const { run, entries } = await agentsKit().run(
    planOf([ASK_HELPER, "alone"], { helper: HELPER }, { limits: { max_iterations: 2 } }),
  );
  assertEquals([run.output_text, run.turn_count], ["alone", 2]);
  assertStringIncludes(resultsOf(entries)[0]?.error?.message ?? "", "max_iterations");
  assert(!names(entries).includes("task:agent_spawned"));
});

Deno.test("a sub-agent asks for the run's last model call where a person may raise the limit", async () => {
  const kit = agentsKit();
  const handle = await kit.start(
    planOf([ASK_HELPER, "done"], { helper: { providers: [script(sum(), "helped")] } }, {
      limits: { max_iterations: 2, on_limit: "pause" },
    }),
  );
  const { approvals } = await handle.settled("attention");
  assertEquals(approvals.map(({ limit, session_id }) => [limit?.name, session_id]), [[
    "max_iterations",
    "ses_2",
  ]]);
  await kit.runs.raiseLimits(CALLER, handle.id, { max_iterations: 5 });
  const run = await handle.settled("end");
  assertEquals([run.status, run.output_text, run.turn_count], ["completed", "done", 4]);
});

Deno.test("limits of an agent apply to it alone, and never exceed its parent's", async () => {
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

Deno.test("max_duration_s stops the sub-agent, then its parent", async () => {
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

Deno.test("a prompt that exceeds the run's remaining tokens is refused before anything is created", async () => {
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

Deno.test("the deadline of a task is paused while its sub-agent runs; other tools keep theirs", async () => {
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
  Deno.test(`an approval in a sub-agent belongs to the run, has the sub-agent's session_id, and is answered once: ${decision}`, async () => {
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
    const found = sessionOf(entries, "ses_2").find(({ event, data }) =>
      event === "context:message" && (data.message as unknown as Message).role === "tool"
    );
    assertStringIncludes(String((found?.data.message as unknown as Message).content), answer);
    assertEquals(resultsOf(entries)[0]?.success, true);
    assertEquals(names(sessionOf(entries, "ses_2")).includes("tool:post"), success);
    // awaiting approval is a status of the run
    const statuses = entries.filter(({ event }) => event === "run:status");
    assertEquals(statuses.map(({ session_id, data }) => [session_id, data.status]), [
      ["ses_1", "awaiting_approval"],
      ["ses_1", "running"],
    ]);
  });
}

Deno.test("a sub-agent whose prompt a hook denies is a denied task", async () => {
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

Deno.test("graceful cancellation lets the sub-agent finish its step, then both stop", async () => {
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
  // the sub-agent's call finished, and its task has a result
  assertEquals(names(sessionOf(entries, "ses_2")).filter((name) => name === "tool:post"), ["tool:post"]);
  assertEquals(resultsOf(entries).map(({ success, error }) => [success, error?.type]), [[
    false,
    "cancelled",
  ]]);
});

Deno.test("immediate cancellation reaches the sub-agent at once: every call has one result, nothing keeps running", async () => {
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
    return asked.size === 4; // the root, both sub-agents, the nested one
  });
  await kit.runs.cancel(CALLER, handle.id, "immediate");
  const run = await handle.settled("end");
  assertEquals(run.status, "cancelled");
  const entries = await kit.entries(run.id);
  assertOneCancelEach(entries, "immediate");
  const messages = (await kit.runs.sessions.messages(CALLER, "ses_1")).data as unknown as Message[];
  const answers = messages.filter(({ role }) => role === "tool");
  assertEquals(answers.map(({ tool_call_id }) => tool_call_id), ["call_1", "call_2"]);
  for (const { content } of answers) {
    assertEquals(JSON.parse(String(content)), {
      error: "Tool execution was cancelled by user",
      cancelled: true,
      tool: "task",
    });
  }
  // sub-agents end before the run and before their parents
  const ends = entries.filter(({ event }) => event === "session:cleanup").map(({ session_id }) => session_id);
  assertEquals([ends.length, ends.at(-1)], [4, "ses_1"]);
  assertEquals(entries.filter(({ event }) => event === "task:agent_completed").length, 3);
  assertEquals(entries.at(-1)?.event, "run:end");
  assertEquals(kit.clock.pending, 0);
});

Deno.test("a spawn after cancellation creates nothing", async () => {
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

Deno.test("a run that must stop does not wait for a sub-agent's modules, and creates no sub-agent when they arrive", async () => {
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

Deno.test("a run waits for a sub-agent that a module does not await, and stops it", async () => {
  const careless: Module["mount"] = (coordinator) =>
    coordinator.mount("tools", {
      name: "calculator",
      description: "Spawns and forgets",
      async execute() {
        const spawn = coordinator.getCapability("session.spawn") as (request: JsonObject) => Promise<unknown>;
        const spawned = new Promise<void>((resolve) =>
          coordinator.hooks.register("task:agent_spawned", () => (resolve(), { action: "continue" }))
        );
        spawn({ agent: "slow", instruction: "x" }).catch(() => {}); // not awaited on purpose
        await spawned;
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

Deno.test("the cost of a sub-agent is contributed to its parent's cost, under its name", async () => {
  const found: unknown[] = [];
  const asking: Module["mount"] = (coordinator) =>
    coordinator.mount("tools", {
      name: "calculator",
      description: "Asks for costs",
      async execute() {
        found.push(await coordinator.collectContributions("session.cost"));
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
        } as never); // only what a provider must have
      },
    });
  const { run } = await agentsKit({ modules: { "tool-calculator": asking, "provider-mock": priced } }).run(
    planOf([], { helper: {} }),
  );
  assertEquals(run.status, "completed");
  assertEquals(found, [[{ cost_usd: "0.2" }]]);
  assertEquals(Number(run.usage.cost_usd), 0.6);
});

/** Checks that each running session emits one `cancel:requested`, then one `cancel:completed`. */
function assertOneCancelEach(
  entries: Awaited<ReturnType<ReturnType<typeof agentsKit>["entries"]>>,
  state: string,
): void {
  for (const id of new Set(entries.map(({ session_id }) => session_id))) {
    const found = sessionOf(entries, id).filter(({ event }) => event.startsWith("cancel:"));
    assertEquals(found.map(({ event }) => event), ["cancel:requested", "cancel:completed"], id);
    assertEquals(
      found.map(({ data }) => data.state ?? data.was_immediate),
      [state, state === "immediate"],
      id,
    );
  }
}
