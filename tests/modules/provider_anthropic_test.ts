/** `provider-anthropic` over its own client: the provider contract, requests and answers. */
import { assertEquals } from "../assert.ts";
import type { JsonObject } from "preamp";
import { TestCoordinator, testProvider } from "preamp/testing";
import * as anthropic from "../../modules/provider-anthropic/mod.ts";
import { fakeServer } from "./providers/fake_server.ts";

const USAGE = { input_tokens: 10, output_tokens: 3 };

function message(content: JsonObject[], fields: JsonObject = {}): JsonObject {
  return {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "claude-sonnet-5-5",
    content,
    stop_reason: content.some(({ type }) => type === "tool_use") ? "tool_use" : "end_turn",
    stop_sequence: null,
    usage: USAGE,
    ...fields,
  };
}

/** Returns the events of a message with one text block. */
function events(text: string): string {
  const data: JsonObject[] = [
    { type: "message_start", message: message([], { stop_reason: null }) },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text } },
    { type: "content_block_stop", index: 0 },
    {
      type: "message_delta",
      delta: { stop_reason: "end_turn", stop_sequence: null },
      usage: { output_tokens: 3 },
    },
    { type: "message_stop" },
  ];
  return data.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");
}

const server = fakeServer(({ path, body }) => {
  if (path.startsWith("/v1/models")) {
    return Response.json({
      data: [{ type: "model", id: "claude-opus-5-5", display_name: "Claude Opus 5.5" }],
    });
  }
  if (body.tools) {
    return Response.json(message([{ type: "tool_use", id: "toolu_1", name: "calculator", input: {} }]));
  }
  if (!body.stream) return Response.json(message([{ type: "text", text: "Hello" }]));
  return new Response(events("Hello"), { headers: { "content-type": "text/event-stream" } });
});
Deno.test.afterAll(async () => await server[Symbol.asyncDispose]());
const config = { api_key: "sk-test", base_url: server.url };

testProvider("provider-anthropic", () => anthropic, {
  config,
  tool_request: {
    messages: [{ role: "user", content: "What is 6 * 7?" }],
    tools: [{ name: "calculator", parameters: { type: "object" } }],
  },
});

Deno.test("mount() without a key is skipped and says what to do", async () => {
  assertEquals(await anthropic.mount(new TestCoordinator(), {}), {
    skipped:
      "Cannot use provider-anthropic without a key: set the variable ANTHROPIC_API_KEY, or api_key in its " +
      "config; keys are created at https://platform.claude.com/settings/keys",
  });
});
