/** `provider-ollama`: the provider contract, models, and the address of the server. */
import { isPassing } from "../../src/sdk/loop/provider_errors.ts";
import { TestCoordinator, testProvider } from "preamp/testing";
import * as ollama from "../../modules/provider-ollama/mod.ts";
import { assertEquals } from "../assert.ts";
import { fakeServer } from "./providers/fake_server.ts";
import { OLLAMA } from "./providers/ollama_wire.ts";

const DETAILS: Readonly<Record<string, unknown>> = {
  "qwen3:8b": {
    model_info: { "general.architecture": "qwen3", "qwen3.context_length": 40_960 },
    capabilities: ["completion", "tools", "thinking"],
  },
  "mine:latest": {},
};

const server = fakeServer(({ path, body }) => {
  if (path === "/api/tags") return Response.json({ models: Object.keys(DETAILS).map((name) => ({ name })) });
  if (path === "/api/show") return Response.json(DETAILS[String(body.model)]);
  const calls = body.tools ? [{ id: "call_1", name: "calculator", arguments: ["{}"] }] : [];
  const answer = { text: calls.length > 0 ? [] : ["Hello"], calls };
  if (!body.stream) return Response.json(OLLAMA.whole(answer));
  return new Response(OLLAMA.events(answer).join(""), { headers: { "content-type": OLLAMA.stream_type } });
});
Deno.test.afterAll(async () => await server[Symbol.asyncDispose]());
const config = { base_url: server.url };

testProvider("provider-ollama", () => ollama, {
  config,
  tool_request: {
    messages: [{ role: "user", content: "What is 6 * 7?" }],
    tools: [{ name: "calculator", parameters: { type: "object" } }],
  },
});

Deno.test("listModels() returns the server's models, with the windows they support", async () => {
  const coordinator = new TestCoordinator();
  await ollama.mount(coordinator, config);
  const models = await coordinator.providers.ollama!.listModels();
  assertEquals(models.map(({ id, context_window, capabilities }) => ({ id, context_window, capabilities })), [
    { id: "qwen3:8b", context_window: 40_960, capabilities: ["streaming", "tools", "thinking"] },
    {
      id: "mine:latest",
      context_window: 16_384,
      capabilities: ["streaming", "tools", "vision", "thinking", "json_schema"],
    },
  ]);
});

const port = new URL(server.url).port;
const ADDRESSES = [
  server.url,
  `${server.url}/`,
  `127.0.0.1:${port}`,
  `0.0.0.0:${port}`,
  `:${port}`,
  `http://0.0.0.0:${port}/`,
  `${server.url}/api`,
  `${server.url}/v1/`,
  ` 127.0.0.1:${port} `,
];

for (const base_url of ADDRESSES) {
  Deno.test(`mount() reads the address ${JSON.stringify(base_url)} as OLLAMA_HOST writes it`, async () => {
    const coordinator = new TestCoordinator();
    await ollama.mount(coordinator, { base_url });
    const { content } = await coordinator.providers.ollama!.complete({
      messages: [{ role: "user", content: "Hello" }],
    });
    assertEquals(content, [{ type: "text", text: "Hello" }]);
  });
}

Deno.test("a server that does not run is reported at once, with what to do", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port: closed } = listener.addr;
  listener.close();
  const coordinator = new TestCoordinator();
  await ollama.mount(coordinator, { base_url: `127.0.0.1:${closed}` });
  const error = await coordinator.providers.ollama!.complete({ messages: [{ role: "user", content: "Hi" }] })
    .then(() => null, (thrown) => thrown);
  assertEquals([error.type, error.message], [
    "NetworkError",
    `Cannot reach Ollama at http://127.0.0.1:${closed}: is Ollama running? nothing listens there; start it with \`ollama serve\`, ` +
    "or set base_url or the variable OLLAMA_HOST",
  ]);
  assertEquals(coordinator.hooks.events.filter(([event]) => event === "provider:retry"), []);
  assertEquals(isPassing(error), true, "another provider may be asked");
});

Deno.test("the key goes to the server that base_url names", async () => {
  const coordinator = new TestCoordinator();
  await ollama.mount(coordinator, { ...config, api_key: "sk-test" });
  await coordinator.providers.ollama!.complete({ messages: [{ role: "user", content: "Hello" }] });
  const { headers, body } = server.requests.at(-1)!;
  assertEquals(headers.get("authorization"), "Bearer sk-test");
  assertEquals(JSON.stringify(body).includes("sk-test"), false);
});

Deno.test("a server that this process may not reach is not tried again", async () => {
  const coordinator = new TestCoordinator();
  await ollama.mount(coordinator, config);
  const original = globalThis.fetch;
  globalThis.fetch = () => Promise.reject(new Deno.errors.NotCapable("Requires net access"));
  try {
    const error = await coordinator.providers.ollama!.complete({
      messages: [{ role: "user", content: "Hi" }],
    })
      .then(() => null, (thrown) => thrown);
    assertEquals([error.type, error.message], [
      "ConfigurationError",
      `Cannot reach Ollama at ${server.url}: Requires net access`,
    ]);
  } finally {
    globalThis.fetch = original;
  }
});
