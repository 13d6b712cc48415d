/**
 * `preamp run -m` and `model` of a request: the same plan over every wire format has the transcript of the
 * mock; a session changes its provider; the demo agent; `preamp provider`.
 */
import type { FakeAnswer } from "../modules/providers/faults.ts";
import { fakeVendor } from "../modules/providers/fake_vendor.ts";
import { assert, assertEquals, assertMatch } from "../assert.ts";
import { type Json, runProgram, startServer } from "./program.ts";
import { KEY, type Wire, WIRES } from "./provider_wires.ts";
import { readSse } from "../support/sse.ts";

const PROMPT = "What is 6 × 7, and 1 + 1?";

/** Text, two parallel calls with streamed arguments, then the answer. */
const ANSWERS: readonly FakeAnswer[] = [
  {
    text: ["Let me ", "work that out."],
    calls: [
      { id: "call_a", name: "calculator", arguments: ['{"expression":', '"6*7"}'] },
      { id: "call_b", name: "calculator", arguments: ['{"expression": "1+1"}'] },
    ],
  },
  { text: ["6 × 7 is 42, ", "and 1 + 1 is 2."] },
];

const FINAL = "6 × 7 is 42, and 1 + 1 is 2.";

const MOCK = {
  module: "provider-mock",
  config: {
    responses: [
      {
        text: "Let me work that out.",
        tool_calls: ["6*7", "1+1"].map((expression) => ({ name: "calculator", arguments: { expression } })),
      },
      FINAL,
    ],
  },
};

function planWith(...providers: unknown[]): Json {
  return {
    session: { orchestrator: "loop-streaming", context: "context-simple" },
    system: "Be brief.",
    providers,
    tools: ["tool-calculator"],
  };
}

/** What is compared of each event; other events, such as `llm:request`, are left out. */
const FACTS: Record<string, (data: Json) => unknown> = {
  "execution:start": () => null,
  "prompt:submit": ({ prompt }) => prompt,
  "provider:request": ({ iteration }) => iteration,
  "content_block:start": ({ block_index, block_type, name = null }) => [block_index, block_type, name],
  "content_block:end": (
    { block_index, total_blocks, block: { type, text = null, name = null, input = null } },
  ) => [block_index, total_blocks, type, text, name, input],
  "provider:response": (
    { tool_calls, response: { content, finish_reason } },
  ) => [tool_calls, content.map(({ type }: Json) => type), finish_reason],
  "provider:retry": () => null,
  "provider:error": ({ error }) => error,
  "tool:pre": ({ tool_name, tool_input }) => [tool_name, tool_input],
  "tool:post": ({ tool_name, result: { success, output } }) => [tool_name, success, output],
  "tool:error": ({ error }) => error,
  "context:message": ({ message: { role, name = null, tool_calls = [], content } }) => [
    role,
    name,
    tool_calls.map(({ name, arguments: args }: Json) => [name, args]),
    typeof content === "string" ? content : content.map(({ type, text = null }: Json) => [type, text]),
  ],
  "prompt:complete": ({ response_preview }) => response_preview,
  "orchestrator:complete": ({ status }) => status,
};

const BLOCK_EVENTS = ["content_block:start", "content_block:end"];

/**
 * Returns the entries of a log without what differs from run to run and from vendor to vendor. The starts and
 * ends of the blocks of one answer are sorted: a vendor may begin its second block before its first one ends.
 */
function shapeOf(entries: readonly Json[]): Json[] {
  const shape: Json[] = [];
  const blocks: Json[] = [];
  for (const { event, data } of entries) {
    const facts = FACTS[event]?.(data);
    if (facts === undefined) continue;
    if (BLOCK_EVENTS.includes(event)) blocks.push([event, facts]);
    else {
      const order = ([name, [index]]: Json) => 1000 * BLOCK_EVENTS.indexOf(name) + index;
      shape.push(...blocks.splice(0).sort((a, b) => order(a) - order(b)), [event, facts]);
    }
  }
  return shape;
}

/** Runs the plan with `preamp run` and returns the recording. */
async function recorded(args: string[], plan: unknown, env: Record<string, string> = {}): Promise<Json> {
  const stdin = JSON.stringify(plan);
  const all = ["run", "-p", "-", ...args, "--output-format", "json-trace", PROMPT];
  const { code, stdout, stderr } = await runProgram(all, { env, stdin });
  assertEquals(code, 0, stderr);
  assert(!`${stdout}${stderr}`.includes(KEY), "the key is in the output");
  return JSON.parse(stdout);
}

let mock: Promise<Json[]> | undefined;

/** Resolves to the transcript of the mock. */
function mockTranscript(): Promise<Json[]> {
  return mock ??= recorded([], planWith(MOCK)).then(({ run, events }) => {
    assertEquals([run.output_text, run.tool_call_count, run.turn_count], [FINAL, 2, 2]);
    return shapeOf(events);
  });
}

for (const [name, { vendor, model, entry, env }] of Object.entries(WIRES)) {
  Deno.test(`preamp run -m: the transcript over ${name} has the shape of the mock's`, async () => {
    await using server = fakeVendor(vendor, ANSWERS);
    const { run, events } = await recorded(["-m", model], planWith(entry ?? MOCK), env(server.url));
    assertEquals([run.status, run.output_text, run.tool_call_count], ["completed", FINAL, 2]);
    assertEquals(shapeOf(events), await mockTranscript());
    assertEquals(server.requests.length, 2);
    assertMatch(JSON.stringify(server.requests[1]), /Let me work that out\..*42.*2/s);
    assert(events.some(({ event }: Json) => event === "content_block:delta"));
  });
}

/** Starts a server for each provider, and the program with their variables. */
async function vendorsAndServer(wires: readonly Wire[], answers: (wire: Wire) => readonly FakeAnswer[]) {
  const stack = new AsyncDisposableStack();
  const vendors = new Map(wires.map((wire) => [wire, stack.use(fakeVendor(wire.vendor, answers(wire)))]));
  const env = Object.assign({}, ...wires.map((wire) => wire.env(vendors.get(wire)!.url)));
  const server = stack.use(await startServer([], { env }));
  return { vendors, server, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

const JSON_BODY = { "content-type": "application/json" };

/** Wires of different providers, so that one program can use them all. */
const PROVIDERS = ["Anthropic", "Chat Completions", "Gemini", "Ollama"].map((name) => WIRES[name]!);

Deno.test("POST /v1/runs with model streams the transcript of the mock over every provider", async () => {
  await using kit = await vendorsAndServer(PROVIDERS, () => ANSWERS);
  for (const { model, provider } of PROVIDERS) {
    const response = await kit.server.fetch("/v1/runs", {
      method: "POST",
      headers: { ...JSON_BODY, accept: "text/event-stream" },
      body: JSON.stringify({ prompt: PROMPT, plan: planWith(MOCK), model }),
    });
    assertEquals(response.status, 200);
    const entries: Json[] = [];
    for await (const { data } of readSse(response)) entries.push(JSON.parse(data));
    assertEquals([provider, shapeOf(entries)], [provider, await mockTranscript()]);
    assert(!JSON.stringify(entries).includes(KEY));
  }
});

Deno.test("POST /v1/runs?prompt=&model= runs the plan that is the body on the model", async () => {
  const [anthropic] = PROVIDERS;
  await using kit = await vendorsAndServer([anthropic!], () => [{ text: ["Hello."] }]);
  const post = async (path: string, body: unknown) => {
    const response = await kit.server.fetch(path, {
      method: "POST",
      body: JSON.stringify(body),
      headers: JSON_BODY,
    });
    return { status: response.status, body: await response.json() as Json };
  };
  const query = `prompt=Hello&model=${encodeURIComponent(anthropic!.model)}`;
  const { status, body } = await post(`/v1/runs?${query}`, planWith(MOCK));
  assertEquals([status, body.status, body.output_text], [200, "completed", "Hello."]);
  const invalid = await post("/v1/runs?prompt=Hello&model=no%20model", planWith(MOCK));
  assertEquals([invalid.status, invalid.body.error.details[0].path], [400, "model"]);
  const twice = await post(`/v1/runs?${query}`, { prompt: "Hello", model: anthropic!.model });
  const paths = twice.body.error.details.map(({ path }: Json) => path);
  assertEquals([twice.status, paths], [400, ["prompt", "model"]]);
});

Deno.test("POST /v1/runs without a plan runs the demo agent on the model; a missing key is 422 with its variable", async () => {
  const [anthropic] = PROVIDERS;
  await using kit = await vendorsAndServer([anthropic!], () => [{ text: ["Hello."] }]);
  const { status, body } = await kit.server.post("/v1/runs", { prompt: "Hello", model: anthropic!.model });
  assertEquals([status, body.status, body.output_text], [200, "completed", "Hello."]);
  const refused = await kit.server.post("/v1/runs", { prompt: "Hello", model: "gemini/gemini-3.8-flash" });
  assertEquals([refused.status, refused.body.error.code], [422, "module_load_failed"]);
  assertMatch(refused.body.detail, /set the variable GEMINI_API_KEY.*https:\/\//);
});

Deno.test("a session continues when its provider changes in the middle", async () => {
  const answers = ({ provider }: Wire): FakeAnswer[] => [
    {
      text: ["Working."],
      calls: [{ id: "call_a", name: "calculator", arguments: ['{"expression": "6*7"}'] }],
    },
    { text: [`${provider} says 42.`] },
  ];
  await using kit = await vendorsAndServer(PROVIDERS, answers);
  let session_id: string | undefined;
  for (const wire of [...PROVIDERS, PROVIDERS[0]!]) {
    const { model, provider } = wire;
    const request = {
      prompt: `Ask ${provider}`,
      ...(session_id ? { session_id } : { plan: planWith(MOCK) }),
      model,
    };
    const { status, body } = await kit.server.post("/v1/runs", request, { prefer: "wait" });
    assertEquals([status, body.status, body.error, body.output_text], [
      200,
      "completed",
      null,
      `${provider} says 42.`,
    ]);
    session_id = body.session_id;
  }
  // the last provider's request has the whole conversation
  const last = JSON.stringify(kit.vendors.get(PROVIDERS[0]!)!.requests.at(-1)!.body);
  for (const { provider } of PROVIDERS) assert(last.includes(`${provider} says 42.`), provider);
});

Deno.test("preamp run -m without a plan runs the demo agent; preamp provider test and models call the account", async () => {
  const { model, env, vendor } = WIRES["Anthropic"]!;
  await using server = fakeVendor(vendor, [{ text: ["Hello from the model."] }]);
  const variables = { ...env(server.url), PREAMP_MODEL: model };
  for (const args of [["run", "-m", model, "Hello"], ["run", "Hello"]]) {
    const { code, stdout, stderr } = await runProgram(args, { env: variables });
    assertEquals([code, stdout], [0, "Hello from the model.\n"], stderr);
  }
  const tested = await runProgram(["provider", "test", "--json"], { env: variables });
  const { data: [result] } = JSON.parse(tested.stdout);
  assertEquals([tested.code, result.model, result.ok, result.output_text], [
    0,
    model,
    true,
    "Hello from the model.",
  ]);
  assert(result.latency_ms >= 0 && result.usage.output_tokens > 0);
  const missing = await runProgram(["run", "-m", model, "Hello"]);
  assertEquals(missing.code, 1);
  assertMatch(missing.stderr, /set the variable ANTHROPIC_API_KEY.*https:\/\//);
});
