import type { Message } from "../../src/sdk/messages.ts";
import {
  assertEventOrder,
  AssertionError,
  assertToolPairs,
  toolPairFindings,
} from "../../src/testing/assertions.ts";
import { EventRecorder } from "../../src/testing/hooks.ts";
import { assertEquals, assertThrows } from "../assert.ts";

const user: Message = { role: "user", content: "x" };
const calls = (...ids: string[]): Message => ({
  role: "assistant",
  content: "",
  tool_calls: ids.map((id) => ({ id, name: "f", tool: "f", arguments: {} })),
});
const result = (tool_call_id: string): Message => ({ role: "tool", tool_call_id, content: "r" });

Deno.test("assertToolPairs() accepts calls answered in order, in any number of rounds", () => {
  assertToolPairs([user, calls("a", "b"), result("a"), result("b"), calls("c"), result("c"), {
    role: "assistant",
    content: "done",
  }]);
  assertToolPairs([]);
  assertToolPairs([
    { role: "assistant", content: [{ type: "tool_call", id: "a", name: "f", input: {} }] },
    result("a"),
  ]);
});

Deno.test("assertToolPairs() finds every way to break a pair", () => {
  const cases: [Message[], string][] = [
    [[calls("a"), user], '"a" is not answered before message 1'],
    [[calls("a")], '"a" is not answered'],
    [[user, result("a")], 'message 1 answers "a", which is not open'],
    [[calls("a"), result("a"), result("a")], 'message 2 answers "a", which is not open'],
    [[calls("a", "b"), result("b"), result("a")], 'message 1 answers "b" out of order'],
    [
      [calls("a"), user, result("a")],
      '"a" is not answered before message 1; message 2 answers "a", which is not open',
    ],
    [[calls("a"), { role: "tool", content: "r" }, result("a")], "message 1 answers no call"],
  ];
  for (const [messages, finding] of cases) {
    assertEquals(toolPairFindings(messages).join("; "), finding);
    assertThrows(() => assertToolPairs(messages), AssertionError, "Tool calls and results do not pair");
  }
});

Deno.test("assertToolPairs() accepts unanswered calls at the end with allow_pending", () => {
  assertToolPairs([user, calls("a", "b"), result("a")], { allow_pending: true });
  assertThrows(() => assertToolPairs([calls("a"), user], { allow_pending: true }), AssertionError);
});

Deno.test("assertEventOrder() compares the named events and ignores others between them", () => {
  const recorder = new EventRecorder();
  for (const event of ["a", "x", "b", "a"]) recorder.record(event);
  assertEventOrder(recorder, ["a", "b", "a"]);
  for (const wrong of [["a", "b"], ["b", "a", "a"], ["a", "b", "a", "c"]]) {
    assertThrows(() => assertEventOrder(recorder, wrong), AssertionError, "received a, b, a");
  }
});
