/** Runs the contract suites of `preamp/testing` against the built-in tools and hooks. */
import type { Module } from "preamp";
import { testHook, testTool } from "preamp/testing";
import * as approval from "../../modules/hooks-approval/mod.ts";
import * as redaction from "../../modules/hooks-redaction/mod.ts";
import * as status from "../../modules/hooks-status-context/mod.ts";
import * as timing from "../../modules/hooks-timing/mod.ts";
import * as reminder from "../../modules/hooks-todo-reminder/mod.ts";
import * as calculator from "../../modules/tool-calculator/mod.ts";
import * as skills from "../../modules/tool-skills/mod.ts";
import * as task from "../../modules/tool-task/mod.ts";
import * as todo from "../../modules/tool-todo/mod.ts";

/** `tool-task` in a session with the capability `session.spawn`. */
const taskWithAgents: Module = {
  module: task.module,
  mount(coordinator, config) {
    const metadata = { agent: "self", stop_reason: "end_turn", error: null };
    coordinator.registerCapability(
      "session.spawn",
      () =>
        Promise.resolve({
          output: "hello",
          session_id: "ses_2",
          status: "completed",
          turn_count: 1,
          metadata,
        }),
    );
    return task.mount(coordinator, config);
  },
};

testTool("tool-calculator", () => calculator, { input: { expression: "2 + 2" } });
testTool("tool-skills", () => skills, {
  coordinator: { permissions: { read: [new URL("../fixtures/", import.meta.url).pathname] } },
  input: { name: "greet" },
});
testTool("tool-task", () => taskWithAgents, { input: { instruction: "Say hello" } });
testTool("tool-todo", () => todo, { input: { action: "list" } });
testHook("hooks-timing", () => timing);
testHook("hooks-redaction", () => redaction);
testHook("hooks-status-context", () => status);
testHook("hooks-todo-reminder", () => reminder);
testHook("hooks-approval", () => approval, {
  expectations: [
    { event: "tool:pre", data: { tool_name: "calculator", tool_input: {} }, action: "continue" },
    { event: "tool:pre", data: { tool_name: "bash", tool_input: { command: "ls" } }, action: "ask_user" },
  ],
});
