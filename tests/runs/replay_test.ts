/** Replay: all scenarios replay without a difference; another agent is said in words. */
import { assert, assertEquals, assertMatch, assertRejects } from "../assert.ts";
import { withAnswers } from "../../src/runs/storage/fork.ts";
import type { Recording } from "../../src/runs/types.ts";
import type { ContextManager, HookRegistry, JsonObject, Prompt, Tool } from "../../src/sdk/types.ts";
import { hook, tool } from "../support/sessions.ts";
import { CALLER, replayed, type Service, service, type TestPlan } from "../support/runs.ts";
import { mock, play, runToEnd, type Scenario } from "./play.ts";
import { SCENARIOS } from "./scenarios.ts";

for (const [name, scenario] of Object.entries(SCENARIOS)) {
  Deno.test(`replay() is equal: ${name}`, async () => {
    const { service, run } = await play(scenario);
    assertEquals(await replayed(service, run.id), { equal: true });
  });
}

/** Returns a recording of a scenario, as JSON. */
async function recorded(
  name = "a tool call with approval",
): Promise<{ service: Service; recording: Recording }> {
  const { service, run } = await play(SCENARIOS[name]!);
  return { service, recording: JSON.parse(JSON.stringify(await service.runs.recording(CALLER, run.id))) };
}

Deno.test("replay() of a recording from a file is equal, in another process", async () => {
  const { recording } = await recorded();
  const elsewhere = service({ plans: { plan: SCENARIOS["a tool call with approval"]!.plan } });
  assertEquals(await replayed(elsewhere, recording), { equal: true });
});

const SEARCH: TestPlan = {
  providers: [
    mock(
      { tool_calls: [{ name: "grep", arguments: { pattern: "x" } }, { name: "list", arguments: {} }] },
      { tool_calls: [{ name: "read", arguments: { path: "a.ts" } }] },
      "It is in a.ts.",
    ),
  ],
  tools: [tool("grep"), tool("list"), tool("read")],
};

/** A recording of three calls in two answers. */
async function search(): Promise<{ service: Service; recording: Recording; called: Recording["events"] }> {
  const { service, run } = await play({ plan: SEARCH });
  const recording: Recording = JSON.parse(JSON.stringify(await service.runs.recording(CALLER, run.id)));
  return { service, recording, called: recording.events.filter(({ event }) => event === "tool:pre") };
}

/** Leaves an entry out and numbers the others again. */
function without(recording: Recording, left_out: unknown): Recording {
  const events = recording.events.filter((entry) => entry !== left_out)
    .map((entry, index) => ({ ...entry, seq: index + 1 }));
  return { ...recording, events };
}

const DIFFERENCES: readonly (readonly [
  name: string,
  change: (recording: Recording, called: Recording["events"]) => Recording | void,
  message: string,
  where: JsonObject,
])[] = [
  [
    "another tool",
    (_, [call]) => void (call!.data.tool_name = "find"),
    'call 1 of turn 1: recorded find {"pattern":"x"}, now grep {"pattern":"x"}',
    {
      what: "call",
      call: 1,
      recorded: { name: "find", input: { pattern: "x" } },
      replayed: { name: "grep", input: { pattern: "x" } },
    },
  ],
  [
    "another input",
    (_, called) => void (called[2]!.data.tool_input = { path: "b.ts" }),
    'call 3 of turn 1: recorded read {"path":"b.ts"}, now read {"path":"a.ts"}',
    { what: "call", call: 3 },
  ],
  [
    "another order",
    (_, [first, , last]) => {
      const { tool_name, tool_input } = first!.data;
      Object.assign(first!.data, { tool_name: last!.data.tool_name, tool_input: last!.data.tool_input });
      Object.assign(last!.data, { tool_name, tool_input });
    },
    'call 1 of turn 1: recorded read {"path":"a.ts"}, now grep {"pattern":"x"}',
    { what: "call", call: 1 },
  ],
  [
    "a call more",
    (recording, called) => without(recording, called[2]),
    'call 3 of turn 1: recorded no call, now read {"path":"a.ts"}',
    { what: "call", call: 3, recorded: null },
  ],
  [
    "a model call more",
    (recording) =>
      without(recording, recording.events.findLast(({ event }) => event === "provider:response")),
    "model call 3 of turn 1: recorded no further answer, now one is asked for",
    { what: "model_call", call: 3 },
  ],
  [
    "another final text",
    ({ run }) => void (run.output_text = "It is nowhere."),
    'final text of turn 1: recorded "It is nowhere.", now "It is in a.ts."',
    { what: "output_text", call: null, recorded: "It is nowhere.", replayed: "It is in a.ts." },
  ],
  [
    "another status",
    ({ run }) => void (run.status = "denied"),
    "status of turn 1: recorded denied, now completed",
    { what: "status", call: null, recorded: "denied", replayed: "completed" },
  ],
];

for (const [name, change, message, where] of DIFFERENCES) {
  Deno.test(`replay() says in words what differs: ${name}`, async () => {
    const { service, recording, called } = await search();
    const { equal, first_difference } = await replayed(service, change(recording, called) ?? recording);
    assertEquals([equal, first_difference?.message], [false, message]);
    assertEquals({ ...first_difference, ...where }, first_difference);
    assertEquals([first_difference?.session_id, first_difference?.turn], [recording.run.session_id, 1]);
  });
}

Deno.test("replay() ignores the order of fields and everything but calls, end and text", async () => {
  const { service, recording, called } = await search();
  called[0]!.data.tool_input = { pattern: "x", more: undefined };
  const events = recording.events.map((entry) => ({ ...entry, data: { ...entry.data, another: true } }));
  const others = events.filter(({ event }) => event !== "content_block:delta" && event !== "session:state")
    .map((entry, index) => ({ ...entry, seq: index + 1 }));
  assertEquals(await replayed(service, { ...recording, events: others }), { equal: true });
});

Deno.test("replay() says what another loop does, and calls neither provider, tool nor hook", async () => {
  const { recording } = await search();
  let called = 0;
  const idle = [() => void called++];
  const plans = (more: Partial<TestPlan>) => ({
    plan: { ...SEARCH, providers: idle, tools: idle, hooks: idle, ...more },
  });
  const messageOf = async (more: Partial<TestPlan>) => {
    const report = await replayed(serviceWith(plans(more)), recording);
    return report.first_difference?.message ?? null;
  };
  assertEquals(await messageOf({ system: "Be long." }), null);
  assertEquals(
    await messageOf({ loop: { max_iterations: 1 } }),
    'call 3 of turn 1: recorded read {"path":"a.ts"}, now no call',
  );
  const eager: TestPlan["orchestrator"] = async (coordinator) =>
    await coordinator.mount("orchestrator", {
      async execute(_prompt: Prompt, _c: unknown, _p: unknown, tools: Record<string, Tool>, _h: unknown) {
        await tools.list!.execute({ all: true });
        return "never asked";
      },
    });
  assertEquals(
    await messageOf({ orchestrator: eager }),
    'call 1 of turn 1: recorded grep {"pattern":"x"}, now list {"all":true}',
  );
  assertEquals(called, 0);
});

Deno.test("replay() and requests() end for a loop that does not", async () => {
  const runaway: TestPlan["orchestrator"] = async (coordinator) =>
    await coordinator.mount("orchestrator", {
      async execute(prompt: Prompt, _c: unknown, _p: unknown, _t: unknown, hooks: HookRegistry) {
        await hooks.emit("execution:start", { prompt });
        await hooks.emit("provider:request", { provider: "mock", iteration: 1 });
        for (let tick = 0;; tick++) {
          await hooks.emit("test:tick", { tick });
          await new Promise((resolve) => setTimeout(resolve)); // as a sandbox, which answers messages
        }
      },
    });
  const { service, run } = await play({ plan: { orchestrator: runaway, limits: { max_duration_s: 1 } } });
  assertEquals(run.stop_reason, "limit:max_duration_s");
  const { first_difference } = await replayed(service, run.id);
  assertMatch(first_difference!.message, /came to nothing that is recorded for 10 seconds/);
  let done = false;
  const page = service.runs.requests(CALLER, run.id).finally(() => done = true);
  for (let steps = 0; !done && steps < 5_000; steps++) await service.clock.advance(5);
  assert(done);
  assertEquals((await page).data, []);
});

Deno.test("replay() refuses a log without responses, or without an end, as not_replayable", async () => {
  const { service, recording } = await recorded();
  const silent = recording.events.map((entry) => {
    if (entry.event !== "provider:response") return entry;
    const { response: _, ...data } = entry.data;
    return { ...entry, data };
  });
  for (
    const [changed, fact] of [
      [{ ...recording, events: silent }, /does not put the response into provider:response/],
      [{ ...recording, events: recording.events.slice(0, -1) }, /it has not ended/],
      [{ ...recording, events: recording.events.toSpliced(-2, 1) }, /entry \d+ has seq \d+/],
      [{ ...recording, replay: { ...recording.replay, surface: null } }, /never initialised/],
    ] as [Recording, RegExp][]
  ) {
    const error = await replayed(service, changed).then(() => null, (error) => error);
    assertEquals(error.code, "not_replayable");
    assertMatch(error.message, fact);
  }
  await assertRejects(() => service.runs.replay(CALLER, "run_none"), Error, "Cannot find run");
});

Deno.test("replay() is equal when secrets were redacted", async () => {
  const plan: TestPlan = {
    providers: [mock({ tool_calls: [{ name: "open", arguments: { password: "opensesame" } }] }, "opened")],
    tools: [tool("open", ({ password }) => Promise.resolve({ token: password, door: "open" }))],
    secrets: ["opensesame"],
  };
  const { service, run, entries } = await play({ plan });
  assertEquals(JSON.stringify(entries).includes("opensesame"), false);
  assertEquals(await replayed(service, run.id), { equal: true });
});

Deno.test("rerun() continues from any entry in a new session whose metadata name the origin", async () => {
  const scenario = SCENARIOS["a tool call with approval"]!;
  const { service, run } = await play(scenario);
  for (let from_event = 1; from_event <= 38; from_event++) {
    const handle = await service.runs.rerun(CALLER, run.id, { from_event });
    const again = await runToEnd(service, handle.id, scenario);
    assertEquals([from_event, again.status, again.output_text], [from_event, "completed", "6 × 7 is 42."]);
    assertEquals(again.session_id === run.session_id, false);
    const session = await service.runs.sessions.get(CALLER, again.session_id);
    assertEquals(session.parent_id, run.session_id);
    const { forked_from_run, forked_from_event } = session.metadata;
    assertEquals([forked_from_run, forked_from_event], [run.id, from_event]);
    const { data: messages } = await service.runs.sessions.messages(CALLER, again.session_id);
    assertEquals(messages.map(({ role }) => role), ["system", "user", "assistant", "tool", "assistant"]);
    assertEquals([from_event, await replayed(service, again.id)], [from_event, { equal: true }]);
  }
});

Deno.test("rerun() with another plan uses it from the entry on", async () => {
  const scenario = SCENARIOS["a tool call with approval"]!;
  const other: TestPlan = {
    ...scenario.plan,
    system: "Be discreet.",
    providers: [mock("never", "I would rather not say.")],
    hooks: [],
  };
  const made = serviceWith({ plan: scenario.plan, other });
  const { run } = await play(scenario, made);
  const handle = await made.runs.rerun(CALLER, run.id, { from_event: 24, plan: { name: "other" } });
  const again = await runToEnd(made, handle.id, {} as Scenario);
  assertEquals(again.output_text, "I would rather not say.");
  const names = await made.names(again.id);
  assertEquals(names.includes("prompt:submit"), false);
  assertEquals(names.includes("tool:pre"), false);
  assertEquals(names.filter((event) => event === "provider:request").length, 1);
  const { data: [sent] } = await made.runs.requests(CALLER, again.id);
  assertEquals(sent!.messages.map(({ role }) => role), ["system", "user", "assistant", "tool"]);
  assertEquals(sent!.messages[0]!.content, "Be discreet.");
  const forked_from = { run_id: run.id, seq: 24 };
  assertEquals([run.forked_from, again.forked_from], [null, forked_from]);
  assertEquals((await made.entries(again.id))[0]!.data.forked_from, forked_from);
  const followed = await made.finish(null, { session_id: again.session_id });
  assertEquals(followed.forked_from, null);
});

Deno.test("rerun() refuses an entry that does not exist, and a loop that is not resumable", async () => {
  const { service, run } = await play(SCENARIOS["a text answer"]!);
  for (const from_event of [0, 999]) {
    const error = await service.runs.rerun(CALLER, run.id, { from_event }).then(() => null, (error) => error);
    assertEquals(error.code, "request_invalid");
  }
  const plan: TestPlan = {
    orchestrator: async (coordinator) =>
      await coordinator.mount("orchestrator", {
        async execute(prompt: Prompt, context: ContextManager, _p: unknown, _t: unknown, _h: unknown) {
          await context.addMessage({ role: "user", content: prompt });
          return "plain";
        },
      }),
  };
  const plain = await play({ plan });
  const last = plain.entries.length;
  const error = await plain.service.runs.rerun(CALLER, plain.run.id, { from_event: last })
    .then(() => null, (error) => error);
  assertEquals(error.code, "not_replayable");
  const handle = await plain.service.runs.rerun(CALLER, plain.run.id, { from_event: 1 });
  assertEquals((await runToEnd(plain.service, handle.id, {} as Scenario)).output_text, "plain");
});

Deno.test("fork() cuts the history at a turn, answers open calls, and records its origin", async () => {
  const plan: TestPlan = {
    providers: [mock("one", { tool_calls: [{ name: "a", arguments: {} }] }, "two", "three", "four")],
    tools: [tool("a")],
  };
  const made = serviceWith({ plan });
  const { session_id } = await made.finish("plan", { prompt: "first" });
  for (const prompt of ["second", "third"]) await made.finish(null, { prompt, session_id });
  const { sessions } = made.runs;
  const fork = await sessions.fork(CALLER, session_id, { turn: 2 });
  assertEquals([fork.parent_id, fork.run_count, fork.metadata.forked_from_turn], [session_id, 0, 2]);
  const { data: messages } = await sessions.messages(CALLER, fork.id);
  assertEquals(messages.map(({ role }) => role), [
    "user",
    "assistant",
    "user",
    "assistant",
    "tool",
    "assistant",
  ]);
  // module state of that time: the script continues with its fourth response
  assertEquals((await made.finish(null, { prompt: "other", session_id: fork.id })).output_text, "three");
  assertEquals((await sessions.messages(CALLER, session_id)).data.length, 8);
  assertEquals(
    (await sessions.messages(CALLER, (await sessions.fork(CALLER, session_id)).id)).data.length,
    8,
  );
  for (const turn of [0, 4]) {
    const error = await sessions.fork(CALLER, session_id, { turn }).then(() => null, (error) => error);
    assertEquals(error.code, "request_invalid");
  }
});

Deno.test("fork() before a run has the messages and the state of modules that the run began with", async () => {
  const made = serviceWith({ plan: { providers: [mock("one", "two", "three", "four")] } });
  const { session_id, id: first } = await made.finish("plan", { prompt: "first" });
  const second = await made.finish(null, { prompt: "second", session_id });
  await made.finish(null, { prompt: "third", session_id });
  const { sessions } = made.runs;
  const fork = await sessions.fork(CALLER, session_id, { before_run: second.id });
  const { data: messages } = await sessions.messages(CALLER, fork.id);
  assertEquals(messages.map(({ role }) => role), ["user", "assistant"]);
  assertEquals((await made.finish(null, { prompt: "other", session_id: fork.id })).output_text, "two");
  const empty = await sessions.fork(CALLER, session_id, { before_run: first });
  assertEquals((await sessions.messages(CALLER, empty.id)).data, []);
  const other = await sessions.fork(CALLER, fork.id, { before_run: second.id }).then(() => null, (e) => e);
  assertEquals(other.code, "request_invalid"); // a run of the other session
});

Deno.test("fork() of a session whose only prompt was denied has its whole history", async () => {
  const deny = hook("prompt:submit", () => ({ action: "deny", reason: "no" }));
  const { runs, finish } = service({ plans: { plan: { system: "Be brief.", hooks: [deny] } } });
  const { session_id } = await finish("plan");
  const fork = await runs.sessions.fork(CALLER, session_id);
  assertEquals(
    await runs.sessions.messages(CALLER, fork.id),
    await runs.sessions.messages(CALLER, session_id),
  );
  await assertRejects(() => runs.sessions.fork(CALLER, session_id, { turn: 1 }), Error, "it has 0 turns");
});

Deno.test("withAnswers() adds a result for each open call directly after its message", () => {
  const call = (id: string) => ({ id, name: "a", tool: "a", arguments: {} });
  const whole = withAnswers([
    { role: "user", content: "x" },
    { role: "assistant", content: "", tool_calls: [call("c1"), call("c2")] },
    { role: "tool", tool_call_id: "c2", content: "ok" },
    { role: "user", content: "y" },
    { role: "assistant", content: "", tool_calls: [call("c2"), call("c3")] }, // a model may repeat an id
  ]);
  assertEquals(whole.map(({ role, tool_call_id }) => tool_call_id ?? role), [
    "user",
    "assistant",
    "c2",
    "c1",
    "user",
    "assistant",
    "c2",
    "c3",
  ]);
});

function serviceWith(plans: Record<string, TestPlan>): Service {
  return service({ plans });
}
