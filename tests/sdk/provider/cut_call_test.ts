/** Calls at the end of an answer that was cut off. */
import { type ChatRequest, type ContentBlock, parseToolCall } from "preamp";
import { assertEquals } from "../../assert.ts";
import { mountFake } from "./fake_backend.ts";

const HELLO: ChatRequest = { messages: [{ role: "user", content: "Hello" }] };

function call(id: string, input: ContentBlock["input"] = {}): ContentBlock {
  return { type: "tool_call", id, name: "lookup", input };
}

Deno.test("a call whose arguments were cut off before they began is unreadable", async () => {
  const unreadable = async (content: ContentBlock[], finish_reason: string) => {
    const { provider } = await mountFake(() => ({ content, finish_reason }));
    const { tool_calls } = await provider.complete(HELLO);
    return tool_calls?.map(({ id, arguments: args, invalid_arguments }) => [id, args, invalid_arguments]);
  };
  assertEquals(await unreadable([call("a"), call("b")], "length"), [
    ["a", {}, undefined],
    ["b", {}, ""],
  ]);
  assertEquals(await unreadable([call("a")], "tool_calls"), [["a", {}, undefined]]);
  assertEquals(await unreadable([call("a", { key: 1 })], "length"), [["a", { key: 1 }, undefined]]);
  for (const added of [{ type: "container" }, { type: "thinking", thinking: "" }]) {
    assertEquals(await unreadable([call("a"), added], "length"), [["a", {}, ""]]); // the provider's own block
  }
  assertEquals(await unreadable([call("a"), { type: "text", text: "and" }], "length"), [[
    "a",
    {},
    undefined,
  ]]);
});

Deno.test("an answer that ends in an unreadable call after all its tokens was cut, whatever the server says", async () => {
  const reasonOf = async (args: string, output_tokens: number, max_output_tokens = 50) => {
    const tool_calls = [parseToolCall({ id: "a", name: "lookup", arguments: args })];
    const usage = { input_tokens: 5, output_tokens };
    const { provider } = await mountFake(() => ({
      content: [call("a")],
      tool_calls,
      finish_reason: "tool_calls",
      usage,
    }));
    return (await provider.complete({ ...HELLO, max_output_tokens })).finish_reason;
  };
  assertEquals(await reasonOf('{"text":"lorem', 50), "length");
  assertEquals(await reasonOf('{"text":"lorem', 49), "tool_calls");
  assertEquals(await reasonOf('{"text":"lorem"}', 50), "tool_calls");
});
