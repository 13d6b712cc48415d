/** Costs that a server states. */
import type { JsonObject } from "preamp";
import { type CallSettings, type ProviderSettings, toConversation } from "preamp/provider";
import { OpenAIBackend } from "../../../modules/provider-openai/backend.ts";
import { assertEquals } from "../../assert.ts";
import { CHAT_USAGE, completion } from "./wire.ts";

/** Returns the cost of an answer with this usage of the server at `base_url`. */
async function costOf(base_url: string, usage: JsonObject): Promise<string | undefined> {
  const settings = { base_url, config: {} } as unknown as ProviderSettings; // all that the backend reads
  const backend = new OpenAIBackend(settings, "ses_1");
  const call: CallSettings = {
    model: "vendor/model",
    conversation: toConversation([{ role: "user", content: "Hi" }], "openai").conversation,
    tools: [],
    max_output_tokens: 100,
    stream: false,
  };
  const body = completion({ content: "Hi" }, "stop", { usage: { ...CHAT_USAGE, ...usage } });
  const fetch = () => Promise.resolve(Response.json(body));
  const answer = await backend.send(backend.toRequest(call), { fetch, signal: new AbortController().signal });
  return answer.usage?.cost_usd;
}

Deno.test("the cost that OpenRouter states is that of the answer; other servers may count in other units", async () => {
  const address = "https://openrouter.ai/api/v1";
  assertEquals(await costOf(address, { cost: 0.00014 }), "0.00014");
  assertEquals(await costOf(address, { cost: 0 }), "0");
  assertEquals(await costOf(address, { cost: 12 }), "12");
  for (const cost of [1e-15, -1, 1e30, "0.1", null]) {
    assertEquals(await costOf(address, { cost }), cost === 1e-15 ? "0" : undefined);
  }
  assertEquals(await costOf("https://example.com/v1", { cost: 0.5 }), undefined);
});
