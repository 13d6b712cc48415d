/** `provider-anthropic` over its own client: the provider contract, requests and answers. */
import { assertEquals } from "../assert.ts";
import { createBackend } from "../../modules/ai-sdk/anthropic.ts";
import { SETTINGS } from "./providers/sent_request.ts";
import { testHistories } from "./providers/histories.ts";
import { checkAnthropic } from "./providers/request_rules.ts";
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
    skipped: "Cannot use provider-anthropic without a key: set the variable ANTHROPIC_API_KEY; " +
      "keys are created at https://platform.claude.com/settings/keys",
  });
});

testHistories("anthropic", createBackend(SETTINGS), ANTHROPIC, checkAnthropic, {
  model: "claude-sonnet-5-5",
});
