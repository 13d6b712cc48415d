/**
 * Any history becomes a request that an Ollama server accepts: calls and results are paired, content is text.
 */
import type { JsonObject } from "preamp";
import { type OllamaMessage, toRequest } from "../../modules/provider-ollama/request.ts";
import { assert, assertEquals } from "../assert.ts";
import { testHistories } from "./providers/histories.ts";

function checkMessages(body: JsonObject): void {
  const messages = body.messages as OllamaMessage[];
  const [first] = messages;
  const turns = first?.role === "system" ? messages.slice(1) : messages;
  assertEquals(turns[0]?.role, "user");
  assert(turns.at(-1)?.role === "user" || turns.at(-1)?.role === "tool");
  /** Calls without a result yet. */
  let open: string[] = [];
  for (const message of turns) {
    assert(message.content.isWellFormed());
    if (message.role === "tool") {
      assertEquals(message.tool_call_id, open.shift());
      assert(message.tool_name);
      continue;
    }
    assertEquals(open, []);
    assert(message.role === "user" || message.role === "assistant");
    assert(message.content !== "" || message.images || message.tool_calls || message.thinking);
    open = (message.tool_calls ?? []).map(({ id }) => id);
    for (const image of message.images ?? []) Uint8Array.fromBase64(image);
  }
  assertEquals(open, []);
}

testHistories("ollama", (call) => toRequest(call, { windowOf: () => 16_384, options: {} }), checkMessages);
