/** Stored blocks that the vendors' providers wrote: signed thinking, calls of the API's own tools. */
import type { ContentBlock, JsonObject } from "preamp";

function own(provider: string, blocks: readonly (JsonObject & { type: string })[]): ContentBlock[] {
  return blocks.map((block) => ({ ...block, provider }) as ContentBlock);
}

/** The blocks of each vendor. */
export const OWN_BLOCKS: Readonly<Record<string, readonly ContentBlock[]>> = {
  anthropic: own("anthropic", [
    { type: "thinking", thinking: "hm", signature: "c2ln" },
    { type: "thinking", thinking: "", signature: "c2ln" },
    { type: "redacted_thinking", data: "eA" },
    { type: "text", text: "Cited.", citations: [{ type: "char_location", cited_text: "C" }] },
    { type: "text", text: " ", citations: [] },
    { type: "server_tool_use", id: "srv_1", name: "web_search", input: {} },
    { type: "web_search_tool_result", tool_use_id: "srv_1", content: [] },
    { type: "provider_tool_call", id: "srv_2", name: "web_search", input: {} },
    { type: "provider_tool_result", id: "srv_2", name: "web_search", result: [] },
    { type: "anthropic_container", id: "container_1" },
    { type: "tool_call", id: "own_1", name: "run", input: {}, caller: { type: "code_execution" } },
  ]),
  openai: own("openai", [
    {
      type: "thinking",
      thinking: "hm",
      item: { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "gA" },
    },
    { type: "thinking", thinking: "not encrypted" },
    { type: "thinking", thinking: "of chat", field: "reasoning_content" },
    { type: "thinking", thinking: "", details: [{ type: "reasoning.encrypted", data: "x", index: 0 }] },
    { type: "thinking", thinking: "hm", itemId: "rs_2", reasoningEncryptedContent: "gA" },
    { type: "text", text: "Item.", itemId: "msg_1" },
    { type: "provider_tool_call", id: "ws_2", name: "web_search", input: {} },
    { type: "web_search_call", item: { type: "web_search_call", id: "ws_1", status: "completed" } },
    { type: "text", text: "Soon.", phase: "commentary" },
    { type: "tool_call", id: "own_1", name: "run", input: {}, extra_content: { google: {} } },
  ]),
  gemini: own("gemini", [
    { type: "thinking", thinking: "hm", signature: "c2ln" },
    { type: "thinking", thinking: "hm" },
    { type: "thinking", thinking: "", signature: "c2ln" },
    { type: "text", text: "Signed.", thought_signature: "c2ln" },
    { type: "thinking", thinking: "hm", thoughtSignature: "c2ln" },
    { type: "text", text: "Signed.", thoughtSignature: "c2ln" },
    { type: "gemini_part", part: { executableCode: { language: "PYTHON", code: "1" } } },
    { type: "tool_call", id: "own_1", name: "run", input: {}, thought_signature: "c2ln" },
  ]),
  ollama: own("ollama", [{ type: "thinking", thinking: "hm" }]),
};
