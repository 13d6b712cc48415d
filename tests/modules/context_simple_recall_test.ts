/** `context-simple`: reading back what a view left out; cache breakpoints; the system prompt factory. */
import type { JsonObject, Message, Provider, Tool, ToolResult } from "preamp";
import * as contextSimple from "../../modules/context-simple/mod.ts";
import { PNG } from "../support/images.ts";
import { calls, kit } from "../support/sessions.ts";
import { assert, assertEquals, assertRejects, assertStringIncludes } from "../assert.ts";
import {
  addAll,
  assertView,
  group,
  groups,
  isNotice,
  open,
  providerOf,
  system,
  user,
  withoutNotice,
  words,
} from "../support/context.ts";

const RECALL = { recall: true };

async function recall(tool: Tool | undefined, input: JsonObject): Promise<JsonObject> {
  assert(tool, "the tool must be mounted");
  const result = await tool.execute(input) as JsonObject;
  return result.success ? result.output as JsonObject : result;
}

/** Returns the first handle in a text. */
function handleIn(text: unknown): string {
  const [, handle = ""] = String(text).match(/context_recall\("(m\d+)"\)/) ?? [];
  return handle;
}

Deno.test("mount() mounts context_recall only when the config says recall: true", async () => {
  assertEquals((await open()).tool, undefined);
  assertEquals((await open(RECALL)).tool?.name, "context_recall");
});

Deno.test("context_recall() reads back a truncated result by the handle of its marker", async () => {
  const { context, tool } = await open({ ...RECALL, target_usage: 0.8 });
  const results = Array.from({ length: 20 }, (_, index) => group({ [`c${index}`]: `${index} ${words(400)}` }))
    .flat();
  await addAll(context, [user("hi"), ...results]);
  const view = await context.getMessagesForRequest({ token_budget: 8500 });
  const short = view.find((message) => String(message.content).startsWith("[truncated: "));
  assert(short, "something must be truncated");
  const original = results.find((message) => message.tool_call_id === short.tool_call_id);
  assertEquals((await recall(tool, { handle: handleIn(short.content) })).text, original?.content);
});

Deno.test("context_recall() reads back left-out messages by the handles of the notice, and stubs by theirs", async () => {
  const { context, tool } = await open(RECALL);
  const history = [user("hi"), ...groups(40, 200), user(words(300)), ...groups(40, 200, "b"), user("end")];
  await addAll(context, history);
  const view = await context.getMessagesForRequest({ token_budget: 4000 });
  const notice = String(view.find(isNotice)?.content);
  const [, range = ""] = notice.match(/(m\d+-m\d+)/) ?? [];
  assertStringIncludes(String((await recall(tool, { handle: range })).text), "some words of a result");
  const stub = view.find((message) => String(message.content).startsWith("[User message compacted"));
  assertEquals((await recall(tool, { handle: handleIn(stub?.content) })).text, words(300));
});

Deno.test("context_recall() reads back a capped result whole, in pieces", async () => {
  const { context, tool } = await open(RECALL);
  const text = Array.from({ length: 60_000 }, (_, line) => `line ${line}`).join("\n");
  await addAll(context, [user("hi"), ...group({ big: text })]);
  const shown = String((await context.getMessagesForRequest())[2]?.content);
  let read = "";
  let offset: unknown = 0;
  for (let piece = 0; offset !== undefined && piece < 100; piece++) {
    const part: JsonObject = await recall(tool, { handle: handleIn(shown), offset });
    assertEquals(part.total_chars, text.length);
    read += String(part.text);
    offset = part.next_offset;
  }
  assertEquals(read, text);
});

Deno.test("context_recall() does not split a character between two pieces", async () => {
  const { context, tool } = await open(RECALL);
  const text = `a${"😀".repeat(15_000)}`;
  await addAll(context, [user(text)]);
  const first = await recall(tool, { handle: "m0" });
  const second = await recall(tool, { handle: "m0", offset: first.next_offset });
  const pieces = [first.text, second.text].map(String);
  assertEquals([pieces.every((piece) => piece.isWellFormed()), pieces.join("") === text], [true, true]);
});

Deno.test("context_recall() describes handles when the argument is not one", async () => {
  const { context, tool } = await open(RECALL);
  await addAll(context, [user("hi")]);
  for (const handle of ["m7", "x", "", 3, "m0-m1-m2", "m-1", null, "m1-m0"]) {
    const failed = await recall(tool, { handle });
    assertEquals(failed.success, false, JSON.stringify(handle));
    assertStringIncludes(String((failed.error as JsonObject).message), "a handle is m0");
  }
});

function cachingProvider(capabilities: string[]): Provider {
  const provider = providerOf(12_000, 1000);
  return { ...provider, getInfo: () => ({ ...provider.getInfo(), capabilities }) };
}

Deno.test("views carry metadata.cache_control for providers that offer it, at places that never move", async () => {
  const { context, status } = await open();
  const provider = cachingProvider(["tools", "cache_control"]);
  await addAll(context, [system("Be brief."), user("hi")]);
  let before: Message[] = [];
  for (let request = 0; request < 60; request++) {
    const { compactions } = status();
    const view = withoutNotice(await context.getMessagesForRequest({ provider }));
    assert(view.at(-1)?.metadata?.cache_control, "where this request ends, the next may begin");
    assert(view[0]?.metadata?.cache_control, "and after the system prompt");
    if (status().compactions === compactions) {
      assertEquals(JSON.stringify(view.slice(0, before.length)), JSON.stringify(before));
    }
    before = view;
    await addAll(context, groups(1, 200, `r${request}`));
  }
  assert(status().compactions > 0);
  assert((await context.getMessages()).every((message) => message.metadata?.cache_control === undefined));
});

Deno.test("views carry no cache_control for other providers, nor when cache_breakpoints is false", async () => {
  const other = await open();
  const off = await open({ cache_breakpoints: false });
  for (const [opened, capabilities] of [[other, ["tools"]], [off, ["cache_control"]]] as const) {
    await addAll(opened.context, [user("hi")]);
    const view = await opened.context.getMessagesForRequest({ provider: cachingProvider([...capabilities]) });
    assertEquals(view, [user("hi")]);
  }
});

Deno.test("setSystemPromptFactory() calls the factory on every request; its text replaces the stored system messages except those of hooks", async () => {
  const { context } = await open();
  const hook: Message = { role: "system", content: "from a hook", metadata: { source: "hook" } };
  await addAll(context, [system("stored"), user("hi"), hook, ...groups(30, 300)]);
  let asked = 0;
  context.setSystemPromptFactory?.(() => `prompt ${Math.floor(asked++ / 2)}`);
  for (const [request, token_budget] of [100_000, 4000, 4000].entries()) {
    const view = await context.getMessagesForRequest({ token_budget });
    assertEquals(view.slice(0, 2).map((message) => message.content), [
      `prompt ${request >> 1}`,
      "from a hook",
    ]);
    assertEquals(view.filter((message) => message.role === "system").length, 2);
  }
  assertEquals(asked, 3);
  context.setSystemPromptFactory?.(null);
  const history = await context.getMessages();
  assertView(await context.getMessagesForRequest({ token_budget: 4000 }), history, 4000);
});

Deno.test("setSystemPromptFactory() with a factory that returns no text fails the request, not the session", async () => {
  const { context } = await open();
  await addAll(context, [user("hi")]);
  context.setSystemPromptFactory?.(() => 7 as unknown as string);
  const error = await assertRejects(() => context.getMessagesForRequest());
  assertStringIncludes(error.message, "the factory must return text: received number");
});

Deno.test("context_recall is offered and runs like any tool of a session", async () => {
  const { session, of } = kit({
    context: { ...contextSimple, config: RECALL, id: "context-simple" },
    providers: [[calls(["context_recall", { handle: "m0" }]), { text: "done" }]],
  });
  const outcome = await session.execute("Remember me.");
  assertEquals(outcome.status, "completed");
  const mounted = of("module:mounted").find(({ data }) => data.module_id === "context-simple");
  assertEquals(mounted?.data.names, ["context", "context_recall"]);
  assertStringIncludes(JSON.stringify(of("tool:post").map(({ data }) => data.result)), "Remember me.");
});

Deno.test("setSystemPromptFactory() reaches the context through its guard, in both spellings", async () => {
  const seen: string[] = [];
  const { session } = kit({
    context: { ...contextSimple, id: "context-simple" },
    providers: [[(request) => {
      seen.push(String(request.messages[0]?.content));
      return { text: "done" };
    }]],
    hooks: [(coordinator) => {
      coordinator.hooks.register("prompt:submit", () => {
        const handle = coordinator.context as unknown as Record<string, (factory: () => string) => void>; // both spellings
        handle.set_system_prompt_factory?.(() => "from the factory");
        return null;
      });
    }],
  });
  await session.execute("hi");
  assertEquals(seen, ["from the factory"]);
});

Deno.test("context_recall() reads back a picture as a picture, and a range of messages in words", async () => {
  const image = { type: "image", source: { type: "base64", media_type: "image/png", data: PNG } };
  const { context, tool } = await open(RECALL);
  await addAll(context, [user("hi"), { role: "user", content: [image] }]);
  const result = await tool!.execute({ handle: "m1" }) as ToolResult;
  assertEquals(result.output, { handle: "m1", total_chars: 9, text: "[1 image]" });
  assertEquals(result.content, [{ type: "text", text: JSON.stringify(result.output) }, image]);
  const range = await tool!.execute({ handle: "m0-m1" }) as ToolResult;
  assertEquals(range.content, undefined);
  assertStringIncludes(JSON.stringify(range.output), "[m1 user]\\n[1 image]");
});
