/** Thinking that Anthropic's API refuses to take back, because something before it has changed. */
import type { ContentBlock, JsonObject, Message } from "preamp";
import { TestCoordinator } from "preamp/testing";
import { assertEquals } from "../assert.ts";
import { message } from "./providers/anthropic_wire.ts";
import { fakeServer } from "./providers/fake_server.ts";
import { mount } from "../../modules/provider-anthropic/mod.ts";

const USER: Message = { role: "user", content: "Hello" };

const ERROR =
  "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different " +
  'conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".';

function signaturesOf({ messages }: JsonObject): unknown[] {
  return (messages as { content: JsonObject[] }[]).flatMap(({ content }) =>
    content.flatMap((block) => block.signature ?? block.data ?? [])
  );
}

Deno.test("complete() leaves out thinking that the API refuses, then and later, and keeps newer thinking", async () => {
  await using server = fakeServer(({ body }) => {
    if (signaturesOf(body).includes("old")) {
      const error = { type: "invalid_request_error", message: ERROR };
      return Response.json({ type: "error", error }, { status: 400 });
    }
    const thinking = { type: "thinking", thinking: "Hm.", signature: "new" };
    return Response.json(message([thinking, { type: "text", text: "Hi." }]));
  });
  const coordinator = new TestCoordinator();
  await mount(coordinator, { api_key: "k", base_url: server.url, max_retries: 0, thinking_budget: 2000 });
  const provider = coordinator.providers.anthropic!;
  const own = (block: JsonObject) =>
    ({ ...block, provider: `anthropic@${new URL(server.url).host}` }) as unknown as ContentBlock;
  const history: Message[] = [
    USER,
    {
      role: "assistant",
      content: [
        own({ type: "thinking", thinking: "", signature: "old" }),
        own({ type: "redacted_thinking", data: "opaque" }),
        { type: "text", text: "Yes?" },
      ],
    },
    USER,
  ];
  const ask = async (model: string) => await provider.complete({ messages: history, model });
  const { content } = await ask("claude-sonnet-5-5");
  history.push({ role: "assistant", content }, USER);
  await ask("claude-sonnet-5-5");
  await ask("claude-haiku-4-5");
  assertEquals(server.requests.map(({ body }) => signaturesOf(body)), [
    ["old", "opaque"],
    [],
    ["new"],
    ["new"],
  ]);
  assertEquals(server.requests.map(({ body }) => (body.thinking as JsonObject | undefined)?.type), [
    "adaptive",
    "adaptive",
    "adaptive",
    undefined,
  ]);
});

Deno.test("complete() sends a request once that is refused for a signature without any thinking in it", async () => {
  await using server = fakeServer(() =>
    Response.json({ type: "error", error: { type: "invalid_request_error", message: ERROR } }, {
      status: 400,
    })
  );
  const coordinator = new TestCoordinator();
  await mount(coordinator, { api_key: "k", base_url: server.url });
  const error = await coordinator.providers.anthropic!.complete({ messages: [USER] }).catch((error) => error);
  assertEquals([error.type, error.message, server.requests.length], ["InvalidRequestError", ERROR, 1]);
});
