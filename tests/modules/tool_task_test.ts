import { assertEquals, assertRejects, assertStringIncludes } from "../assert.ts";
import { mount } from "../../modules/tool-task/mod.ts";
import type { JsonObject, SpawnRequest, SpawnResult } from "preamp";
import { type Fake, fakeCoordinator } from "../support/coordinator.ts";

const PLAN: JsonObject = { agents: { triage: { description: "Sorts tickets" }, plain: {} } };

const DONE: SpawnResult = {
  output: "done",
  session_id: "ses_9",
  status: "completed",
  turn_count: 2,
  metadata: { agent: "triage", stop_reason: "end_turn", error: null },
};

interface Mounted {
  fake: Fake;
  requests: SpawnRequest[];
  call(input: JsonObject, signal?: AbortSignal): Promise<JsonObject>;
}

async function mounted(
  config: JsonObject = {},
  answer: (request: SpawnRequest) => Promise<SpawnResult> | SpawnResult = () => DONE,
): Promise<Mounted> {
  const fake = fakeCoordinator(PLAN);
  const requests: SpawnRequest[] = [];
  fake.coordinator.registerCapability("session.spawn", (request: SpawnRequest) => {
    requests.push(request);
    return Promise.resolve(answer(request));
  });
  await mount(fake.coordinator, config);
  const call = async (input: JsonObject, signal = new AbortController().signal) =>
    await fake.tools.task!.execute(input, {
      id: "c1",
      signal,
      session_id: "ses_1",
      progress() {},
    }) as JsonObject;
  return { fake, requests, call };
}

Deno.test("task lists the plan's agents in its description and input schema", async () => {
  const { fake: { tools } } = await mounted();
  assertStringIncludes(
    tools.task?.description ?? "",
    "- triage: Sorts tickets\n- plain\n- self: the same agent",
  );
  const { agent } = tools.task?.input_schema?.properties as Record<string, JsonObject>;
  assertEquals(agent?.enum, ["triage", "plain", "self"]);
});

Deno.test("task calls session.spawn with its tool call id and returns the agent's answer", async () => {
  const { call, requests } = await mounted({ exclude_tools: ["tool-task"] });
  const preferences = [{ provider: "anthropic", model: "claude-*" }];
  assertEquals(await call({ instruction: "Sort", agent: "triage", provider_preferences: preferences }), {
    success: true,
    output: { response: "done", session_id: "ses_9", agent: "triage", status: "completed", turn_count: 2 },
  });
  assertEquals(await call({ instruction: "More", session_id: "ses_9" }).then(({ success }) => success), true);
  assertEquals(requests, [
    {
      instruction: "Sort",
      agent: "triage",
      tool_call_id: "c1",
      provider_preferences: preferences,
      exclude_tools: ["tool-task"],
    },
    { instruction: "More", session_id: "ses_9", tool_call_id: "c1", exclude_tools: ["tool-task"] },
  ]);
});

for (const status of ["incomplete", "denied", "cancelled", "failed"] as const) {
  Deno.test(`task fails and returns the agent's text and session id when the agent ended ${status}`, async () => {
    const error = status === "failed" ? { code: "internal", message: "broke" } : null;
    const metadata = { agent: "triage", stop_reason: "limit:max_tool_calls", error };
    const { call } = await mounted({}, () => ({ ...DONE, output: "half", status, metadata }));
    const message = error ? "broke" : "The agent stopped: limit:max_tool_calls";
    assertEquals(await call({ instruction: "x" }), {
      success: false,
      output: {
        response: "half",
        session_id: "ses_9",
        agent: "triage",
        status,
        turn_count: 2,
        stop_reason: "limit:max_tool_calls",
        error: message,
      },
      error: { type: status, message, session_id: "ses_9" },
    });
  });
}

Deno.test("task fails with the reason when no agent can be spawned", async () => {
  const { call } = await mounted({}, () => {
    throw Object.assign(new Error("Cannot spawn an agent: max_depth"), { code: "limit_reached" });
  });
  assertEquals(await call({ instruction: "x" }), {
    success: false,
    error: { type: "limit_reached", message: "Cannot spawn an agent: max_depth" },
  });
});

Deno.test("task throws the abort reason when it is aborted during the agent's run", async () => {
  const abort = new AbortController();
  const { call } = await mounted({}, () => {
    abort.abort(new Error("cancelled"));
    return { ...DONE, status: "cancelled" };
  });
  await assertRejects(() => call({ instruction: "x" }, abort.signal), Error, "cancelled");
});

Deno.test("task fails when the capability session.spawn is missing", async () => {
  const fake = fakeCoordinator(PLAN);
  await mount(fake.coordinator, {});
  const result = await fake.tools.task?.execute({ instruction: "x" }) as JsonObject;
  assertEquals([result.success, (result.error as JsonObject).type], [false, "internal"]);
});

const BAD: [JsonObject, string][] = [
  [{}, 'required property "instruction"'],
  [{ instruction: 5 }, "instruction: Instance type"],
  [{ instruction: "" }, "instruction: String is too short"],
  [{ instruction: "x", agent: 5 }, "agent: Instance"],
  [{ instruction: "x", agent: "unknown" }, "agent: Instance does not match any of"],
  [{ instruction: "x", agent: "triage", session_id: "s" }, "not both"],
  [{ instruction: "x", inherit_context: "some" }, "inherit_context: Instance does not match any of"],
  [{ instruction: "x", inherit_context_turns: 0 }, "inherit_context_turns: 0 is less than 1"],
  [{ instruction: "x", provider_preferences: {} }, "provider_preferences: Instance type"],
  [{ instruction: "x", provider_preferences: [{ model: "m" }] }, 'required property "provider"'],
  [
    { instruction: "x", provider_preferences: [{ provider: "p", config: { api_key: "k" } }] },
    "0.config: is not known",
  ],
];

for (const [input, fact] of BAD) {
  Deno.test(`task does not spawn and reports the problem when its input is ${JSON.stringify(input)}`, async () => {
    const { call, requests } = await mounted();
    const { success, error } = await call(input);
    assertEquals([success, (error as JsonObject).type, requests.length], [false, "tool_input_invalid", 0]);
    assertStringIncludes(String((error as JsonObject).message), fact);
  });
}

Deno.test("task takes the tools that agents inherit from the config alone", async () => {
  const { call, requests } = await mounted({ exclude_tools: ["tool-task"] });
  await call({ instruction: "x", exclude_tools: [], inherit_tools: ["tool-shell"] });
  assertEquals(requests.map(({ exclude_tools, inherit_tools }) => [exclude_tools, inherit_tools]), [
    [["tool-task"], undefined],
  ]);
});

for (
  const [config, key] of [
    [{ inherit_context: "much" }, "inherit_context"],
    [{ inherit_context_turns: 1.5 }, "inherit_context_turns"],
    [{ exclude_tools: "tool-task" }, "exclude_tools"],
    [{ exclude_tools: [], inherit_tools: [] }, "inherit_tools"],
  ] as const
) {
  Deno.test(`mount() refuses the config ${JSON.stringify(config)}`, async () => {
    await assertRejects(
      () => mount(fakeCoordinator().coordinator, config as unknown as JsonObject),
      Error,
      `config.${key}`,
    );
  });
}

Deno.test("task passes on the text of people and the model, without calls, results, reminders and system messages", async () => {
  const { fake, call, requests } = await mounted({ inherit_context: "recent", inherit_context_turns: 1 });
  const history = [
    { role: "system", content: "secret rules" },
    { role: "user", content: "old" },
    { role: "assistant", content: "answered" },
    { role: "user", content: [{ type: "text", text: "new" }] },
    { role: "user", content: "a reminder", metadata: { source: "hook" } },
    { role: "assistant", content: [{ type: "text", text: "looking" }], tool_calls: [{ id: "c1" }] },
    { role: "tool", tool_call_id: "c1", content: "raw result" },
    { role: "assistant", content: [{ type: "tool_call", id: "c2" }] },
  ];
  await fake.coordinator.mount("context", { getMessages: () => Promise.resolve(history) });
  await call({ instruction: "Do it" });
  await call({ instruction: "Do it", inherit_context: "all" });
  await call({ instruction: "Do it", inherit_context: "none" });
  const recent = "User: new\n\nAssistant: looking\n\nYour task:\nDo it";
  assertEquals(requests.map(({ instruction }) => instruction), [
    `The conversation so far:\n\n${recent}`,
    `The conversation so far:\n\nUser: old\n\nAssistant: answered\n\n${recent}`,
    "Do it",
  ]);
});

Deno.test("task can have the name delegate, and its names for the inherited context", async () => {
  const { fake, requests } = await mounted({ tool_name: "delegate" });
  const { delegate } = fake.tools;
  assertEquals(Object.keys(fake.tools), ["delegate"]);
  assertStringIncludes(delegate!.description, "unless you set context_depth");
  const fields = Object.keys(delegate!.input_schema!.properties as JsonObject);
  assertEquals(fields.includes("context_turns") && !fields.includes("inherit_context"), true);
  const history = [{ role: "user", content: "one" }, { role: "user", content: "two" }];
  await fake.coordinator.mount("context", { getMessages: () => Promise.resolve(history) });
  const call = { id: "c1", signal: new AbortController().signal, session_id: "ses_1", progress() {} };
  await delegate!.execute({ instruction: "Sort", context_depth: "all" }, call);
  await delegate!.execute({ instruction: "Sort", context_depth: "recent", context_turns: 1 }, call);
  await delegate!.execute({ instruction: "Sort" }, call);
  assertEquals(requests.map(({ instruction }) => instruction), [
    "The conversation so far:\n\nUser: one\n\nUser: two\n\nYour task:\nSort",
    "The conversation so far:\n\nUser: two\n\nYour task:\nSort",
    "Sort",
  ]);
});
