/** Unknown keys in what modules return: a warning that names module and key, once. */
import type { JsonObject, Provider } from "../../src/sdk/types.ts";
import { assertEquals } from "../assert.ts";
import { calls, hook, kit, type KitOptions, tool } from "../support/sessions.ts";

async function warningsOf(options: KitOptions): Promise<string[]> {
  const { run, warnings } = kit(options);
  assertEquals((await run()).status, "completed");
  return warnings.filter(({ code }) => code === "unknown_key").map(({ message }) => message);
}

const text = (module: string, what: string, key: string) =>
  `Module "${module}" returned a ${what} with the unknown key "${key}": this version of Preamp does not use it`;

Deno.test("an unknown key of a tool result is a warning, an output may have any", async () => {
  const result = { success: true, output: { any: 1 }, contents: [], render() {} };
  const providers = [[calls(["t"]), calls(["t"]), calls(["u"]), "done"]];
  assertEquals(
    await warningsOf({
      providers,
      tools: [tool("t", () => Promise.resolve(result)), tool("u", () => Promise.resolve({ contents: [] }))],
    }),
    [text("tool-0", "tool result", "contents")],
  );
});

Deno.test("an unknown key of a hook result and of its injections is a warning", async () => {
  const result = {
    action: "inject_context",
    context_injections: [{ content: "a", mood: "good" }],
    contextInjection: "b",
  };
  assertEquals(await warningsOf({ hooks: [hook("provider:request", () => result)] }), [
    text("hook-0", "hook result", "contextInjection"),
    text("hook-0", "hook result", "context_injections[].mood"),
  ]);
});

Deno.test("unknown keys of a response and of infos are warnings", async () => {
  const provider: Provider & JsonObject = {
    name: "mock",
    getInfo: () => ({ id: "m", display_name: "M", defaults: {}, speed: 1 }) as never,
    getModelInfo: () => ({ id: "m", speed: 1 }),
    listModels: () => Promise.resolve([]),
    parseToolCalls: () => [],
    complete: () => Promise.resolve({ content: [{ type: "text", text: "done" }], thoughts: "none" }),
  };
  const found = await warningsOf({
    providers: [async (coordinator) => void await coordinator.mount("providers", provider)],
    hooks: [({ providers }) => {
      // what the context manager reads
      void (providers.mock as unknown as { getModelInfo(): unknown })?.getModelInfo();
    }],
  });
  assertEquals(found.toSorted(), [
    text("provider-0", "model info", "speed"),
    text("provider-0", "provider info", "speed"),
    text("provider-0", "response", "thoughts"),
  ]);
});

Deno.test("a module that returns another unknown key each time is warned of twenty times", async () => {
  let count = 0;
  const found = await warningsOf({
    providers: [[...Array.from({ length: 30 }, () => calls(["t"])), "done"]],
    tools: [tool("t", () => Promise.resolve({ success: true, [`key_${count++}`]: 1 }))],
  });
  assertEquals(found.length, 20);
});
