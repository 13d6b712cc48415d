/** `provider-gemini` over its own client: the provider contract, models, and the key. */
import { assertEquals, assertMatch } from "../assert.ts";
import { TestCoordinator, testProvider } from "preamp/testing";
import * as gemini from "../../modules/provider-gemini/mod.ts";
import { knownModels } from "../../modules/provider-gemini/mod.ts";
import { fakeServer } from "./providers/fake_server.ts";
import { GEMINI } from "./providers/gemini_wire.ts";

const MODELS = [
  {
    name: "models/gemini-3.8-flash",
    displayName: "Gemini 3.8 Flash",
    inputTokenLimit: 1_048_576,
    outputTokenLimit: 65_536,
    supportedGenerationMethods: ["generateContent", "countTokens"],
  },
  { name: "models/gemini-9-new", supportedGenerationMethods: ["generateContent"] },
  { name: "models/gemini-embedding-2", supportedGenerationMethods: ["embedContent"] },
];

const server = fakeServer(({ path, body }) => {
  if (path.startsWith("/v1beta/models?")) return Response.json({ models: MODELS });
  const calls = body.tools ? [{ id: "call_1", name: "calculator", arguments: ["{}"] }] : [];
  const answer = { text: calls.length > 0 ? [] : ["Hello"], calls };
  if (!path.includes(":streamGenerateContent")) return Response.json(GEMINI.whole(answer));
  return new Response(GEMINI.events(answer).join(""), { headers: { "content-type": GEMINI.stream_type } });
});
Deno.test.afterAll(async () => await server[Symbol.asyncDispose]());
const config = { api_key: "sk-test", base_url: server.url };

testProvider("provider-gemini", () => gemini, {
  config,
  tool_request: {
    messages: [{ role: "user", content: "What is 6 * 7?" }],
    tools: [{ name: "calculator", parameters: { type: "object" } }],
  },
});

Deno.test("mount() without a key is skipped and says what to do", async () => {
  assertEquals(await gemini.mount(new TestCoordinator(), {}), {
    skipped: "Cannot use provider-gemini without a key: set the variable GEMINI_API_KEY or GOOGLE_API_KEY; " +
      "keys are created at https://aistudio.google.com/apikey",
  });
});

Deno.test("listModels() returns models that generate content, with sizes", async () => {
  const coordinator = new TestCoordinator();
  await gemini.mount(coordinator, config);
  const models = await coordinator.providers.gemini!.listModels();
  assertEquals(
    models.map(({ id, display_name, context_window, max_output_tokens }) => [
      id,
      display_name,
      context_window,
      max_output_tokens,
    ]),
    [
      ["gemini-3.8-flash", "Gemini 3.8 Flash", 1_048_576, 65_536],
      ["gemini-9-new", "gemini-9-new", 1_048_576, 65_536],
    ],
  );
});

Deno.test("the key is in a header only, and variables of the process change no request", async () => {
  Deno.env.set("GOOGLE_GEMINI_BASE_URL", "http://127.0.0.1:1");
  Deno.env.set("GOOGLE_GENAI_USE_VERTEXAI", "true");
  try {
    const coordinator = new TestCoordinator();
    await gemini.mount(coordinator, { ...config, base_url: `${server.url}/v1beta/` });
    await coordinator.providers.gemini!.complete({ messages: [{ role: "user", content: "Hello" }] });
    const { path, headers, body } = server.requests.at(-1)!;
    assertEquals(path, "/v1beta/models/gemini-3.8-flash:generateContent");
    assertEquals(headers.get("x-goog-api-key"), "sk-test");
    assertEquals(JSON.stringify(body).includes("sk-test"), false);
  } finally {
    Deno.env.delete("GOOGLE_GEMINI_BASE_URL");
    Deno.env.delete("GOOGLE_GENAI_USE_VERTEXAI");
  }
});

Deno.test("knownModels() has the prices of a day", () => {
  const priceOf = (day: string, id: string) =>
    knownModels(new Date(day)).find((model) => model.id === id)?.prices;
  assertEquals(priceOf("2026-11-30T23:59:59Z", "gemini-4-argon"), {
    input: "2",
    cache_read: "0.10",
    output: "10",
  });
  assertEquals(priceOf("2026-12-01T00:00:00Z", "gemini-4-argon")?.input, "4");
  assertEquals(priceOf("2027-01-01T00:00:00Z", "gemini-3.8-flash")?.output, "7.50");
  assertEquals(priceOf("2026-11-30T00:00:00Z", "gemini-2.5-pro")?.input, "1.25");
  assertEquals(priceOf("2026-12-01T00:00:00Z", "gemini-2.5-pro"), undefined);
});

Deno.test("a server that cannot be reached is reported with the reason", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  listener.close();
  const coordinator = new TestCoordinator();
  await gemini.mount(coordinator, { api_key: "k", base_url: `http://127.0.0.1:${port}`, max_retries: 0 });
  const error = await coordinator.providers.gemini!.complete({ messages: [{ role: "user", content: "Hi" }] })
    .then(() => null, (thrown) => thrown);
  assertEquals([error.type, error.retryable], ["NetworkError", true]);
  assertMatch(error.message, /^Cannot reach the API: nothing listens at .*; is the server running\?$/);
});

Deno.test("a server that this process may not reach is not tried again", async () => {
  const coordinator = new TestCoordinator();
  await gemini.mount(coordinator, { api_key: "k", base_url: "http://127.0.0.1:1" });
  const original = globalThis.fetch;
  globalThis.fetch = () => Promise.reject(new Deno.errors.NotCapable("Requires net access"));
  try {
    const error = await coordinator.providers.gemini!.complete({
      messages: [{ role: "user", content: "Hi" }],
    })
      .then(() => null, (thrown) => thrown);
    assertEquals([error.type, error.message], [
      "ConfigurationError",
      "Cannot reach the API: Requires net access",
    ]);
  } finally {
    globalThis.fetch = original;
  }
});
