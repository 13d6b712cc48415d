/** A tool call whose tool waits for a person: the time of the wait does not count for `tool_timeout_s`. */
import type { Coordinator, HookResult, ToolResult } from "../../src/sdk/types.ts";
import { assertEquals } from "../assert.ts";
import { calls, hook, kit, type KitOptions, tool, until } from "../support/sessions.ts";
import { ASK } from "./asking_session.ts";

/** Returns a tool module whose tool calls `execute` with the module's coordinator. */
function asks(execute: (coordinator: Coordinator) => unknown) {
  return async (coordinator: Coordinator) =>
    await coordinator.mount("tools", tool("outer", () => execute(coordinator)));
}

/** A session whose model calls `outer` and then `other`; a person allows after 100 s. */
function slowPerson(options: KitOptions) {
  const made = kit({
    providers: [[calls(["outer"]), "done"]],
    answers: [() => made.clock.after(100_000).then(() => ({ decision: "allow" }))],
    ...options,
  });
  const outputs = () => [
    ...made.data("tool:post").map(({ result }) => (result as unknown as ToolResult).output),
    ...made.data("tool:error").map(({ error }) => error),
  ];
  return { ...made, outputs };
}

Deno.test("a tool that asks through another tool does not lose its call while a person decides", async () => {
  const { run, clock, data, outputs } = slowPerson({
    tools: [tool("inner", () => "ran"), asks((coordinator) => coordinator.tools.inner!.execute({}))],
    hooks: [
      hook(
        "tool:pre",
        (_event, { tool_name }): HookResult => tool_name === "inner" ? ASK : { action: "continue" },
      ),
    ],
  });
  const done = run();
  await until(() => data("approval:required").length === 1);
  await clock.advance(100_000);
  assertEquals((await done).status, "completed");
  assertEquals(outputs(), ["ran", "ran"]);
});

Deno.test("a tool whose own event asks does not lose its call while a person decides", async () => {
  const { run, clock, data, outputs } = slowPerson({
    tools: [asks(async (coordinator) => {
      const emission = await coordinator.hooks.emit("deploy:start", {});
      return (await coordinator.processHookResult(emission, "deploy:start")).action;
    })],
    hooks: [hook("deploy:start", () => ASK)],
  });
  const done = run();
  await until(() => data("approval:required").length === 1);
  await clock.advance(100_000);
  assertEquals((await done).status, "completed");
  assertEquals(outputs(), ["continue"]);
});

Deno.test("the approval of a call that the model made does not pause the calls beside it", async () => {
  const { run, clock, data } = slowPerson({
    providers: [[calls(["hangs"], ["t"]), "done"]],
    tools: [tool("hangs", () => new Promise(() => {})), tool("t", () => "ran")],
    hooks: [
      hook(
        "tool:pre",
        (_event, { tool_name }): HookResult => tool_name === "t" ? ASK : { action: "continue" },
      ),
    ],
  });
  const done = run();
  await until(() => data("approval:required").length === 1);
  await clock.advance(60_000);
  await clock.advance(40_000);
  assertEquals((await done).status, "completed");
  assertEquals(data("tool:error").map(({ tool_name }) => tool_name), ["hangs"]);
});

Deno.test("the deadline of a call continues after the answer of a person", async () => {
  const { run, clock, data, outputs } = slowPerson({
    tools: [asks(async (coordinator) => {
      await coordinator.processHookResult(await coordinator.hooks.emit("deploy:start", {}), "deploy:start");
      await new Promise(() => {});
    })],
    hooks: [hook("deploy:start", () => ASK)],
  });
  const done = run();
  await until(() => data("approval:required").length === 1);
  await clock.advance(159_000);
  assertEquals(outputs(), []);
  await clock.advance(1_000);
  assertEquals((await done).status, "completed");
  assertEquals(data("tool:error").length, 1);
});

Deno.test("a question about the result of a call that the model made does not pause the calls beside it", async () => {
  const { run, clock, data } = slowPerson({
    providers: [[calls(["hangs"], ["t"]), "done"]],
    tools: [tool("hangs", () => new Promise(() => {})), tool("t", () => "ran")],
    hooks: [hook("tool:post", () => ASK)],
  });
  const done = run();
  await until(() => data("approval:required").length === 1);
  await clock.advance(60_000);
  assertEquals(data("tool:error").map(({ tool_name }) => tool_name), ["hangs"]);
  await clock.advance(40_000);
  assertEquals((await done).status, "completed");
});

Deno.test("an immediate cancellation ends calls at once while one of them waits for a person", async () => {
  const { run, clock, data, session } = slowPerson({
    providers: [[calls(["outer"], ["hangs"]), "done"]],
    tools: [
      asks((coordinator) =>
        coordinator.hooks.emit("deploy:start", {})
          .then((emission) => coordinator.processHookResult(emission, "deploy:start"))
      ),
      tool("hangs", () => new Promise(() => {})),
    ],
    hooks: [hook("deploy:start", () => ASK)],
  });
  const done = run();
  await until(() => data("approval:required").length === 1);
  const started_ms = clock.monotonic();
  await session.cancel("immediate");
  assertEquals([(await done).status, clock.monotonic()], ["cancelled", started_ms]);
});

Deno.test("a tool that asks again and again loses its call after approval_timeout and its own time", async () => {
  const { run, clock, data } = slowPerson({
    tools: [asks(async (coordinator) => {
      while (true) {
        const emission = await coordinator.hooks.emit("deploy:start", {});
        await coordinator.processHookResult(emission, "deploy:start");
      }
    })],
    hooks: [hook("deploy:start", () => ASK)],
  });
  const done = run();
  for (let asked = 1; data("tool:error").length === 0 && asked < 10; asked++) {
    await until(() => data("approval:required").length >= asked || data("tool:error").length > 0);
    await clock.advance(100_000);
  }
  assertEquals(data("tool:error").map(({ error }) => (error as { type: string }).type), ["tool_timeout"]);
  assertEquals((await done).status, "completed");
});
