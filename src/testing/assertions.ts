/** Assertions for tests of modules. */
import { isCallBlock } from "../sdk/checks.ts";
import { jsonEqual, type JsonObject } from "../sdk/json.ts";
import type { Message } from "../sdk/messages.ts";
import type { EventRecorder } from "./hooks.ts";

/** Thrown by a failed assertion of this kit. */
export class AssertionError extends Error {
  /** Always `AssertionError`. */
  override readonly name = "AssertionError";
}

/** Options of {@link assertToolPairs}. */
export interface ToolPairOptions {
  /** Whether the last assistant message may have unanswered calls; default false. */
  allow_pending?: boolean;
}

/**
 * Asserts that every tool call has exactly one result, directly after its assistant message and in order, and
 * that no tool message answers another call.
 *
 * @throws {AssertionError} with every finding.
 */
export function assertToolPairs(messages: readonly Message[], options: ToolPairOptions = {}): void {
  const findings = toolPairFindings(messages, options);
  if (findings.length > 0) {
    throw new AssertionError(`Tool calls and results do not pair: ${findings.join("; ")}`);
  }
}

/** Returns the findings of {@link assertToolPairs}, one line each; an empty list when there is no mistake. */
export function toolPairFindings(
  messages: readonly Message[],
  { allow_pending = false }: ToolPairOptions = {},
): string[] {
  const findings: string[] = [];
  let open: string[] = [];
  messages.forEach((message, index) => {
    if (message.role === "tool") {
      const id = message.tool_call_id;
      if (id === undefined) findings.push(`message ${index} answers no call`);
      else if (open[0] === id) open.shift();
      else if (open.includes(id)) {
        findings.push(`message ${index} answers "${id}" out of order`);
        open = open.filter((item) => item !== id);
      } else findings.push(`message ${index} answers "${id}", which is not open`);
      return;
    }
    for (const id of open) findings.push(`"${id}" is not answered before message ${index}`);
    open = message.role === "assistant" ? callIds(message) : [];
  });
  if (!allow_pending) { for (const id of open) findings.push(`"${id}" is not answered`); }
  return findings;
}

function callIds(message: Message): string[] {
  const blocks: unknown[] = Array.isArray(message.content) ? message.content : [];
  const calls: unknown[] = message.tool_calls?.length ? message.tool_calls : blocks.filter(isCallBlock);
  return calls.map((call) => String((call as JsonObject).id));
}

/**
 * Asserts that the recorded events with these names are exactly these, in this order. Other events are
 * ignored.
 *
 * @throws {AssertionError} with both lists.
 */
export function assertEventOrder(
  recorder: Pick<EventRecorder, "getEvents">,
  expected: readonly string[],
): void {
  const names = new Set(expected);
  const actual = recorder.getEvents().map(([event]) => event).filter((event) => names.has(event));
  if (!jsonEqual(actual, expected)) {
    throw new AssertionError(
      `Expected events ${expected.join(", ")}: received ${actual.join(", ") || "none"}`,
    );
  }
}
