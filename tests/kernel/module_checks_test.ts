/** Objects that a module mounts are checked by the contract of their type. */
import { assertEquals, assertMatch, assertRejects } from "../assert.ts";
import { nothingMounted } from "../../src/kernel/mount_diagnosis.ts";
import { MockContextManager } from "../../src/testing/mocks.ts";
import { MockProvider } from "../../src/testing/mock_provider.ts";
import { ToolResult } from "../../src/sdk/tools.ts";
import type { Tool } from "../../src/sdk/types.ts";
import { kit, tool } from "../support/sessions.ts";

const NO_TOOL_MOUNTED = nothingMounted("tool");

Deno.test("a tool module that mounts nothing is skipped with the message NO_TOOL_MOUNTED", async () => {
  assertEquals(
    NO_TOOL_MOUNTED,
    "protocol_compliance: No tool was mounted and mount() did not return a Tool instance",
  );
  for (const returned of [null, undefined, 7, { what: "ever" }, { name: "x", provides: [] }]) {
    const { session, data } = kit({ tools: [() => returned as unknown as null] });
    await session.initialize();
    const [skipped] = data("module:skipped");
    assertEquals([skipped?.reason, skipped?.message], ["protocol_compliance", NO_TOOL_MOUNTED]);
  }
});

Deno.test("a tool that always fails is mounted", async () => {
  const { session } = kit({
    tools: [
      tool("my_tool", () => Promise.resolve(ToolResult({ success: false, output: "Not yet implemented" }))),
    ],
  });
  await session.initialize();
  assertEquals(session.mounts.tools.names, ["my_tool"]);
});

Deno.test("a tool with an invalid shape is skipped, or mounted when the failed check is a warning", async () => {
  const shapes: [object, boolean, RegExp?][] = [
    [{ name: "t", description: "d" }, false, /tool_execute: execute must be a function/],
    [{ ...tool("t"), name: "" }, false, /tool_name: name must be a non-empty string: received ""/],
    [{ ...tool("t"), description: "" }, true],
    [{ ...tool("t"), input_schema: "text" }, true],
    [
      {
        ...tool("t"),
        get description(): string {
          throw new Error("no words");
        },
      },
      false,
      /description could not be read: no words/,
    ],
    [
      {
        ...tool("t"),
        get risk(): "low" {
          throw new Error("no risk");
        },
      },
      false,
      /no risk/,
    ],
    [
      {
        ...tool("t"),
        get_schema: () => {
          throw new Error("no schema");
        },
      },
      false,
      /no schema/,
    ],
  ];
  for (const [shape, fits, words] of shapes) {
    const { session, data } = kit({
      tools: [async (coordinator) => await coordinator.mount("tools", shape, "t"), tool("other")],
    });
    await session.initialize();
    assertEquals(session.mounts.tools.names, fits ? ["t", "other"] : ["other"]);
    if (words) assertMatch(String(data("module:skipped")[0]?.message), words);
  }
});

Deno.test("a tool without a schema is mounted with an empty object schema, one with get_schema() with its result", async () => {
  const schema = { type: "object", properties: { a: { type: "string" } } };
  const provider = new MockProvider({ responses: ["done"] });
  const { run } = kit({
    providers: [provider],
    tools: [tool("plain"), { ...tool("spoken"), get_schema: () => schema } as Tool],
  });
  await run();
  assertEquals(provider.requests[0]!.tools?.map((spec) => spec.parameters), [
    { type: "object", properties: {} },
    schema,
  ]);
});

Deno.test("the object that get_info of a provider returns is accepted with id and display_name, else an error", async () => {
  const provider = (get_info: () => unknown) => ({
    name: "p",
    get_info,
    list_models: () => Promise.resolve([]),
    complete: () => Promise.resolve({ content: "hi" }),
    parse_tool_calls: () => [],
  });
  const shapes: [() => unknown, boolean][] = [
    [() => ({ id: "p", display_name: "P" }), true],
    [() => ({ display_name: "P" }), false],
    [() => "p", false],
    [() => null, false],
    [() => {
      throw new Error("later");
    }, true],
  ];
  for (const [get_info, fits] of shapes) {
    const { session } = kit({
      providers: [["done"], async (coordinator) => await coordinator.mount("providers", provider(get_info))],
    });
    await session.initialize();
    assertEquals(session.mounts.providers.names, fits ? ["mock", "p"] : ["mock"]);
  }
});

Deno.test("an orchestrator may declare fewer parameters than it is called with", async () => {
  for (const execute of [() => "x", (_prompt: unknown) => "x"]) {
    const { session } = kit({
      orchestrator: async (coordinator) => await coordinator.mount("orchestrator", { execute }),
    });
    await session.initialize();
  }
});

Deno.test("a context must have all five methods", async () => {
  const { session } = kit({
    context: async (coordinator) => {
      const { addMessage, getMessagesForRequest, getMessages, clear } = MockContextManager.prototype;
      await coordinator.mount("context", { addMessage, getMessagesForRequest, getMessages, clear });
    },
  });
  await assertRejects(
    () => session.initialize(),
    Error,
    "context_set_messages: setMessages must be a function",
  );
});

Deno.test("an invalid object of another type fails the module that mounts it, not the session", async () => {
  const { session, data } = kit({
    tools: [
      async (coordinator) => {
        await coordinator.mount("tools", tool("t"));
        await coordinator.mount("context", { addMessage() {} });
      },
      tool("good"),
    ],
  });
  await session.initialize();
  assertEquals(session.mounts.tools.names, ["good"]);
  assertMatch(String(data("module:skipped")[0]?.message), /context_get_messages/);
});
