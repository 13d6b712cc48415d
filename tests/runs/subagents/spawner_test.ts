/**
 * Sub-agents over real plans, policy and kernel: events, history, resuming, refusals. Limits and
 * cancellation: spawn_limits_test.ts.
 */
import { assert, assertEquals, assertMatch } from "../../assert.ts";
import type { JsonObject, Message, Module, Tool } from "../../../src/sdk/types.ts";
import type { MemoryStore } from "../../../src/store/memory.ts";
import { codeOf } from "../../support/asking_runs.ts";
import { SlowStore, storedSession } from "../../support/runs.ts";
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
} from "../../support/sub_agents.ts";

const HELPER = { description: "Helps", system: "You help.", providers: [script(sum("6*7"), "It is 42.")] };
const ASK_HELPER = tasks({ agent: "helper", instruction: "What is 6 × 7?" });

Deno.test("session.spawn records the sub-agent in its parent's log, between tool:pre and tool:post", async () => {
  const { run, entries } = await agentsKit().run(
    planOf([ASK_HELPER, "42, says the helper."], { helper: HELPER }, {
      spawn: { exclude_tools: ["tool-task"] },
    }),
  );
  assertEquals([run.status, run.output_text], ["completed", "42, says the helper."]);
  const at = (event: string) =>
    entries.findIndex((entry) => entry.event === event && entry.data.tool_name === "task");
  const pre = entries[at("tool:pre")]!;
  const between = entries.slice(at("tool:pre") + 1, at("tool:post"));
  const call = {
    agent: "helper",
    sub_session_id: "ses_2",
    parent_session_id: "ses_1",
    tool_call_id: "call_1",
    parallel_group_id: pre.data.parallel_group_id!,
  };
  const [spawned, completed] = [between.shift()!, between.pop()!];
  assertEquals([spawned.event, spawned.session_id, spawned.data], ["task:agent_spawned", "ses_1", call]);
  assertEquals([completed.event, completed.session_id], ["task:agent_completed", "ses_1"]);
  assertEquals(completed.data, {
    ...call,
    status: "completed",
    stop_reason: "end_turn",
    turn_count: 2,
    error: null,
  });
  assert(between.every((entry) => entry.session_id === "ses_2" && entry.parent_id === "ses_1"));
  assertEquals(names(between), [
    ...["module:mounted", "module:mounted", "module:mounted", "module:mounted"],
    ...["session:fork", "session:start", "context:message", "execution:start", "prompt:submit"],
    ...["context:message", "provider:request", "content_block:start", "content_block:end", "session:state"],
    ...["provider:response", "context:message", "tool:pre", "tool:post", "context:message"],
    ...["provider:request", "content_block:start", "content_block:end", "session:state"],
    ...["provider:response", "context:message", "prompt:complete", "execution:end"],
    ...["orchestrator:complete", "session:end", "session:cleanup"],
  ]);
  const metadata = { agent: "helper", depth: 1 };
  const dataOf = (event: string) => between.find((entry) => entry.event === event)!.data;
  assertEquals(dataOf("session:fork"), { parent: "ses_1", session_id: "ses_2", metadata });
  assertEquals(dataOf("session:start"), { session_id: "ses_2", parent_id: "ses_1", metadata });
  assertEquals(dataOf("execution:start"), { prompt: "What is 6 × 7?" });
  assert(sessionOf(entries, "ses_1").every((entry) => entry.parent_id === undefined));
});

Deno.test("session.spawn gives a sub-agent a turn and iterations of its own", async () => {
  const { entries } = await agentsKit().run(planOf([sum(), ASK_HELPER, "done"], { helper: HELPER }));
  const turns = (id: string) =>
    new Set(sessionOf(entries, id).flatMap(({ turn_id }) => turn_id === undefined ? [] : [turn_id]));
  const iterations = (id: string, event: string) =>
    sessionOf(entries, id).filter((entry) => entry.event === event).map((entry) => entry.iteration);
  assertEquals([[...turns("ses_1")], [...turns("ses_2")]], [["turn_1"], ["turn_2"]]);
  assertEquals(iterations("ses_1", "provider:request"), [1, 2, 3]);
  assertEquals(iterations("ses_2", "provider:request"), [1, 2]);
  assertEquals(iterations("ses_1", "task:agent_completed"), [2]);
});

Deno.test("the run object counts what sub-agents did; their history and state are their own", async () => {
  const { runs, run } = agentsKit();
  const { run: ended, entries } = await run(planOf([ASK_HELPER, "done"], { helper: HELPER }));
  assertEquals([ended.turn_count, ended.tool_call_count], [4, 2]);
  const results = entries.filter((entry) => entry.event === "provider:response")
    .map((entry) => Number((entry.data.usage as JsonObject).total_tokens));
  assertEquals([results.length, ended.usage.total_tokens], [
    4,
    results.reduce((total, one) => total + one, 0),
  ]);
  const roles = async (id: string) => (await runs.sessions.messages(CALLER, id)).data.map(({ role }) => role);
  assertEquals(await roles("ses_1"), ["user", "assistant", "tool", "assistant"]);
  assertEquals(await roles("ses_2"), ["system", "user", "assistant", "tool", "assistant"]);
  const { parent_id, metadata, run_count } = await runs.sessions.get(CALLER, "ses_2");
  assertEquals([parent_id, metadata, run_count], ["ses_1", { agent: "helper" }, 1]);
  const states = entries.filter((entry) => entry.event === "session:state");
  assertEquals(states.map(({ session_id, data }) => [session_id, data.set]), [
    ["ses_1", { "provider-mock": { calls: 1 } }],
    ["ses_2", { "provider-mock": { calls: 1 } }],
    ["ses_2", { "provider-mock": { calls: 2 } }],
    ["ses_1", { "provider-mock": { calls: 2 } }],
  ]);
});

Deno.test("tool-task returns the answer of the sub-agent", async () => {
  const { entries } = await agentsKit().run(planOf([ASK_HELPER, "done"], { helper: HELPER }));
  assertEquals(resultsOf(entries), [{
    success: true,
    output: {
      response: "It is 42.",
      session_id: "ses_2",
      agent: "helper",
      status: "completed",
      turn_count: 2,
    },
    error: null,
  }]);
});

Deno.test("session.spawn without an agent uses the plan itself, with an empty history", async () => {
  const plan = planOf([tasks({ instruction: "you again" }), "end"], {}, { system: "Be brief." });
  const { entries } = await agentsKit({ limits: { max_depth: 1 } }).run(plan);
  const child = sessionOf(entries, "ses_2");
  assertEquals(
    child.filter(({ event }) => event === "module:mounted").map(({ data }) => data.module_id),
    ["loop-streaming", "context-simple", "provider-mock", "tool-task", "tool-calculator"],
  );
  const said = child.filter(({ event }) => event === "context:message")
    .map(({ data }) => (data.message as unknown as Message).content);
  assertEquals(said.slice(0, 2), ["Be brief.", "you again"]);
});

Deno.test("the plan of a sub-agent is merged: overlay over parent, spawn and agents filters", async () => {
  const seen: JsonObject[] = [];
  const kit = agentsKit({
    modules: {
      "tool-todo": async (coordinator, config) => {
        if (coordinator.parent_id === null) return void await coordinator.mount("tools", todo);
        seen.push({ plan: coordinator.config, config });
        await coordinator.mount("tools", todo);
      },
    },
  });
  const todo = { name: "todo", description: "A list", execute: () => "ok" };
  const plan = planOf([tasks({ agent: "lister", instruction: "x" }), "done"], {
    lister: {
      system: { instruction: "You list." },
      tools: [{ module: "tool-todo", config: { y: 2, denied_paths: ["Q"] } }, "tool-task"],
      agents: ["lister"],
      providers: [script("listed")],
    },
    other: {},
  }, {
    tools: ["tool-task", "tool-calculator", { module: "tool-todo", config: { x: 1, denied_paths: ["P"] } }],
    spawn: { exclude_tools: ["tool-calculator"] },
  });
  const { run } = await kit.run(plan);
  assertEquals([run.status, seen.length], ["completed", 1]);
  const merged = seen[0]!.plan as JsonObject;
  assertEquals(seen[0]!.config, { x: 1, y: 2, denied_paths: ["P", "Q"] });
  assertEquals(merged.tools, ["tool-task", { module: "tool-todo", config: seen[0]!.config! }]);
  assertEquals(Object.keys(merged.agents as JsonObject), ["lister"]);
  assertEquals(merged.system, { instruction: "You list." });
  assertEquals(Object.keys(plan.agents as JsonObject), ["lister", "other"]);
});

Deno.test("a task continues a sub-agent of this session, in the same run and in a later one", async () => {
  const kit = agentsKit();
  const plan = planOf([
    tasks({ agent: "helper", instruction: "first" }),
    tasks({ session_id: "ses_2", instruction: "second" }),
    "end of the first run",
    tasks({ session_id: "ses_2", instruction: "third" }),
    "end of the second run",
  ], { helper: { providers: [script("one", "two", "three")] } });
  const first = await kit.run(plan);
  assertEquals(resultsOf(first.entries).map(({ output }) => output.response), ["one", "two"]);
  assertEquals(names(first.entries).filter((name) => name.startsWith("task:") || name === "session:fork"), [
    ...["task:agent_spawned", "session:fork", "task:agent_completed"],
    ...["task:agent_resumed", "task:agent_completed"],
  ]);
  const second = await kit.run(plan, { session_id: "ses_1" });
  assertEquals(second.run.output_text, "end of the second run");
  assertEquals(resultsOf(second.entries).map(({ output }) => output.response), ["three"]);
  const child = names(sessionOf(second.entries, "ses_2"));
  assertEquals(child.filter((name) => name.startsWith("session:")), [
    ...["session:resume", "session:state", "session:end", "session:cleanup"],
  ]);
  const { data: messages } = await kit.runs.sessions.messages(CALLER, "ses_2");
  assertEquals(messages.filter(({ role }) => role === "user").map(({ content }) => content), [
    ...["first", "second", "third"],
  ]);
});

Deno.test("a sub-agent belongs to its parent session alone", async () => {
  const kit = agentsKit();
  await kit.run(planOf([ASK_HELPER, "done"], { helper: HELPER }));
  for (const id of ["ses_2", "ses_1", "unknown"]) {
    const { entries } = await kit.run(planOf([tasks({ session_id: id, instruction: "mine?" }), "done"]));
    assertEquals(resultsOf(entries)[0]?.error?.type, "not_found");
    assert(!names(entries).some((name) => name.startsWith("task:")));
  }
});

Deno.test("two concurrent tasks for one sub-agent: one fails with session_busy", async () => {
  const kit = agentsKit();
  const plan = planOf([
    tasks({ agent: "helper", instruction: "x" }),
    "end",
    tasks({ session_id: "ses_2", instruction: "a" }, { session_id: "ses_2", instruction: "b" }),
    "end",
  ], { helper: { providers: [script("one", "two")] } });
  await kit.run(plan);
  const { entries } = await kit.run(plan, { session_id: "ses_1" });
  const results = resultsOf(entries);
  assertEquals(results.filter(({ success }) => success).map(({ output }) => output.response), ["two"]);
  assertEquals(results.filter(({ success }) => !success).map(({ error }) => error?.type), ["session_busy"]);
});

Deno.test("remove() deletes a session with the sessions of its sub-agents, nested ones included", async () => {
  const kit = agentsKit({ limits: { max_depth: 2 } });
  const helper = { providers: [script(tasks({ agent: "helper", instruction: "y" }), "one")] };
  await kit.run(planOf([ASK_HELPER, "done"], { helper }));
  const ids = async () => (await kit.runs.sessions.list(CALLER, {})).data.map(({ id }) => id).toSorted();
  assertEquals(await ids(), ["ses_1", "ses_2", "ses_3"]);
  await kit.runs.sessions.remove(CALLER, "ses_1");
  assertEquals(await ids(), []);
});

/** A store that another process shares. */
class SharedStore extends SlowStore {
  changed(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
  }
}

Deno.test("remove() refuses a session while another process has a run of one of its sub-agents' sessions", async () => {
  const store = (memory: MemoryStore) => new SharedStore(memory);
  const kit = agentsKit({ store });
  const slow = { providers: [script("one", { delay_ms: 1_000, text: "two" })] };
  await kit.run(planOf([tasks({ agent: "slow", instruction: "x" }), "done"], { slow }));
  const other = agentsKit({ store, beside: kit });
  const handle = await other.runs.create({ prompt: "go", session_id: "ses_2" }, CALLER);
  assertEquals(await codeOf(() => kit.runs.sessions.remove(CALLER, "ses_1")), "session_busy");
  for (let steps = 0; steps < 20; steps++) await kit.clock.advance(100);
  assertEquals((await handle.settled("end")).status, "completed");
  await kit.runs.sessions.remove(CALLER, "ses_1");
  assertEquals((await kit.runs.sessions.list(CALLER, {})).data, []);
});

const BAD: [string, JsonObject, RegExp][] = [
  ["the plan has no such agent", { agent: "unknown", instruction: "x" }, /helper/],
  ["the instruction is blank", { instruction: "  " }, /instruction must be text/],
  [
    "agent and session_id are both given",
    { agent: "helper", session_id: "s", instruction: "x" },
    /not both/,
  ],
];
for (const [when, input, text] of BAD) {
  Deno.test(`a task spawns nothing and the run continues when ${when}`, async () => {
    const { run, entries } = await agentsKit().run(planOf([tasks(input), "done"], { helper: HELPER }));
    assertEquals([run.status, names(entries).some((name) => name.startsWith("task:"))], ["completed", false]);
    const answer = entries.find(({ event, data }) =>
      event === "context:message" && (data.message as JsonObject).role === "tool"
    );
    assertMatch(String((answer?.data.message as JsonObject).content), text);
  });
}

Deno.test("a sub-agent whose modules cannot be mounted is a failed result, and task:agent_completed has its error", async () => {
  // each is valid, their combination fails at mount
  const config = { target_usage: 0.9, compact_threshold: 0.5 };
  const broken = { session: { context: { module: "context-simple", config } } };
  const { run, entries } = await agentsKit().run(
    planOf([tasks({ agent: "broken", instruction: "x" }), "done"], { broken }),
  );
  assertEquals(run.status, "completed");
  assertEquals(resultsOf(entries).map(({ success, error }) => [success, error?.type]), [[false, "failed"]]);
  const { status, error } = entries.find(({ event }) => event === "task:agent_completed")!.data;
  assertEquals([status, (error as JsonObject).code], ["failed", "module_load_failed"]);
});

Deno.test("a sub-agent that fails is a failed tool result, and its session can be continued", async () => {
  const failing = { error: { type: "AuthenticationError", message: "no" } };
  const { entries } = await agentsKit().run(
    planOf([
      tasks({ agent: "shaky", instruction: "x" }),
      tasks({ session_id: "ses_2", instruction: "again" }),
      "done",
    ], { shaky: { providers: [script(failing, "better")] } }),
  );
  const [first, second] = resultsOf(entries);
  assertEquals([first?.success, first?.error?.session_id], [false, "ses_2"]);
  assertEquals([second?.success, second?.output.response], [true, "better"]);
});

Deno.test("a task inherits the messages it asks for, and nothing else of the history", async () => {
  const kit = agentsKit();
  const plan = planOf([
    "Hello.",
    sum(),
    "Two.",
    tasks({ agent: "helper", instruction: "Do it", inherit_context: "recent", inherit_context_turns: 2 }, {
      agent: "helper",
      instruction: "Do it",
      inherit_context: "all",
    }),
    "done",
  ], { helper: { providers: [script("ok")] } });
  await kit.run(plan, { prompt: "Hi" });
  await kit.run(plan, { prompt: "1+1?", session_id: "ses_1" });
  const { entries } = await kit.run(plan, { prompt: "Now hand it out", session_id: "ses_1" });
  const prompts = entries.filter(({ event, parent_id }) => event === "execution:start" && parent_id)
    .map(({ data }) => data.prompt);
  // both tasks run at once: either may start first
  assertEquals(prompts.toSorted(), [
    "The conversation so far:\n\nUser: 1+1?\n\nAssistant: Two.\n\nUser: Now hand it out\n\nYour task:\nDo it",
    "The conversation so far:\n\nUser: Hi\n\nAssistant: Hello.\n\nUser: 1+1?\n\nAssistant: Two.\n\n" +
    "User: Now hand it out\n\nYour task:\nDo it",
  ]);
});

Deno.test("a preference of a task selects among the providers of the agent's plan, before the overlay's", async () => {
  const mock = (instance_id: string, text: string, priority: number) => ({
    module: "provider-mock",
    instance_id,
    config: { responses: [text], priority, models: [`${instance_id}-large`, `${instance_id}-small`] },
  });
  const asked = (provider_preferences: JsonObject[]) =>
    tasks({ agent: "helper", instruction: "x", provider_preferences });
  const { entries } = await agentsKit().run({
    ...planOf([]),
    providers: [
      script(
        tasks({ agent: "helper", instruction: "x" }),
        asked([{ provider: "unknown" }, { provider: "slow" }]),
        asked([{ provider: "fast", model: "*-huge" }, { provider: "slow", model: "slow-*" }]),
        "done",
      ),
      mock("fast", "fast", 200),
      mock("slow", "slow", 300),
    ],
    agents: { helper: { provider_preferences: [{ provider: "fast" }] } },
  });
  assertEquals(resultsOf(entries).map(({ output }) => output.response), ["fast", "slow", "slow"]);
});

Deno.test("session.resume continues a sub-agent of this session, and nothing else", async () => {
  const results: unknown[] = [];
  const resuming: Module["mount"] = (coordinator) =>
    coordinator.mount("tools", {
      name: "calculator",
      description: "Continues an agent",
      async execute(_input, call) {
        const resume = coordinator.getCapability("session.resume") as (
          request: JsonObject,
        ) => Promise<unknown>;
        for (
          const request of [{ instruction: "x" }, { agent: "helper", session_id: "ses_2", instruction: "x" }]
        ) {
          results.push(await resume(request).catch((error) => error.code));
        }
        return await resume({ session_id: "ses_2", instruction: "second", tool_call_id: call?.id });
      },
    } as Tool);
  const { run, entries } = await agentsKit({ modules: { "tool-calculator": resuming } }).run(
    planOf([ASK_HELPER, sum(), "done"], { helper: { providers: [script("one", "two")] } }),
  );
  assertEquals([run.output_text, results], ["done", ["request_invalid", "request_invalid"]]);
  const resumed = entries.find(({ event }) => event === "task:agent_resumed")!;
  assertEquals([resumed.data.sub_session_id, resumed.data.tool_call_id], ["ses_2", "call_2"]);
  const result = entries.find(({ event, data }) => event === "tool:post" && data.tool_call_id === "call_2")!
    .data.result as { output: JsonObject };
  assertEquals([result.output.output, result.output.session_id, result.output.status], [
    "two",
    "ses_2",
    "completed",
  ]);
});

Deno.test("shared keys of session_state go to sub-agents, and come back where the parent lacks them", async () => {
  const seen: JsonObject[] = [];
  const noting: Module["mount"] = (coordinator) =>
    coordinator.mount("tools", {
      name: "calculator",
      description: "Notes",
      execute() {
        const { session_state: state, parent_id } = coordinator;
        seen.push(Object.fromEntries(Object.entries(state).filter(([key]) => key.startsWith("shared:"))));
        state["shared:both"] = parent_id === null ? "parent" : "child";
        state[parent_id === null ? "shared:parent" : "shared:child"] = 1;
        state.own = 1;
        return Promise.resolve(null);
      },
    } as Tool);
  const kit = agentsKit({ modules: { "tool-calculator": noting } });
  const { run } = await kit.run(
    planOf([sum(), ASK_HELPER, sum(), "done"], { helper: { providers: [script(sum(), sum(), "done")] } }),
  );
  assertEquals([run.status, seen], ["completed", [
    {},
    { "shared:both": "parent", "shared:parent": 1 },
    { "shared:both": "child", "shared:parent": 1, "shared:child": 1 },
    { "shared:both": "parent", "shared:parent": 1, "shared:child": 1 },
  ]]);
  const { session_state } = await storedSession(kit.memory, run.session_id);
  assertEquals(session_state["shared:child"], 1);
});

Deno.test("the model_role of an overlay is resolved by a module: the first role that it knows, after preferences", async () => {
  const roles: string[] = [];
  const resolving: Module["mount"] = (coordinator) => {
    coordinator.registerCapability("model_role_resolver", (role: string) => {
      roles.push(role);
      return Promise.resolve(role === "fast" ? [{ provider: "nowhere" }, { provider: "second" }] : null);
    });
    coordinator.hooks.register("session:end", () => null);
  };
  const two = [
    { ...script("from the first"), id: "first" },
    { ...script("from the second"), id: "second" },
  ].map(({ id, ...spec }) => ({ ...spec, instance_id: id }));
  const plan = (overlay: JsonObject) =>
    planOf([ASK_HELPER, "done"], { helper: { providers: two, ...overlay } }, { hooks: ["hooks-timing"] });
  const answerOf = async (overlay: JsonObject, modules: Record<string, Module["mount"]>) =>
    resultsOf((await agentsKit({ modules }).run(plan(overlay))).entries)[0]?.output.response;
  const modules = { "hooks-timing": resolving };
  const preferred = { provider_preferences: [{ provider: "first" }] };
  assertEquals(await answerOf({ model_role: ["best", "fast", "cheap"] }, modules), "from the second");
  assertEquals(roles, ["best", "fast"]);
  assertEquals(await answerOf({ model_role: "fast", ...preferred }, modules), "from the first");
  // without a resolver, or with an unknown role, the plan's own provider is used
  const own = await answerOf({}, {});
  assertEquals(await answerOf({ model_role: "fast" }, {}), own);
  assertEquals(await answerOf({ model_role: "unknown" }, modules), own);
});

Deno.test("usage of a sub-agent is stored with its session and given to its context when it continues", async () => {
  const seen: unknown[] = [];
  const looking: Module["mount"] = (coordinator) => {
    if (coordinator.parent_id !== null) {
      seen.push((coordinator.getCapability("session.usages") as () => unknown)());
    }
    coordinator.hooks.register("session:end", () => null);
  };
  const one = { text: "one", usage: { input_tokens: 77, output_tokens: 1 } };
  const kit = agentsKit({ modules: { "hooks-timing": looking } });
  const plan = planOf([
    ASK_HELPER,
    tasks({ session_id: "ses_2", instruction: "again" }),
    "end",
    tasks({ session_id: "ses_2", instruction: "later" }),
    "end",
  ], {
    helper: { providers: [script(one, { ...one, usage: { input_tokens: 99, output_tokens: 1 } }, "three")] },
  }, {
    hooks: ["hooks-timing"],
  });
  await kit.run(plan);
  await kit.run(plan, { session_id: "ses_1" });
  assertEquals(seen, [
    [],
    [{ messages: 1, input_tokens: 77 }],
    [{ messages: 1, input_tokens: 77 }, { messages: 3, input_tokens: 99 }],
  ]);
});
