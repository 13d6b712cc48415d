/**
 * A real model behind three wire formats: the server of llama.cpp at the address in REAL_MODEL_URL, which has
 * Chat Completions, Responses and Messages. Skipped without that variable.
 */
import type { ChatRequest, JsonObject, LLMError, Module, Provider, StreamDelta } from "preamp";
import { textOf } from "preamp";
import { TestCoordinator } from "preamp/testing";
import * as anthropic from "../../modules/provider-anthropic/mod.ts";
import * as openai from "../../modules/provider-openai/mod.ts";
import { systemClock } from "../../src/process/system_clock.ts";
import { assert, assertEquals } from "../assert.ts";

const URL_OF_MODEL = Deno.env.get("REAL_MODEL_URL");
const ignore = URL_OF_MODEL === undefined;

const APIS: Readonly<Record<string, readonly [name: string, module: Module, config: JsonObject]>> = {
  "Chat Completions": ["openai", openai, { base_url: `${URL_OF_MODEL}/v1` }],
  "Responses": ["openai", openai, { base_url: `${URL_OF_MODEL}/v1`, api: "responses" }],
  "Messages": ["anthropic", anthropic, { base_url: URL_OF_MODEL, api_key: "none" }],
};

function ask(content: string, fields: Partial<ChatRequest> = {}): ChatRequest {
  return { messages: [{ role: "user", content }], max_output_tokens: 16, ...fields };
}

async function mounted(api: string): Promise<Provider> {
  const [name, module, config] = APIS[api]!;
  const coordinator = new TestCoordinator({ clock: systemClock() });
  await module.mount(coordinator, { model: "local", max_retries: 0, ...config });
  return coordinator.providers[name]!; // mounted above
}

for (const api of Object.keys(APIS)) {
  Deno.test({
    name: `${api}: a real model's stream is its answer, with its usage`,
    ignore,
    fn: async () => {
      const provider = await mounted(api);
      const deltas: StreamDelta[] = [];
      const answer = await provider.complete(ask("Say hello."), {
        onDelta: (delta) => void deltas.push(delta),
      });
      assertEquals(deltas.map(({ delta }) => delta).join(""), textOf(answer.content));
      assert(deltas.length > 1 && (answer.usage?.input_tokens ?? 0) > 0, JSON.stringify(answer));
      assert(["stop", "length"].includes(String(answer.finish_reason)));
    },
  });

  Deno.test({
    name: `${api}: a real server's limit of the window is a ContextLengthError with its numbers`,
    ignore,
    fn: async () => {
      const provider = await mounted(api);
      const error: LLMError = await provider.complete(ask("word ".repeat(20_000))).then(
        () => assert(false, "it was answered"),
        (thrown) => thrown,
      );
      assertEquals(error.type, "ContextLengthError");
      assert(error.requested_tokens! > error.limit_tokens!, error.message);
    },
  });
}

Deno.test({
  name: "a real model's answer ends before a stop text, and has the form of a schema",
  ignore,
  fn: async () => {
    const provider = await mounted("Chat Completions");
    const stopped = await provider.complete(ask("Say hello.", { stop: ["e", "a", "o"] }));
    assertEquals([stopped.finish_reason, /[eao]/.test(textOf(stopped.content))], ["stop", false]);
    const schema = { type: "object", properties: { n: { type: "integer", maximum: 9 } }, required: ["n"] };
    const format = { type: "json_schema" as const, schema: { ...schema, additionalProperties: false } };
    const formed = await provider.complete(
      ask("A number.", { response_format: format, max_output_tokens: 64 }),
    );
    assertEquals(typeof JSON.parse(textOf(formed.content)).n, "number");
  },
});
