/**
 * Any history becomes a request that both APIs accept: roles, pairs of calls and results, no empty content.
 */
import type { JsonObject } from "preamp";
import { assert, assertEquals, assertMatch } from "../../assert.ts";
import { OpenAIBackend } from "../../../modules/provider-openai/backend.ts";
import { testHistories } from "../providers/histories.ts";
import { settingsOf } from "./bodies.ts";

const NAME = /^[a-zA-Z0-9_-]{1,64}$/;

testHistories("openai", (call) => new OpenAIBackend(settingsOf({}), "ses_1").toRequest(call), checkItems);
testHistories(
  "openai",
  (call) => new OpenAIBackend(settingsOf({ base_url: "http://localhost/v1" }), "ses_1").toRequest(call),
  checkMessages,
);

/** Checks the input of the Responses API. */
function checkItems({ input, instructions }: JsonObject): void {
  assert(instructions === undefined || String(instructions).trim() !== "");
  const items = input as JsonObject[];
  const open = new Set<unknown>();
  const seen = new Set<unknown>();
  for (const item of items) {
    if (item.type === "function_call") {
      assertMatch(String(item.call_id), NAME);
      assertMatch(String(item.name), NAME);
      assert(!seen.has(item.call_id));
      JSON.parse(String(item.arguments));
      seen.add(item.call_id);
      open.add(item.call_id);
    } else if (item.type === "function_call_output") {
      assert(open.delete(item.call_id));
      if (typeof item.output !== "string") checkContent(item.output, "input_text");
    } else {
      assertEquals(open.size, 0);
      if (item.role === "assistant") assert(String(item.content).trim() !== "");
      else {
        assert(item.role === "user" || item.role === "developer");
        checkContent(item.content, "input_text");
      }
    }
  }
  assertEquals(open.size, 0);
  assert(items.at(-1)?.role === "user" || items.at(-1)?.type === "function_call_output");
}

/** Checks the messages of Chat Completions. */
function checkMessages({ messages }: JsonObject): void {
  const list = messages as JsonObject[];
  const seen = new Set<unknown>();
  let open: unknown[] = [];
  for (const [index, message] of list.entries()) {
    const { role, content, tool_calls, tool_call_id } = message;
    if (role === "tool") {
      assertEquals(open.shift(), tool_call_id);
      assertEquals(typeof content, "string");
      continue;
    }
    assertEquals(open, []);
    if (role === "system") {
      assertEquals(index, 0);
      assert(String(content).trim() !== "");
    } else if (role === "assistant") {
      const calls = (tool_calls ?? []) as { id: string; function: { name: string; arguments: string } }[];
      for (const call of calls) {
        assertMatch(call.id, NAME);
        assertMatch(call.function.name, NAME);
        assert(!seen.has(call.id));
        JSON.parse(call.function.arguments);
        seen.add(call.id);
      }
      assert(calls.length > 0 || typeof content === "string");
      open = calls.map(({ id }) => id);
    } else {
      assertEquals(role, "user");
      if (typeof content === "string") assert(content.trim() !== "");
      else checkContent(content, "text");
    }
  }
  assertEquals(open, []);
  assert(["user", "tool"].includes(String(list.at(-1)?.role)));
}

function checkContent(content: unknown, text_type: string): void {
  assert(Array.isArray(content) && content.length > 0);
  for (const part of content) if (part.type === text_type) assert(part.text.trim() !== "");
}
