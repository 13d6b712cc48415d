/** The contract suites of `preamp/testing`, run against the tools and hooks that need nothing from outside. */
import { testHook, testTool } from "preamp/testing";
import * as approval from "../../modules/hooks-approval/mod.ts";
import * as timing from "../../modules/hooks-timing/mod.ts";
import * as calculator from "../../modules/tool-calculator/mod.ts";
import * as todo from "../../modules/tool-todo/mod.ts";

testTool("tool-calculator", () => calculator, { input: { expression: "2 + 2" } });
testTool("tool-todo", () => todo, { input: { action: "list" } });
testHook("hooks-timing", () => timing);
testHook("hooks-approval", () => approval, {
  expectations: [
    { event: "tool:pre", data: { tool_name: "calculator", tool_input: {} }, action: "continue" },
    { event: "tool:pre", data: { tool_name: "bash", tool_input: { command: "ls" } }, action: "ask_user" },
  ],
});
