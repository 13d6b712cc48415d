import { type HookSuiteOptions, testHook } from "preamp/testing";
import type { HookDefinition, HookHandler, Module } from "preamp";
import { assert, assertEquals } from "../assert.ts";
import { failures } from "./broken_kit.ts";

const check = (create: () => HookDefinition | Module, options: HookSuiteOptions = {}) =>
  failures((name, test) => testHook(name, create, { deadline_ms: 200, ...options, test }));
const on = (event: string, handler: unknown, cleanup?: unknown): Module => ({
  mount: (coordinator) => {
    coordinator.hooks.register(event, handler as HookHandler);
    return cleanup as undefined;
  },
});

Deno.test("testHook() passes a good hook, as a module, as a definition, and one that is returned", async () => {
  const expectations = [
    { event: "tool:pre", data: { tool_name: "bash" }, action: "deny" as const },
    { event: "tool:pre", data: { tool_name: "echo" }, action: "continue" as const },
  ];
  const guard: HookHandler = (_, data) => data.tool_name === "bash" ? { action: "deny", reason: "no" } : null;
  const hook = { events: ["tool:pre"], handler: guard };
  for (const create of [() => on("tool:pre", guard, () => {}), () => hook, () => ({ mount: () => hook })]) {
    const { failed, ran } = await check(create, { expectations });
    assertEquals([failed, ran], [[], 11]);
  }
});

const broken: [string, () => HookDefinition | Module, string, HookSuiteOptions?][] = [
  [
    "a hook that registers nothing (VAL-11)",
    () => ({ mount: () => undefined }),
    "mount() registers a handler",
  ],
  ["a text from mount", () => on("tool:pre", () => null, "done"), "mount() returns nothing or a cleanup"],
  [
    "an invalid answer",
    () => on("*", () => 42),
    "handlers answer test:event with nothing or a hook result",
  ],
  [
    "an unknown action",
    () => on("test:event", () => ({ action: "block" })),
    "handlers answer test:event with nothing or a hook result",
  ],
  [
    "a crash without data",
    () =>
      on("tool:pre", (_: string, { tool_input }: { tool_input: { path: string } }) => void tool_input.path),
    "handlers answer events without data",
  ],
  [
    "a crash on empty data",
    () => on("tool:post", (_: string, { result }: { result: { output: string } }) => void result.output),
    "handlers answer events with empty data",
  ],
  [
    "a crash on strange data",
    () =>
      on(
        "tool:pre",
        (_: string, { unknown }: { unknown?: { nested: unknown } }) =>
          void (unknown && (unknown.nested as string).trim()),
      ),
    "handlers answer events with data they do not know",
  ],
  [
    "a deny without a reason",
    () => on("tool:pre", () => ({ action: "deny" })),
    "handlers answer events with empty data",
  ],
  [
    "an injection without a text",
    () => on("tool:post", () => ({ action: "inject_context" })),
    "handlers answer events with empty data",
  ],
  [
    "a question without words",
    () => on("tool:pre", () => ({ action: "ask_user" })),
    "handlers answer events with empty data",
  ],
  ["a failure the second time", () => {
    let calls = 0;
    return on("tool:pre", () => {
      if (calls++ > 0) throw new Error("used up");
      return null;
    });
  }, "handlers answer an event twice"],
  [
    "a cleanup that rejects",
    () => on("tool:pre", () => null, () => Promise.reject(new Error("bad"))),
    "cleanup works, awaited",
  ],
  ["a guard that lets through", () => on("tool:pre", () => null), "tool:pre results in deny", {
    expectations: [{ event: "tool:pre", data: {}, action: "deny" }],
  }],
  [
    "a handler that hangs",
    () => on("tool:pre", () => new Promise(() => {})),
    "handlers answer events with empty data",
  ],
];

for (const [what, create, title, options] of broken) {
  Deno.test(`testHook() fails "${title}" for ${what}`, async () => {
    const { failed } = await check(create, options);
    assert(failed.includes(title), `failed: ${failed.join(", ") || "nothing"}`);
  });
}
