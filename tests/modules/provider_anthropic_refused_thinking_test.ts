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
    "enabled",
  ]);
  const retries = coordinator.hooks.getEvents("provider:retry").map((
    [, { delay, error_message }],
  ) => [delay, error_message]);
  assertEquals(retries, [[0, ERROR]]);
});

Deno.test("complete() leaves the budget out, with a degradation, only in the turn whose thinking was refused", async () => {
  await using server = fakeServer(({ body }) => {
    if (signaturesOf(body).includes("old")) {
      const error = { type: "invalid_request_error", message: ERROR };
      return Response.json({ type: "error", error }, { status: 400 });
    }
    return Response.json(message([{ type: "text", text: "Hi." }]));
  });
  const coordinator = new TestCoordinator();
  const config = { api_key: "k", base_url: server.url, max_retries: 0, thinking_budget: 2000 };
  await mount(coordinator, { ...config, model: "claude-haiku-4-5" });
  const own = {
    type: "thinking",
    thinking: "",
    signature: "old",
    provider: `anthropic@${new URL(server.url).host}`,
  };
  const history: Message[] = [
    USER,
    { role: "assistant", content: [own, { type: "tool_call", id: "call_1", name: "lookup", input: {} }] },
    { role: "tool", tool_call_id: "call_1", name: "lookup", content: "found" },
  ];
  const ask = () => coordinator.providers.anthropic!.complete({ messages: history });
  const first = [await ask(), await ask()];
  history.push({ role: "assistant", content: first[0]!.content }, USER);
  const later = await ask();
  const degradation = {
    requested: "thinking_budget 2000",
    actual: "left out",
    reason: "the turn began without thinking",
  };
  assertEquals([...first, later].map((answer) => answer.degradation), [degradation, degradation, undefined]);
  assertEquals(server.requests.map(({ body }) => (body.thinking as JsonObject | undefined)?.type), [
    "enabled",
    undefined,
    undefined,
    "enabled",
  ]);
});

Deno.test("calls at the same time are each sent again without the thinking that was refused", async () => {
  const { promise: both, resolve } = Promise.withResolvers<void>();
  let arrived = 0;
  await using server = fakeServer(async ({ body }) => {
    if (!signaturesOf(body).includes("old")) return Response.json(message([{ type: "text", text: "Hi." }]));
    if (++arrived === 2) resolve();
    await both;
    const error = { type: "invalid_request_error", message: ERROR };
    return Response.json({ type: "error", error }, { status: 400 });
  });
  const coordinator = new TestCoordinator();
  await mount(coordinator, { api_key: "k", base_url: server.url, max_retries: 0 });
  const own = {
    type: "thinking",
    thinking: "",
    signature: "old",
    provider: `anthropic@${new URL(server.url).host}`,
  };
  const messages: Message[] = [
    USER,
    { role: "assistant", content: [own, { type: "text", text: "Yes?" }] },
    USER,
  ];
  const provider = coordinator.providers.anthropic!;
  await Promise.all([provider.complete({ messages }), provider.complete({ messages })]);
  assertEquals(server.requests.map(({ body }) => signaturesOf(body)), [["old"], ["old"], [], []]);
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
