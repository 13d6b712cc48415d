/** Replay: all scenarios replay without a difference, and a changed log does not. */
import { assertEquals, assertMatch, assertRejects } from "../assert.ts";
import { withAnswers } from "../../src/runs/storage/fork.ts";
import type { Recording } from "../../src/runs/types.ts";
import type { ContextManager, JsonObject, Prompt } from "../../src/sdk/types.ts";
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

Deno.test("replay() reports the entry and the path of the first difference", async () => {
  const { service, recording } = await recorded();
  const changed = structuredClone(recording);
  const entry = changed.events.find(({ event, data }) => event === "context:message" && data.index === 4)!;
  (entry.data.message as { content: { text: string }[] }).content[0]!.text = "6 × 7 is 41.";
  assertEquals(await replayed(service, changed), {
    equal: false,
    first_difference: {
      seq: entry.seq,
      path: "data.message.content[0].text",
      recorded: "6 × 7 is 41.",
      replayed: "6 × 7 is 42.",
    },
  });
});

/** Numbers of the scenario's entries that orchestrator, context and kernel emit. */
const MADE = [2, 7, 8, 9, 10, 11, 12, 13, 14, 17, 18, 19, 23, 24, 25, 26, 27, 28, 29, 32, 33, 34, 35, 36, 37];

Deno.test("replay() notices every removed or repeated entry", async () => {
  const { service, recording } = await recorded();
  for (const seq of MADE) {
    for (const copies of [0, 2]) {
      if (seq === 28 && copies === 0) continue; // the last delta of a stream is optional for the provider
      const events = recording.events.flatMap((entry) =>
        entry.seq === seq ? Array.from({ length: copies }, () => entry) : [entry]
      ).map((entry, index) => ({ ...entry, seq: index + 1 }));
      const { equal } = await replayed(service, { ...recording, events }).catch((error) => {
        // without execution:start there is no turn
        assertEquals([error.code, seq, copies], ["not_replayable", 9, 0]);
        return { equal: false };
      });
      assertEquals([seq, copies, equal], [seq, copies, false]);
    }
  }
});

Deno.test("replay() notices every changed entry", async () => {
  const { service, recording } = await recorded();
  for (const seq of MADE) {
    const events = recording.events.map((entry) =>
      entry.seq === seq ? { ...entry, data: { ...entry.data, forged: true } } : entry
    );
    assertEquals([seq, (await replayed(service, { ...recording, events })).equal], [seq, false]);
  }
});

Deno.test("replay() notices a change of the state that the loop keeps, and ignores the state of others", async () => {
  const { service, recording } = await recorded("a loop and other modules that keep state");
  const states = recording.events.filter(({ event }) => event === "session:state");
  const withState = (seq: number, set: JsonObject) => {
    const events = recording.events.map((entry) => entry.seq === seq ? { ...entry, data: { set } } : entry);
    return replayed(service, { ...recording, events });
  };
  let compared = 0;
  for (const { seq, data } of states) {
    const set = data.set as JsonObject;
    for (const key of Object.keys(set)) {
      const { equal, first_difference } = await withState(seq, { ...set, [key]: "forged" });
      const is_other = key.startsWith("provider-mock") || key === "seen";
      assertEquals([key, equal], [key, is_other]);
      if (is_other) continue;
      assertEquals([first_difference?.seq, first_difference?.path], [seq, `data.set.${key}`]);
      const { [key]: _, ...rest } = set;
      assertEquals([key, (await withState(seq, rest)).equal], [key, false]);
      compared++;
    }
    const more = await withState(seq, { ...set, "loop-test:more": 1 });
    assertEquals(more.first_difference, {
      seq,
      path: "data.set.loop-test:more",
      recorded: 1,
      replayed: null,
    });
  }
  assertEquals(compared, 6);
});

Deno.test("replay() compares the run object", async () => {
  const { service, recording } = await recorded();
  const events = structuredClone(recording.events);
  (events.at(-1)!.data.run as { turn_count: number }).turn_count = 7;
  const report = await replayed(service, { ...recording, events });
  assertEquals(report.first_difference, { seq: 38, path: "data.run.turn_count", recorded: 7, replayed: 2 });
});

Deno.test("replay() reports the effect of a changed plan, and calls neither provider nor tool", async () => {
  const { service, recording } = await recorded();
  let called = 0;
  const plans = {
    plan: {
      ...SCENARIOS["a tool call with approval"]!.plan,
      system: "Be long.",
      providers: [() => void called++],
      tools: [() => void called++],
      hooks: [() => void called++],
    },
  };
  const report = await replayed({ ...service, runs: serviceWith(plans).runs }, recording);
  assertEquals(report.first_difference?.path, "data.message.content");
  assertEquals(called, 0);
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
