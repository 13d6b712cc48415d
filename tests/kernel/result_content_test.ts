/** Images in results of tools: the model gets them, hooks and the log's result have words in their place. */
import type { JsonObject, Message, Orchestrator, ToolResult } from "../../src/sdk/types.ts";
import { assert, assertEquals, assertMatch } from "../assert.ts";
import { PNG } from "../support/images.ts";
import { calls, hook, kit, type KitOptions, tool } from "../support/sessions.ts";

const IMAGE = { type: "image", source: { type: "base64", media_type: "image/png", data: PNG } };
const CONTENT = [{ type: "text", text: "before" }, IMAGE, { type: "text", text: "after" }];
const OMITTED = "[Image omitted from tool event; original retained for model request if unmodified.]";

/** Runs a call of a tool with this result; returns what the model, hooks and the log have of it. */
async function called(result: unknown, options: KitOptions = {}) {
  const heard: JsonObject[] = [];
  const made = kit({
    providers: [[calls(["t"]), "done"]],
    tools: [tool("t", () => Promise.resolve(result))],
    ...options,
    hooks: [
      ...options.hooks ?? [],
      hook("tool:post", (_, data) => void heard.push(data.result as JsonObject), { priority: 100 }),
    ],
  });
  assertEquals((await made.run()).status, "completed");
  const { content } = made.messages().find(({ role }) => role === "tool") as Message;
  const [post] = made.data("tool:post");
  return { content, heard: heard[0], post, warnings: made.warnings, errors: made.data("tool:error") };
}

Deno.test("the model gets the images of a result, hooks and the log's result words, the log the images beside it", async () => {
  const { content, heard, post } = await called({ success: true, output: "seen", content: CONTENT });
  assertEquals(content, CONTENT);
  const words = [{ type: "text", text: "before" }, { type: "text", text: OMITTED }, {
    type: "text",
    text: "after",
  }];
  assertEquals(heard, { success: true, output: "seen", error: null, content: words });
  assertEquals([post?.result, post?.images], [heard, [IMAGE]]);
});

Deno.test("a list of blocks with an image is the content, as a result and as an output", async () => {
  for (const result of [CONTENT, { success: true, output: CONTENT }]) {
    const { content, heard } = await called(result);
    assertEquals([content, heard?.output], [CONTENT, "before\n[image: image/png]\nafter"]);
  }
  const other = [{ type: "image", name: "cat" }];
  assertEquals((await called(other)).content, JSON.stringify(other));
});

Deno.test("a result with invalid content fails in words that do not quote it", async () => {
  const secret = "data-of-a-tool";
  const refused: unknown[] = [
    secret,
    { type: "text", text: secret },
    [{ type: "thinking", thinking: secret }],
    [{ type: "image", source: { type: "url", url: secret } }],
    [{ type: "image", source: { type: "base64", media_type: "text/plain", data: PNG } }],
    [{ type: "image", source: { type: "base64", media_type: "image/png", data: secret } }],
    [secret],
    [null],
  ];
  for (const content of refused) {
    const { content: text, errors } = await called({ success: true, output: "o", content });
    assertMatch(String(text), /^Error executing tool: Cannot make a ToolResult: content\S* must be /);
    assert(!JSON.stringify(errors).includes(secret));
  }
});

Deno.test("a hook that changes texts of a result leaves its images, one that leaves out an image's words leaves it out", async () => {
  const changing = (change: (result: JsonObject) => JsonObject) =>
    called({ success: true, output: "seen", content: CONTENT }, {
      hooks: [hook("tool:post", (_, data) => ({
        action: "modify",
        data: { ...data, result: change(data.result as JsonObject) },
      }))],
    });
  const blocks = (result: JsonObject) => result.content as JsonObject[];
  const masked = await changing((result) => ({
    ...result,
    content: blocks(result).map((block) => block.text === "before" ? { ...block, text: "***" } : block),
  }));
  assertEquals(masked.content, [{ type: "text", text: "***" }, IMAGE, { type: "text", text: "after" }]);
  assertEquals(masked.post?.images, [IMAGE]);
  const without = await changing((result) => ({ ...result, content: blocks(result).slice(0, 1) }));
  assertEquals([without.content, without.post?.images], [[{ type: "text", text: "before" }], undefined]);
  const old = await changing((result) => ({ ...result, output: "***" })); // it knows no content
  assertEquals(old.content, [{ type: "text", text: "***" }, IMAGE]);
  assertEquals((await changing(() => ({ success: true, output: "mine" }))).content, "mine");
  const invalid = await changing((result) => ({ ...result, content: "text" }));
  assertEquals(invalid.content, CONTENT);
  assertMatch(JSON.stringify(invalid.warnings), /failed on tool:post: .*content must be a list of blocks/);
});

Deno.test("images beyond a limit are left out in words, texts are shortened", async () => {
  const large = "A".repeat(4_000);
  const content = [IMAGE, { ...IMAGE, source: { ...IMAGE.source, data: large } }, IMAGE, {
    type: "text",
    text: "é".repeat(2_000),
  }];
  const made = await called({ success: true, output: "o", content }, {
    kernel: { max_tool_image_bytes: 1_000, max_tool_result_bytes: 1_000 },
  });
  const [first, second, third, text] = made.content as JsonObject[];
  assertEquals([first, third], [IMAGE, IMAGE]);
  assertEquals(
    second?.text,
    "[An image (image/png, 4000 bytes in base64) is left out: max_tool_image_bytes is 1000.]",
  );
  assertMatch(String(text?.text), /bytes cut: max_tool_result_bytes is 1000/);
});

Deno.test("a loop that stores no result leaves the model its images, and shows hooks none", async () => {
  const orchestrator: Orchestrator = {
    async execute(prompt, context, providers, tools, hooks) {
      await context.addMessage({ role: "user", content: prompt });
      for (;;) {
        const messages = await context.getMessagesForRequest();
        const { content, tool_calls } = await providers.mock!.complete({ messages });
        await context.addMessage(
          { role: "assistant", content, ...(tool_calls ? { tool_calls } : {}) } as Message,
        );
        if (!tool_calls) return "done";
        for (const { id, name, arguments: input } of tool_calls) {
          const result = await tools[name]!.execute(input, { id } as never) as ToolResult;
          await hooks.emit("tool:post", { tool_name: name, tool_call_id: id, tool_input: input, result });
        }
      }
    },
  };
  const { content, heard, post } = await called({ success: true, output: "seen", content: CONTENT }, {
    orchestrator,
  });
  assertEquals([content, post?.images], [CONTENT, [IMAGE]]);
  assert(!JSON.stringify(heard).includes(PNG));
});
