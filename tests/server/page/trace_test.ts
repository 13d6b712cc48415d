/** The trace: what took time in a run. */
import { spansOf } from "../../../src/server/page/app/log/trace.ts";
import { assertEquals } from "../../assert.ts";
import { type Draft, transcriptOf } from "../../support/log_entries.ts";

function shown(...drafts: Draft[]) {
  return spansOf(transcriptOf(...drafts)).map((
    { kind, name, brief, depth, started, ended, tokens, style },
  ) => [
    "  ".repeat(depth) + kind,
    name,
    brief,
    [started / 1000, ended === null ? null : ended / 1000],
    tokens,
    style,
  ]);
}

const answer = (input_tokens: number) => ({ provider: "mock", usage: { input_tokens, output_tokens: 1 } });

Deno.test("a run with a question and a tool has a span for each model call, the wait and the tool", () => {
  const call = { tool_name: "calculator", tool_call_id: "call_1", tool_input: { expression: "6*7" } };
  assertEquals(
    shown(
      ["provider:request", { provider: "mock", iteration: 1 }],
      ["provider:response", answer(10)],
      ["tool:pre", call],
      ["approval:required", { approval_id: "apr_1", tool_call_id: "call_1", prompt: "Allow it?" }],
      ["approval:granted", { approval_id: "apr_1", tool_call_id: "call_1", decision: "allow" }],
      ["tool:post", { ...call, result: { success: true, output: "42" } }],
      ["provider:request", { provider: "mock", iteration: 2 }],
    ),
    [
      ["model", "mock", "", [0, 1], 11, ""],
      ["wait", "a person", "Allow it?", [3, 4], null, "waiting"],
      ["tool", "calculator", "6*7", [4, 5], null, ""],
      ["model", "mock", "", [6, null], null, ""],
    ],
  );
});

Deno.test("what a sub-agent did is below its call, which has the tokens of all of it", () => {
  const call = { tool_name: "task", tool_call_id: "call_1", tool_input: { instruction: "look" } };
  assertEquals(
    shown(
      ["tool:pre", call],
      ["task:agent_spawned", { tool_call_id: "call_1", agent: "finder", sub_session_id: "ses_2" }],
      ["provider:request", { provider: "mock", iteration: 1 }, "ses_2"],
      ["provider:response", answer(20), "ses_2"],
      ["tool:post", { ...call, result: { success: false, error: { message: "nothing found" } } }],
    ),
    [
      ["tool", "task → finder", "nothing found", [0, 4], 21, "failed"],
      ["  model", "mock", "", [2, 3], 21, ""],
    ],
  );
});
