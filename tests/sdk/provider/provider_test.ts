/** What `mountProvider` does around a backend: settings, retries, timeouts, limits, cost, events. */
import { type ChatRequest, type JsonObject, LLMError } from "preamp";
import { type AnswerUsage, mountProvider } from "preamp/provider";
import { TestCoordinator, testProvider, turn } from "preamp/testing";
import { assert, assertEquals, assertMatch, assertRejects } from "../../assert.ts";
import { until } from "../../support/clock.ts";
import { definitionOf, type Mounted, mountFake, textAnswer } from "./fake_backend.ts";

const HELLO: ChatRequest = { messages: [{ role: "user", content: "Hello" }] };

testProvider("a provider on a backend", async () => {
  const { provider } = await mountFake(({ onDelta }) => {
    onDelta?.({ block_index: 0, block_type: "text", delta: "Hi" });
    return textAnswer("Hi");
  });
  return provider;
});

Deno.test("mountProvider() without a key is skipped, unless the key is optional", async () => {
  const mount = (fields: object, config: JsonObject = { base_url: "http://127.0.0.1" }) =>
    mountProvider(new TestCoordinator(), config, definitionOf(() => textAnswer(""), fields));
  const credential = { env_vars: ["FAKE_KEY", "FAKE_TOKEN"], url: "https://example.com/keys" };
  for (const config of [{}, { api_key: " \n" }]) {
    assertEquals(await mount({}, config), {
      skipped: "Cannot use provider-fake without a key: set the variable FAKE_KEY or FAKE_TOKEN; " +
        "keys are created at https://example.com/keys",
    });
  }
  assertEquals(await mount({}), {
    skipped:
      "Cannot use provider-fake without a key: base_url is another server: state the key as api_key in its " +
      "config, such as ${FAKE_KEY}; the variable alone is the key for the vendor's own address",
  });
  assertEquals(await mount({ credential: { ...credential, optional: true } }), undefined);
  const optional = (config: JsonObject) => config.base_url !== undefined;
  assertEquals(await mount({ credential: { ...credential, optional } }), undefined);
});

Deno.test("mountProvider() names the variable that a key or an address comes from, as far as the plan says", async () => {
  const credential = { env_vars: ["FAKE_KEY", "FAKE_TOKEN"], url: "https://example.com/keys" };
  const messageOf = async (entry: unknown, config: JsonObject) => {
    const coordinator = new TestCoordinator({
      config: { providers: ["provider-other", entry] } as JsonObject,
    });
    const definition = definitionOf(() => textAnswer(""), { credential, base_url_env_vars: ["FAKE_URL"] });
    try {
      const returned = await mountProvider(coordinator, config, definition) as
        | { skipped?: string }
        | undefined;
      return returned?.skipped ?? "";
    } catch (error) {
      return (error as Error).message;
    }
  };
  const of = (config: JsonObject, more = {}) => ({ module: "provider-fake", config, ...more });
  for (
    const [entry, config, message] of [
      ["provider-fake", {}, /: set the variable FAKE_KEY or FAKE_TOKEN; keys/],
      ["provider-fake", { base_url: "http://h.test" }, /: set the variable FAKE_KEY or FAKE_TOKEN; keys/], // of FAKE_URL
      [of({ api_key: "${MINE}" }), {}, /: set the variable MINE; keys/],
      [
        of({ base_url: "http://h.test" }),
        { base_url: "http://h.test" },
        /base_url is another server: state the key/,
      ],
      [
        of({}, { source: "./fake.ts" }),
        {},
        /: state the key as api_key in its config, such as \$\{FAKE_KEY\}; keys/,
      ],
      ["provider-fake", { api_key: "x…" }, /^Cannot use the variable FAKE_KEY or FAKE_TOKEN: must be a key/],
      [of({ api_key: "${MINE}" }), { api_key: "x…" }, /^Cannot use the variable MINE: must be a key/],
      [of({ api_key: "x…" }), { api_key: "x…" }, /^Cannot read config\.api_key: must be a key/],
      [
        "provider-fake",
        { api_key: "x", base_url: "no" },
        /^Cannot use the variable FAKE_URL: must be an http/,
      ],
    ] as const
  ) {
    assertMatch(await messageOf(entry, config), message);
  }
});

const WRONG: readonly [config: JsonObject, message: string][] = [
  [
    { base_url: "example.com" },
    "Cannot read config.base_url: must be an http or https URL without a user name",
  ],
  [{ base_url: "https://a:b@example.com" }, "Cannot read config.base_url: must be an http or https URL"],
  [{ base_url: "ftp://example.com" }, "Cannot read config.base_url: must be an http or https URL"],
  [{ max_retries: -1 }, "config.max_retries"],
  [{ prices: { input: 3, output: "1" } }, "config.prices.input"],
  [{ temprature: 1 }, "temprature"],
];

for (const [config, text] of WRONG) {
  Deno.test(`mountProvider() refuses ${JSON.stringify(config)}`, async () => {
    await assertRejects(() => mountFake(() => textAnswer(""), config), Error, text);
  });
}

Deno.test("getInfo() and getModelInfo() have the sizes of the table, the config or the defaults", async () => {
  const sizes = async (config: JsonObject) => {
    const { provider } = await mountFake(() => textAnswer(""), config);
    return provider.getInfo().defaults;
  };
  const info = (model: string, context_window: number, max_output_tokens: number) => ({
    model,
    context_window,
    max_output_tokens,
  });
  assertEquals(await sizes({}), info("small", 8000, 1000));
  assertEquals(await sizes({ model: "small-20260101" }), info("small-20260101", 8000, 1000));
  assertEquals(await sizes({ model: "small-plus" }), info("small-plus", 5000, 1000));
  assertEquals(await sizes({ max_output_tokens: 9999 }), info("small", 8000, 2000));
  assertEquals(await sizes({ model: "x", context_window: 7, max_output_tokens: 3 }), info("x", 7, 3));
  const models = [{ id: "x", context_window: 70, max_output_tokens: 30 }];
  assertEquals(await sizes({ model: "x", models }), info("x", 70, 30));
});

Deno.test("listModels() fills in what the backend does not know", async () => {
  const { provider } = await mountFake(() => textAnswer(""));
  assertEquals(
    (await provider.listModels()).map((
      { id, context_window, max_output_tokens },
    ) => [id, context_window, max_output_tokens]),
    [["small", 9000, 1000], ["unknown-7", 5000, 1000]],
  );
});

Deno.test("a request's own settings win over the config's", async () => {
  const bodies: unknown[] = [];
  const definition = definitionOf(() => textAnswer("x"));
  const backend = await definition.load({} as never);
  const coordinator = new TestCoordinator();
  await mountProvider(coordinator, { api_key: "k", temperature: 0.1, reasoning_effort: "low" }, {
    ...definition,
    load: () => ({
      ...backend,
      toRequest: (call) => {
        const { conversation: _, ...settings } = call;
        bodies.push(settings);
        return backend.toRequest(call);
      },
    }),
  });
  await coordinator.providers.fake!.complete(HELLO);
  await coordinator.providers.fake!.complete({
    ...HELLO,
    model: "other",
    temperature: 0,
    max_output_tokens: 5000,
  });
  assertEquals(bodies, [
    {
      model: "small",
      tools: [],
      max_output_tokens: 1000,
      stream: false,
      temperature: 0.1,
      reasoning_effort: "low",
    },
    {
      model: "other",
      tools: [],
      max_output_tokens: 5000,
      stream: false,
      temperature: 0,
      reasoning_effort: "low",
    },
  ]);
});

const USAGE = { input_tokens: 60, cache_read_tokens: 20, cache_write_tokens: 10, output_tokens: 5 };

Deno.test("the usage of an answer that breaks off is estimated where the backend counted no output", async () => {
  const { provider } = await mountFake(({ onDelta, onUsage }) => {
    onUsage?.({ input_tokens: 7 } as AnswerUsage); // as a backend without types may report it
    onDelta?.({ block_index: 0, block_type: "text", delta: "This is the begin of a text" });
    throw new LLMError("StreamError", "It broke");
  });
  const error = await provider.complete(HELLO, { onDelta() {} }).then(() => null, (thrown) => thrown);
  assertEquals([error.usage.input_tokens, error.usage.output_tokens > 3], [7, true]);
});

Deno.test("usage has the cost by the plan's prices, else the table's, else that of the backend, else null", async () => {
  const costOf = async (config: JsonObject, usage: AnswerUsage = USAGE) => {
    const { provider } = await mountFake(() => textAnswer("x", { usage }), config);
    return (await provider.complete(HELLO)).usage?.cost_usd;
  };
  assertEquals(await costOf({}), "0.0000545"); // 30 × 1 + 20 × 0.1 + 10 × 1.25 + 5 × 2
  assertEquals(await costOf({}, { ...USAGE, input_tokens: 105 }), "0.00115"); // above 100 tokens: 105 × 10 + 5 × 20
  assertEquals(await costOf({ prices: { input: "1", output: "1" } }), "0.000065");
  assertEquals(await costOf({ model: "other" }), null);
  assertEquals(await costOf({ model: "other" }, { ...USAGE, cost_usd: "0.5" }), "0.5");
  assertEquals(await costOf({}, { ...USAGE, cost_usd: "0.5" }), "0.0000545");
  assertEquals(await costOf({ base_url: "http://127.0.0.1:1" }), "0.0000545"); // such as a gateway
  assertEquals(await costOf({ models: [{ id: "small", prices: { input: "2", output: "0" } }] }), "0.00012");
});

Deno.test("tokens of a request that the server did not report are estimated, and say so", async () => {
  const usageOf = async (usage?: typeof USAGE) => {
    const { provider } = await mountFake(() => textAnswer("one two three", usage ? { usage } : {}));
    return (await provider.complete(HELLO)).usage!;
  };
  for (const usage of [undefined, { ...USAGE, input_tokens: 0, cache_write_tokens: 0, output_tokens: 0 }]) {
    const { input_tokens, output_tokens, total_tokens, estimated } = await usageOf(usage);
    assert(input_tokens >= 1 && output_tokens >= 3, `${input_tokens} ${output_tokens}`);
    assertEquals([total_tokens, estimated], [input_tokens + output_tokens, true]);
  }
  const { input_tokens, output_tokens } = await usageOf({ ...USAGE, input_tokens: 0, cache_write_tokens: 0 });
  assertEquals([input_tokens >= 1, output_tokens], [true, USAGE.output_tokens]); // some servers leave out a cached prompt
  assertEquals((await usageOf(USAGE)).estimated, undefined);
  const { input_tokens: counted, output_tokens: uncounted, estimated } = await usageOf({
    ...USAGE,
    output_tokens: 0,
  });
  assertEquals([counted, uncounted >= 3, estimated], [USAGE.input_tokens, true, true]); // some servers do not count the answer
});

Deno.test("an answer without content has no tokens when the server reports none", async () => {
  const { provider } = await mountFake(() => ({ content: [], finish_reason: "content_filter" }));
  const { output_tokens, estimated } = (await provider.complete(HELLO)).usage!;
  assertEquals([output_tokens, estimated], [0, true]);
});

Deno.test("session.cost is the sum of all answers, and null with an unknown one", async () => {
  const usage = { input_tokens: 1, output_tokens: 1 };
  const { provider, coordinator } = await mountFake(() => textAnswer("x", { usage }));
  const cost = () => coordinator.collectContributions("session.cost");
  assertEquals(await cost(), [{ cost_usd: null }]);
  await provider.complete(HELLO);
  await provider.complete(HELLO);
  assertEquals(await cost(), [{ cost_usd: "0.000006" }]);
  await provider.complete({ ...HELLO, model: "other" });
  assertEquals(await cost(), [{ cost_usd: null }]);
});

Deno.test("a call emits llm:request and llm:response, with the bodies only on request", async () => {
  for (const raw of [false, true]) {
    const { provider, coordinator } = await mountFake(
      () => textAnswer("x", { raw: { wire: 1 }, usage: USAGE }),
      { raw },
    );
    await provider.complete(HELLO);
    const events = coordinator.hooks.events.map((
      [name, { session_id: _, parent_id: __, timestamp: ___, ...data }],
    ) => [
      name,
      data,
    ]);
    const body = { model: "small", tools: [], max_output_tokens: 1000, stream: false };
    const { request_id } = events[0]![1] as JsonObject;
    assertMatch(String(request_id), /^[0-9a-f-]{36}$/);
    assertEquals(JSON.parse(JSON.stringify(events)), [
      ["llm:request", {
        request_id,
        provider: "fake",
        model: "small",
        message_count: 1,
        has_instructions: false,
        reasoning_enabled: false,
        thinking_enabled: false,
        ...(raw ? { raw: body } : {}),
      }],
      ["llm:response", {
        request_id,
        provider: "fake",
        model: "small",
        status: "ok",
        duration_ms: 0,
        usage: { ...USAGE, total_tokens: 65, cost_usd: "0.0000545" },
        ...(raw ? { raw: { answer: { wire: 1 } } } : {}),
      }],
    ]);
  }
});

Deno.test("a call without a result is repaired and reported once", async () => {
  const { provider, coordinator } = await mountFake(() => textAnswer("x"));
  const messages: ChatRequest["messages"] = [
    { role: "user", content: "Go" },
    { role: "assistant", content: [{ type: "tool_call", id: "a", name: "lookup", input: {} }] },
    { role: "user", content: "On" },
  ];
  await provider.complete({ messages });
  await provider.complete({ messages });
  const reports = coordinator.hooks.getEvents("provider:tool_sequence_repaired");
  assertEquals(
    reports.map(([, { provider, repair_count, repairs }]) => ({ provider, repair_count, repairs })),
    [{
      provider: "fake",
      repair_count: 1,
      repairs: [{ tool_call_id: "a", tool_name: "lookup" }],
    }],
  );
});

Deno.test("blocks with fields of their own are marked with the provider and its server", async () => {
  const content = [
    { type: "text", text: "plain" },
    { type: "text", text: "cited", citations: [1] },
    { type: "thinking", thinking: "hm", signature: "s" },
    { type: "tool_call", id: "a", name: "lookup", input: {} },
    { type: "tool_call", id: "b", name: "lookup", input: {}, thought_signature: "s" },
  ];
  const marks = async (config: JsonObject) => {
    const { provider } = await mountFake(() => ({ content, finish_reason: "tool_calls" }), config);
    const { content: blocks, tool_calls } = await provider.complete(HELLO);
    assertEquals(tool_calls?.map((call) => Object.keys(call)), [["id", "name", "arguments"], [
      "id",
      "name",
      "arguments",
    ]]);
    return blocks.map((block) => block.provider);
  };
  assertEquals(await marks({}), [undefined, "fake", "fake", undefined, "fake"]);
  const host = "fake@llm.example.com";
  assertEquals(await marks({ base_url: "https://llm.example.com/v1/" }), [
    undefined,
    host,
    host,
    undefined,
    host,
  ]);
});

Deno.test("an error of the backend keeps the numbers that only its fields have", async () => {
  const { provider } = await mountFake(() => {
    const numbers = { limit_tokens: 4000, requested_tokens: 5000, status_code: 400, retry_after: 2 };
    throw new LLMError("ContextLengthError", "too long", numbers);
  });
  const error = await assertRejects(() => provider.complete(HELLO), LLMError) as LLMError;
  const { limit_tokens, requested_tokens, status_code, retry_after } = error;
  assertEquals([limit_tokens, requested_tokens, status_code, retry_after], [4000, 5000, 400, 2]);
});

Deno.test("an abort ends the call at once, even when the backend ignores it", async () => {
  const abort = new AbortController();
  let sent = false;
  const { provider, coordinator } = await mountFake(() => {
    sent = true;
    return new Promise(() => {});
  });
  const call = provider.complete(HELLO, { signal: abort.signal });
  until(() => sent).then(() => abort.abort(new Error("stop")));
  const error = await assertRejects(() => call, LLMError) as LLMError;
  assertEquals([error.type, error.retryable], ["AbortError", false]);
  assertEquals(coordinator.hooks.getEvents("provider:retry"), []);
});

Deno.test("an abort ends the wait before a retry", async () => {
  const abort = new AbortController();
  const { provider, coordinator } = await mountFake(() => {
    throw new LLMError("RateLimitError", "slow down");
  });
  coordinator.hooks.register("provider:retry", () => {
    setTimeout(() => abort.abort(), 0); // the wait begins after this event
    return null;
  });
  const error = await assertRejects(
    () => provider.complete(HELLO, { signal: abort.signal }),
    LLMError,
  ) as LLMError;
  assertEquals(error.type, "AbortError");
});

Deno.test("a delta after the end of a call, or of an attempt, is dropped", async () => {
  const deltas: string[] = [];
  let late: (() => void) | undefined;
  const { provider } = await mountFake(({ onDelta }) => {
    late = () => onDelta!({ block_index: 0, block_type: "text", delta: "late" });
    onDelta!({ block_index: 0, block_type: "text", delta: "in time" });
    return textAnswer("in time");
  });
  await provider.complete(HELLO, { onDelta: ({ delta }) => void deltas.push(delta) });
  late!();
  assertEquals(deltas, ["in time"]);
});

Deno.test("an error message does not repeat the key", async () => {
  const { provider } = await mountFake(() => {
    throw new LLMError("AuthenticationError", "Incorrect API key provided: sk-0123456789.");
  });
  const error = await assertRejects(() => provider.complete(HELLO), LLMError);
  assertEquals(error.message, "Incorrect API key provided: [REDACTED].");
});

Deno.test("an error message is cut, after the key in it was removed", async () => {
  const page = `${"x".repeat(3990)} sk-0123456789 ${"y".repeat(10_000)}`;
  const { provider } = await mountFake(() => Promise.reject(new LLMError("AccessDeniedError", page)));
  const error = await provider.complete(HELLO).catch((error) => error);
  assertEquals(error.message, `${"x".repeat(3990)} [REDACTED …`);
});

Deno.test("a client that cannot be imported is imported again at the next call", async () => {
  const definition = definitionOf(() => textAnswer("x"));
  let imports = 0;
  const { provider } = await mountFake(() => textAnswer("x"), {}, {
    load: (settings) => {
      if (imports++ === 0) throw new TypeError("Module not found");
      return definition.load(settings);
    },
  });
  await assertRejects(
    () => provider.complete(HELLO),
    LLMError,
    "Cannot load the package of Fake: Module not found",
  );
  assertEquals((await provider.complete(HELLO)).content, [{ type: "text", text: "x" }]);
});

Deno.test("max_concurrent calls run at once, across sessions with the same key, in order", async () => {
  const order: string[] = [];
  const release: (() => void)[] = [];
  const send = (name: string) => () =>
    new Promise<ReturnType<typeof textAnswer>>((resolve) => {
      order.push(name);
      release.push(() => resolve(textAnswer(name)));
    });
  const config = { max_concurrent: 2, api_key: "sk-concurrent-1" };
  const one = await mountFake(send("one"), config);
  const two = await mountFake(send("two"), config);
  const other = await mountFake(send("other"), { ...config, api_key: "sk-concurrent-2" });
  const abort = new AbortController();
  const calls: Promise<unknown>[] = [];
  const waiting = () =>
    [one, two].flatMap(({ coordinator }) => coordinator.hooks.getEvents("provider:concurrency")).length;
  const call = async (mounted: Mounted, signal?: AbortSignal) => {
    calls.push(mounted.provider.complete(HELLO, signal ? { signal } : {}));
    await until(() => order.length + waiting() === calls.length);
  };
  await call(one);
  await call(two);
  await call(one, abort.signal);
  const gone = assertRejects(() => calls[2]!, LLMError);
  await call(two);
  await call(other);
  assertEquals(order, ["one", "two", "other"]);
  const queued = two.coordinator.hooks.getEvents("provider:concurrency");
  assertEquals(
    queued.map(([, { active_requests, waiting_requests, max_concurrent }]) => [
      active_requests,
      waiting_requests,
      max_concurrent,
    ]),
    [[2, 2, 2]],
  );
  abort.abort();
  await gone;
  release[0]!();
  await calls[0];
  await until(() => order.length > 3);
  assertEquals(order, ["one", "two", "other", "two"]);
  for (const end of release) end();
  await Promise.all([calls[1], calls[3], calls[4]]);
});

Deno.test("max_concurrent holds for sessions between which many other keys were used", async () => {
  const started: string[] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  const send = (name: string) => async () => {
    started.push(name);
    await promise;
    return textAnswer(name);
  };
  const config = { max_concurrent: 1, api_key: "sk-concurrent-3" };
  const one = await mountFake(send("one"), config);
  for (let key = 0; key < 300; key++) {
    const other = await mountFake(() => textAnswer(""), { ...config, api_key: `sk-other-${key}` });
    await other.provider.complete(HELLO);
  }
  const two = await mountFake(send("two"), config);
  const calls = [one, two].map(({ provider }) => provider.complete(HELLO));
  await turn();
  assertEquals(started, ["one"]);
  resolve();
  await Promise.all(calls);
  assertEquals(started, ["one", "two"]);
});

Deno.test("min_delay_ms passes between the starts of two calls", async () => {
  const started: number[] = [];
  const { provider, clock, coordinator } = await mountFake(() => {
    started.push(clock.monotonic());
    return textAnswer("x");
  }, { min_delay_ms: 500, api_key: "sk-delay-0001" });
  const calls = [provider.complete(HELLO), provider.complete(HELLO), provider.complete(HELLO)];
  await clock.advance(2000);
  await Promise.all(calls);
  assertEquals(started, [0, 500, 1000]);
  assertEquals(
    coordinator.hooks.getEvents("provider:throttle").map(([, { delay, reason }]) => [delay, reason]),
    [
      [0.5, "min_delay_ms"],
      [1, "min_delay_ms"],
    ],
  );
});
