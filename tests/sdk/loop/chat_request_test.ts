/** Requests of a loop: the tools, the view, the injections and what is added at the end. */
import type { Injection, Message, Tool } from "preamp";
import { countChange, liveViewOf } from "../../../src/sdk/live_view.ts";
import { buildRequest, placeInjections, ToolListBuilder } from "../../../src/sdk/loop/chat_request.ts";
import { assert, assertEquals } from "../../assert.ts";
import { addAll, groups, open, user } from "../../support/context.ts";

const LAST: Message = { role: "user", content: "Answer now." };

function injection(append_to_last_tool_result: boolean): Injection {
  return {
    text: "three more words",
    role: "user",
    ephemeral: true,
    append_to_last_tool_result,
    hook_name: "h",
    event: "provider:request",
  };
}

for (
  const [name, injections, tail] of [
    ["nothing else", [], []],
    ["a message at the end", [], [LAST]],
    ["an injection of its own", [injection(false)], []],
    ["an injection in the last tool result", [injection(true)], []],
    ["all of them", [injection(true), injection(false)], [LAST]],
  ] as const
) {
  Deno.test(`the view itself stays as it was when it is followed by ${name}`, async () => {
    const { context } = await open();
    await addAll(context, [user("hi"), ...groups(3, 40)]);
    const view = await context.getMessagesForRequest();
    const length = view.length;
    const config = {
      orchestrator: "loop",
      max_iterations: -1,
      max_parallel_tools: 1,
      steering: false,
      request: {},
    };
    const { messages } = buildRequest(config, placeInjections(view, injections), [], tail);
    assertEquals(messages.slice(0, length - 1), view.slice(0, -1));
    assertEquals(
      messages.length - length,
      injections.filter((one) => !one.append_to_last_tool_result).length + tail.length,
    );
    assertEquals(view.length, length);
  });
}

Deno.test("the tools of a request are listed again when one is mounted, and for another provider", () => {
  const tool = (name: string): Tool => ({
    name,
    description: name,
    native_specs: { other: { type: `${name}_20260101` } },
    execute: () => null,
  });
  for (const live of [true, false]) {
    const mounted: Record<string, Tool> = { one: tool("one") };
    const view = live ? liveViewOf(mounted) : mounted;
    const builder = new ToolListBuilder();
    const first = builder.specs(view);
    assert(builder.specs(view) === first, "the same list for the same tools");
    mounted.two = tool("two");
    countChange(view);
    const both = builder.specs(view);
    assertEquals(both.map(({ name, type }) => [name, type]), [["one", undefined], ["two", undefined]]);
    assertEquals(builder.specs(view, "other").map(({ type }) => type), ["one_20260101", "two_20260101"]);
    assertEquals(builder.specs(view), both);
    assertEquals(builder.specs({ two: mounted.two! }).map(({ name }) => name), ["two"]);
    assertEquals(builder.specs(view), both);
  }
});
