/** `provider-anthropic` over its own client: the provider contract, requests and answers. */
import type { JsonObject } from "preamp";
import { assert, assertEquals } from "../assert.ts";
import { toRequest } from "../../modules/provider-anthropic/to_request.ts";
import { testHistories } from "./providers/histories.ts";
import { TestCoordinator, testProvider } from "preamp/testing";
import * as anthropic from "../../modules/provider-anthropic/mod.ts";
import { ANTHROPIC, message } from "./providers/anthropic_wire.ts";
import { fakeServer } from "./providers/fake_server.ts";

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
  return new Response(ANTHROPIC.events({ text: ["Hel", "lo"] }).join(""), {
    headers: { "content-type": "text/event-stream" },
  });
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

/** Fails when a body breaks a documented rule of the Messages API. */
function checkBody(body: JsonObject): void {
  const messages = body.messages as { role: string; content: JsonObject[] }[];
  const blocks = messages.flatMap(({ content }) => content);
  assertEquals(
    messages.map(({ role }) => role),
    messages.map((_, index) => index % 2 === 0 ? "user" : "assistant"),
  );
  assert(messages.at(-1)!.role === "user", "ends with an assistant turn: newer models refuse it");
  const marked = [...(body.system as JsonObject[] ?? []), ...blocks].filter((block) => block.cache_control);
  assert(marked.length <= 4, `${marked.length} breakpoints`);
  assert(marked.every(({ type }) => type !== "thinking" && type !== "redacted_thinking"));
  const ids = blocks.flatMap(({ type, id }) => type === "tool_use" ? [String(id)] : []);
  assertEquals(new Set(ids).size, ids.length);
  assert(ids.every((id) => /^[a-zA-Z0-9_-]+$/.test(id)));
  messages.forEach(({ role, content }, index) => {
    assert(content.length > 0);
    const calls = content.filter(({ type }) => type === "tool_use");
    assert(role === "assistant" || calls.length === 0);
    const results = messages[index + 1]?.content.slice(0, calls.length) ?? [];
    assertEquals(results.map(({ tool_use_id }) => tool_use_id), calls.map(({ id }) => id));
  });
  for (const block of [...(body.system as JsonObject[] ?? []), ...blocks]) checkBlock(block);
  assert(JSON.stringify(body).isWellFormed());
}

function checkBlock(block: JsonObject): void {
  const { type, text, name, input, source } = block;
  if (type === "text") assert(String(text).trim() !== "", "text blocks must have text");
  else if (type === "tool_use") {
    assert(/^[a-zA-Z0-9_-]{1,128}$/.test(String(name)) && typeof input === "object");
  } else if (type === "image" || type === "document") {
    const { type: kind } = source as JsonObject;
    assert(["base64", "url", "text", "file"].includes(String(kind)));
  } else assert(type === "tool_result", `unexpected ${type}`);
}

testHistories("anthropic", toRequest, checkBody, { model: "claude-sonnet-5-5" });
