/** `provider-mock`: the script, its position in the session, streaming, errors and config. */
import {
  type ChatRequest,
  type ChatResponse,
  type CompleteOptions,
  errorCode,
  type JsonObject,
  LLMError,
  type Message,
  type ModelInfo,
  PreampError,
  type Provider,
  type StreamDelta,
  textOf,
} from "preamp";
import { FakeClock, type MountRecord, TestCoordinator, testProvider } from "preamp/testing";
import { module, mount } from "../../modules/provider-mock/mod.ts";
import { assert, assertEquals, assertMatch, assertRejects } from "../assert.ts";

/** A session with saved state and a clock that the test advances. */
class Session {
  readonly clock = new FakeClock();
  readonly state: JsonObject;
  readonly #coordinator: TestCoordinator;

  constructor(saved: JsonObject = {}) {
    this.state = structuredClone(saved);
    this.#coordinator = new TestCoordinator({ session_state: this.state, clock: this.clock });
  }

  get mounts(): MountRecord[] {
    return this.#coordinator.mount_history;
  }

  async mount(config: JsonObject = {}): Promise<Provider> {
    await mount(this.#coordinator, config);
    return this.mounts.at(-1)?.module as Provider; // the provider mounted last
  }
}

const mounted = (config: JsonObject = {}) => new Session().mount(config);

const user = (content: string): Message => ({ role: "user", content });

const ask = (prompt: string): ChatRequest => ({ messages: [user(prompt)] });

const call = (name: string, args: JsonObject | string = {}) => ({ tool_calls: [{ name, arguments: args }] });

/** Returns a response as JSON data. */
const plain = (response: ChatResponse): JsonObject => JSON.parse(JSON.stringify(response));

const ids = (response: ChatResponse) => (response.tool_calls ?? []).map((item) => item.id);

async function llmError(run: () => Promise<unknown>): Promise<LLMError> {
  return await assertRejects(run, LLMError) as LLMError;
}

async function findings(config: JsonObject): Promise<string[]> {
  const session = new Session();
  const error = await assertRejects(() => session.mount(config), PreampError) as PreampError;
  assertEquals(errorCode(error), "module_invalid");
  assertMatch(error.message, /^Cannot read config\./);
  assertEquals(session.mounts, []);
  return error.details.map((detail) => detail.message);
}

Deno.test("mount() mounts one provider named mock with its info", async () => {
  const session = new Session();
  const provider = await session.mount({ priority: 7 });
  assertEquals(session.mounts, [{ mount_point: "providers", module: provider, name: "mock" }]);
  assertEquals([provider.name, provider.priority, module.id, module.type], [
    "mock",
    7,
    "provider-mock",
    "provider",
  ]);
  assertEquals(provider.getInfo(), {
    id: "mock",
    display_name: "Mock provider",
    credential_env_vars: [],
    capabilities: ["streaming", "tools"],
    defaults: { context_window: 100_000, max_output_tokens: 4096 },
    config_fields: [],
  });
  assertEquals("priority" in await mounted(), false);
});

Deno.test("listModels() returns the configured models with the windows of the config", async () => {
  const windows = { context_window: 500, max_output_tokens: 50 };
  const provider = await mounted({
    ...windows,
    models: ["small", { id: "big", display_name: "Big", context_window: 9000 }],
  });
  const capabilities = ["tools", "streaming"];
  const expected: ModelInfo[] = [
    { id: "small", display_name: "small", capabilities, defaults: {}, ...windows },
    {
      id: "big",
      display_name: "Big",
      capabilities,
      defaults: {},
      context_window: 9000,
      max_output_tokens: 50,
    },
  ];
  assertEquals(await provider.listModels(), expected);
  const [model] = await (await mounted({ default_model: "mine" })).listModels();
  assertEquals([model?.id, model?.context_window], ["mine", 100_000]);
  assertEquals(provider.getInfo().defaults, windows);
});

Deno.test("complete() returns a tool call and an answer with the scripted fields", async () => {
  const session = new Session();
  const provider = await session.mount({
    chunk_chars: 8,
    responses: [
      { ...call("calculator", { expression: "6*7" }), usage: { input_tokens: 40, output_tokens: 12 } },
      { text: "6 × 7 is 42.", usage: { input_tokens: 60, output_tokens: 10 } },
    ],
  });
  assertEquals(plain(await provider.complete(ask("What is 6 × 7?"))), {
    content: [{ type: "tool_call", id: "call_1", name: "calculator", input: { expression: "6*7" } }],
    tool_calls: [{ id: "call_1", name: "calculator", arguments: { expression: "6*7" } }],
    finish_reason: "tool_calls",
    usage: { input_tokens: 40, output_tokens: 12, total_tokens: 52, cost_usd: null },
  });
  assertEquals(session.state, { "provider-mock": { calls: 1 } });
  const deltas: StreamDelta[] = [];
  const second = await provider.complete(ask("What is 6 × 7?"), { onDelta: (delta) => deltas.push(delta) });
  assertEquals(plain(second), {
    content: [{ type: "text", text: "6 × 7 is 42." }],
    finish_reason: "stop",
    usage: { input_tokens: 60, output_tokens: 10, total_tokens: 70, cost_usd: null },
  });
  assertEquals(deltas.map((delta) => delta.delta), ["6 × 7 is", " 42."]);
  assertEquals(session.state, { "provider-mock": { calls: 2 } });
});

Deno.test("complete() returns the text of `response` for every call", async () => {
  const provider = await mounted({ response: "always" });
  const texts = [];
  for (let turn = 0; turn < 3; turn++) texts.push(textOf((await provider.complete(ask("x"))).content));
  assertEquals(texts, ["always", "always", "always"]);
});

Deno.test("complete() repeats the last text when the script is used up, without its calls, delay and usage", async () => {
  const session = new Session();
  const provider = await session.mount({
    responses: [
      { text: "one", thinking: "hm", usage: { input_tokens: 9000, output_tokens: 9 } },
      call("todo"),
    ],
  });
  await provider.complete(ask("x"));
  await provider.complete(ask("x"));
  const third = await provider.complete(ask("x"));
  assertEquals(third.content, [{ type: "text", text: "one" }]);
  assert((third.usage?.input_tokens ?? 9000) < 9000);
  assertEquals(session.state, { "provider-mock": { calls: 3 } });
});

Deno.test("complete() returns the user's prompt, not a message of a hook or loop, when after is echo", async () => {
  const provider = await mounted({ responses: [], after: "echo" });
  const { content } = await provider.complete({
    messages: [
      user("first"),
      user("said last"),
      { role: "user", content: "from a hook", metadata: { source: "hook" } },
      user('<system-reminder source="orchestrator-loop-limit">wrap up</system-reminder>'),
    ],
  });
  assertEquals(textOf(content), "said last");
});

Deno.test("complete() fails with an error that is not retryable when after is error", async () => {
  const provider = await mounted({ responses: ["only"], after: "error" });
  await provider.complete(ask("x"));
  const error = await llmError(() => provider.complete(ask("x")));
  assertEquals([error.type, error.retryable], ["InvalidRequestError", false]);
  assertEquals(error.message, 'Cannot answer call 2: the script has 1 entries and after is "error"');
});

Deno.test("complete() orders blocks thinking, text, calls and keeps a scripted finish reason", async () => {
  const provider = await mounted({
    responses: [{ text: "t", thinking: "why", finish_reason: "length", ...call("a", { x: [1] }) }, {}],
  });
  const response = await provider.complete(ask("x"));
  assertEquals(response.content.map((block) => block.type), ["thinking", "text", "tool_call"]);
  assertEquals(response.finish_reason, "length");
  assertEquals(plain(await provider.complete(ask("x"))).content, []);
});

Deno.test("complete() gives each response its own copy of scripted arguments", async () => {
  const responses = [call("a", { list: [1] })];
  const provider = await mounted({ responses });
  const response = await provider.complete(ask("x"));
  (response.tool_calls?.[0]?.arguments.list as number[]).push(2);
  assertEquals(responses, [call("a", { list: [1] })]);
});

Deno.test("complete() passes on arguments that are text, also invalid JSON", async () => {
  const provider = await mounted({ responses: [call("a", "{oops"), call("a", '{"x":1}')] });
  const [bad] = (await provider.complete(ask("x"))).tool_calls ?? [];
  assertEquals([bad?.arguments, bad?.invalid_arguments], [{}, "{oops"]);
  const [good] = (await provider.complete(ask("x"))).tool_calls ?? [];
  assertEquals([good?.arguments, good?.invalid_arguments], [{ x: 1 }, undefined]);
});

Deno.test("complete() numbers tool calls across the session and keeps scripted ids", async () => {
  const session = new Session();
  const provider = await session.mount({
    responses: [
      { tool_calls: [{ name: "a" }, { name: "b", id: "mine" }] },
      "text",
      { tool_calls: [{ name: "c" }] },
    ],
  });
  const seen = [];
  for (let turn = 0; turn < 3; turn++) seen.push(ids(await provider.complete(ask("x"))));
  assertEquals(seen, [["call_1", "mine"], [], ["call_3"]]);
  assertEquals(session.state, { "provider-mock": { calls: 3 } });
});

Deno.test("complete() continues with the next entry when a session continues", async () => {
  const responses = [call("a"), call("b"), call("c")];
  const first = new Session();
  await (await first.mount({ responses })).complete(ask("x"));
  const second = new Session(first.state);
  const response = await (await second.mount({ responses })).complete(ask("y"));
  assertEquals([response.tool_calls?.[0]?.name, ids(response)], ["b", ["call_2"]]);
  assertEquals(second.state, { "provider-mock": { calls: 2 } });
});

Deno.test("complete() repeats no id of the history when the plan changed in mid-session", async () => {
  const session = new Session({ "provider-mock": { calls: 2 } });
  const provider = await session.mount({ responses: ["a", "b", call("x"), call("y")] });
  const history: Message[] = [user("x"), {
    role: "assistant",
    content: "",
    tool_calls: [{ id: "call_7", name: "t", tool: "t", arguments: {} }],
  }];
  assertEquals(ids(await provider.complete({ messages: history })), ["call_8"]);
  assertEquals(session.state, { "provider-mock": { calls: 3 } });
});

Deno.test("complete() starts with the first entry when the saved state is malformed", async () => {
  for (const saved of [{ calls: -1 }, { calls: "2" }, [], "x", null, 5]) {
    const session = new Session({ "provider-mock": saved });
    const provider = await session.mount({ responses: ["first", "second"] });
    assertEquals(textOf((await provider.complete(ask("x"))).content), "first");
    assertEquals(session.state, { "provider-mock": { calls: 1 } });
  }
});

Deno.test("complete() gives overlapping calls different entries and assigns a new state object each time", async () => {
  const session = new Session();
  const provider = await session.mount({
    responses: [{ text: "a", delay_ms: 5 }, { text: "b", delay_ms: 5 }],
  });
  const both = [provider.complete(ask("x")), provider.complete(ask("x"))];
  assertEquals(session.state, { "provider-mock": { calls: 2 } });
  assertEquals(session.clock.pending, 2);
  await session.clock.advance(5);
  assertEquals((await Promise.all(both)).map((response) => textOf(response.content)), ["a", "b"]);
  const before = session.state["provider-mock"];
  await provider.complete(ask("x"));
  assert(before !== session.state["provider-mock"]);
});

Deno.test("two instances in a plan have separate positions", async () => {
  const session = new Session();
  const first = await session.mount({ responses: ["a1", "a2"] });
  const second = await session.mount({ responses: ["b1", "b2"] });
  const texts = [];
  for (const provider of [first, second, second, first]) {
    texts.push(textOf((await provider.complete(ask("x"))).content));
  }
  assertEquals(texts, ["a1", "b1", "b2", "a2"]);
  assertEquals(session.state, { "provider-mock": { calls: 2 }, "provider-mock:2": { calls: 2 } });
});

Deno.test("a failed mount does not change the state key of the next instance", async () => {
  const session = new Session();
  await assertRejects(() => session.mount({ chunk_chars: 0 }), PreampError);
  await (await session.mount({ responses: ["a"] })).complete(ask("x"));
  assertEquals(session.state, { "provider-mock": { calls: 1 } });
});

Deno.test("complete() streams thinking and text in chunks of whole code points, a call as one delta", async () => {
  const provider = await mounted({
    chunk_chars: 3,
    responses: [{ thinking: "abcd", text: "a😀b😀c", ...call("t", { secret: "not streamed" }) }],
  });
  const deltas: StreamDelta[] = [];
  await provider.complete(ask("x"), { onDelta: (delta) => deltas.push(delta) });
  assertEquals(deltas, [
    { block_index: 0, block_type: "thinking", delta: "abc" },
    { block_index: 0, block_type: "thinking", delta: "d" },
    { block_index: 1, block_type: "text", delta: "a😀b" },
    { block_index: 1, block_type: "text", delta: "😀c" },
    { block_index: 2, block_type: "tool_call", delta: "", id: "call_1", name: "t" },
  ]);
});

Deno.test("complete() lets other code run between deltas", async () => {
  const provider = await mounted({ chunk_chars: 1, response: "abc" });
  const order: string[] = [];
  await provider.complete(ask("x"), {
    onDelta: ({ delta }) => {
      order.push(delta);
      queueMicrotask(() => order.push("other"));
    },
  });
  assertEquals(order.slice(0, 4), ["a", "other", "b", "other"]);
});

Deno.test("complete() stops with AbortError between deltas when the signal aborts", async () => {
  const session = new Session();
  const provider = await session.mount({ chunk_chars: 1, responses: ["abcdef", "next"] });
  const abort = new AbortController();
  const deltas: string[] = [];
  const options: CompleteOptions = {
    signal: abort.signal,
    onDelta: ({ delta }) => {
      deltas.push(delta);
      if (delta === "b") abort.abort("enough");
    },
  };
  const error = await llmError(() => provider.complete(ask("x"), options));
  assertEquals([error.type, error.retryable, error.cause], ["AbortError", false, "enough"]);
  assertEquals(deltas, ["a", "b"]);
  assertEquals(textOf((await provider.complete(ask("x"))).content), "next");
});

Deno.test("complete() stops with AbortError while it waits, and takes no entry when it was aborted before", async () => {
  const session = new Session();
  const provider = await session.mount({ responses: [{ text: "late", delay_ms: 60_000 }] });
  const abort = new AbortController();
  const pending = llmError(() => provider.complete(ask("x"), { signal: abort.signal }));
  abort.abort();
  assertEquals((await pending).type, "AbortError");
  assertEquals(session.state, { "provider-mock": { calls: 1 } });
  assertEquals(
    (await llmError(() => provider.complete(ask("x"), { signal: abort.signal }))).type,
    "AbortError",
  );
  assertEquals(session.state, { "provider-mock": { calls: 1 } });
});

Deno.test("complete() throws the scripted error with its fields and continues with the next entry", async () => {
  const provider = await mounted({
    responses: [
      {
        error: {
          type: "RateLimitError",
          message: "slow down",
          status_code: 429,
          retryable: true,
          retry_after: 1,
        },
      },
      { error: { type: "ContextLengthError" } },
      "fine",
    ],
  });
  const limited = await llmError(() => provider.complete(ask("x")));
  assertEquals(
    [limited.type, limited.name, limited.message, limited.provider],
    ["RateLimitError", "RateLimitError", "slow down", "mock"],
  );
  assertEquals([limited.status_code, limited.retryable, limited.retry_after], [429, true, 1]);
  const long = await llmError(() => provider.complete(ask("x")));
  assertEquals([long.type, long.retryable, long.status_code], ["ContextLengthError", false, null]);
  assertEquals(textOf((await provider.complete(ask("x"))).content), "fine");
});

Deno.test("complete() streams the text of an entry with an error before it fails", async () => {
  const provider = await mounted({
    responses: [{ text: "half an ans", error: { type: "StreamError", message: "cut" } }],
  });
  let text = "";
  const onDelta = ({ delta }: StreamDelta) => void (text += delta);
  assertEquals((await llmError(() => provider.complete(ask("x"), { onDelta }))).type, "StreamError");
  assertEquals(text, "half an ans");
});

Deno.test("complete() estimates usage that the script does not have", async () => {
  const provider = await mounted({
    responses: ["short", { text: "x", usage: { output_tokens: 3, cost_usd: "0.25", cache_read_tokens: 2 } }],
  });
  const tools = [{ name: "t", description: "d".repeat(400), parameters: {} }];
  const small = (await provider.complete(ask("hello there"))).usage;
  assert(small && small.input_tokens > 0 && small.output_tokens > 0);
  assertEquals([small.total_tokens, small.cost_usd], [small.input_tokens + small.output_tokens, null]);
  const large = (await provider.complete({ ...ask("hello there"), tools })).usage;
  assert(large && large.input_tokens > small.input_tokens + 40, "tool schemas count as input");
  assertEquals([large.output_tokens, large.cost_usd, large.cache_read_tokens], [3, "0.25", 2]);
  assertEquals(large.total_tokens, large.input_tokens + 3);
});

Deno.test("complete() computes the cost from prices unless the script has one", async () => {
  const provider = await mounted({
    prices: { input: "3", output: "15", cache_read: "0.30" },
    responses: [
      { text: "a", usage: { input_tokens: 1000, output_tokens: 100, cache_read_tokens: 500 } },
      { text: "b", usage: { cost_usd: "0.25" } },
      { text: "c", usage: { cost_usd: null } },
    ],
  });
  const cost = async () => (await provider.complete(ask("x"))).usage?.cost_usd;
  assertEquals([await cost(), await cost(), await cost()], ["0.00315", "0.25", null]);
});

Deno.test("parseToolCalls() reads tool_calls, else the blocks", async () => {
  const provider = await mounted();
  const block = { type: "tool_call", id: "call_1", name: "a", input: { x: 1 } };
  const [fromBlock] = provider.parseToolCalls({ content: [{ type: "text", text: "t" }, block] });
  assertEquals([fromBlock?.id, fromBlock?.name, fromBlock?.arguments], ["call_1", "a", { x: 1 }]);
  assertEquals(provider.parseToolCalls({ content: [block], tool_calls: [] }), []);
});

Deno.test("mount() refuses a wrong config and reports every problem", async () => {
  assertEquals(
    await findings({
      chunk_chars: 0,
      context_window: 1.5,
      after: "loop",
      priority: "high",
    }),
    [
      'Cannot read config.after: must be one of repeat, error, echo: received "loop"',
      "Cannot read config.chunk_chars: must be a whole number of at least 1: received 0",
      "Cannot read config.context_window: must be a whole number of at least 1: received 1.5",
      "Cannot read config.priority: must be a number: received text",
    ],
  );
  assertEquals(await findings({ response: "a", responses: [] }), [
    "Cannot read config.response: give response or responses, not both",
  ]);
  assertEquals(await findings({ prices: { input: 3, output: "15" } }), [
    'Cannot read config.prices.input: must be a decimal number as text, such as "0.50": received 3',
  ]);
  assertEquals(await findings({ after: "echo" }), [
    "Cannot read config.after: needs responses, which may be an empty list",
  ]);
  assertEquals(await findings({ models: [7, { id: "" }] }), [
    "Cannot read config.models[0]: must be text or an object: received 7",
    "Cannot read config.models[1].id: must have at least 1 characters: received 0",
  ]);
});

Deno.test("mount() reports the path of every wrong value in a script", async () => {
  const paths = (await findings({
    responses: [
      7,
      { colour: "blue" },
      { text: 1, delay_ms: -1 },
      { tool_calls: [{ arguments: {} }, { name: "a", arguments: 5 }, "b"] },
      { usage: { input_tokens: -1, cost_usd: 0.1 } },
      { error: { type: "Oops", retryable: "yes", status_code: 4 } },
    ],
  })).map((message) => message.split(": ")[0]);
  assertEquals(paths, [
    "Cannot read config.responses[0]",
    "Cannot read config.responses[2].text",
    "Cannot read config.responses[2].delay_ms",
    "Cannot read config.responses[3].tool_calls[0]",
    "Cannot read config.responses[3].tool_calls[1].arguments",
    "Cannot read config.responses[3].tool_calls[2]",
    "Cannot read config.responses[4].usage.input_tokens",
    "Cannot read config.responses[4].usage.cost_usd",
    "Cannot read config.responses[5].error.type",
    "Cannot read config.responses[5].error.status_code",
    "Cannot read config.responses[5].error.retryable",
  ]);
});

Deno.test("mount() truncates long values in its error", async () => {
  const [message] = await findings({ chunk_chars: "s".repeat(1000) });
  assert((message ?? "").length < 150, message);
});

const calculator = [{ name: "calculator", parameters: {} }];

testProvider("provider-mock without a script", () => ({ module, mount }), {
  tool_request: { ...ask("What is 6 × 7?"), tools: calculator },
});

testProvider("provider-mock's script", () => ({ module, mount }), {
  config: {
    chunk_chars: 2,
    responses: [{ text: "Here it is.", thinking: "Hm.", ...call("calculator", { expression: "1+1" }) }],
  },
  tool_request: { ...ask("x"), tools: calculator },
});
