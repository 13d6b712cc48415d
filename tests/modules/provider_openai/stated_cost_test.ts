/** Costs that a server states. */
import type { JsonObject } from "preamp";
import { type CallSettings, type ProviderSettings, toConversation } from "preamp/provider";
import { createBackend } from "../../../modules/ai-sdk/openai.ts";
import { assertEquals } from "../../assert.ts";
import { CHAT_USAGE, completion, outputMessage, response } from "./wire.ts";

/** Returns the cost of an answer with this usage of the server at `base_url`. */
async function costOf(base_url: string, usage: JsonObject, api = "chat"): Promise<string | undefined> {
  const settings = { base_url, config: { api } } as unknown as ProviderSettings; // all that the backend reads
  const backend = createBackend(settings);
  const call: CallSettings = {
    model: "vendor/model",
    conversation: toConversation([{ role: "user", content: "Hi" }], "openai").conversation,
    tools: [],
    max_output_tokens: 100,
    stream: false,
  };
  const responses_usage = { input_tokens: 5, output_tokens: 2, ...usage };
  const body = api === "chat"
    ? completion({ content: "Hi" }, "stop", { usage: { ...CHAT_USAGE, ...usage } })
    : { ...response([outputMessage("Hi")]), usage: responses_usage };
  const fetch = () => Promise.resolve(Response.json(body));
  const answer = await backend.send(backend.toRequest(call), { fetch, signal: new AbortController().signal });
  return answer.usage?.cost_usd;
}

const ADDRESS = "https://openrouter.ai/api/v1";

Deno.test("the cost that OpenRouter states is that of the answer; other servers may count in other units", async () => {
  assertEquals(await costOf(ADDRESS, { cost: 0.00014 }), "0.00014");
  assertEquals(await costOf(ADDRESS, { cost: 0 }), "0");
  assertEquals(await costOf(ADDRESS, { cost: 12 }), "12");
  for (const cost of [1e-15, -1, 1e30, "0.1", null]) {
    assertEquals(await costOf(ADDRESS, { cost }), cost === 1e-15 ? "0" : undefined);
  }
  assertEquals(await costOf("https://example.com/v1", { cost: 0.5 }), undefined);
});

for (const api of ["chat", "responses"]) {
  Deno.test(`with the user's own key of a vendor, the cost is OpenRouter's fee and the vendor's price: ${api}`, async () => {
    const cost = (usage: JsonObject) => costOf(ADDRESS, { cost: 0.05, ...usage }, api);
    const cost_details = { upstream_inference_cost: 1 };
    assertEquals(await cost({}), "0.05");
    assertEquals(await cost({ is_byok: false, cost_details }), "0.05");
    assertEquals(await cost({ is_byok: true, cost_details }), "1.05");
    for (const unknown of [undefined, {}, { upstream_inference_cost: null }]) {
      assertEquals(await cost({ is_byok: true, cost_details: unknown }), undefined);
    }
    assertEquals(await costOf("https://example.com/v1", { cost: 0.5 }, api), undefined);
  });
}
