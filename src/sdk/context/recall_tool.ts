/** The tool `context_recall`: returns messages from the full history that a view shortened or left out. */
import { isObject, type JsonObject, type Message, textOf, type Tool, toolFailure } from "../base.ts";

/** Maximum characters of one result; a longer text is read in parts, by `offset`. */
const MOST_CHARS = 20_000;

/** Returns the handle of a message by its index in the history. */
export function handleOf(index: number): string {
  return `m${index}`;
}

/** Returns the handles of the last six ranges, such as `m3-m40, m52`. */
export function handlesOf(stretches: readonly (readonly [number, number])[]): string {
  return stretches.slice(-6).map(([first, last]) =>
    first === last ? handleOf(first) : `${handleOf(first)}-${handleOf(last)}`
  ).join(", ");
}

/** Returns the tool; `historyOf` returns the current full history. */
export function recallTool(historyOf: () => readonly Message[]): Tool {
  return {
    name: "context_recall",
    description:
      "Reads back earlier messages of this conversation that were shortened or left out. Takes the handle given in a marker or note: one message (m12) or a range (m3-m9). Long texts come in pieces: repeat with the next_offset of the answer.",
    input_schema: {
      type: "object",
      properties: {
        handle: { type: "string", description: "A handle such as m12 or m3-m9" },
        offset: { type: "integer", minimum: 0, description: "First character to read; default 0" },
      },
      required: ["handle"],
    },
    idempotent: true,
    execute: (input) => Promise.resolve(recall(historyOf(), input)),
  };
}

function recall(history: readonly Message[], input: JsonObject): unknown {
  const { handle, offset = 0 } = input;
  const range = typeof handle === "string" ? rangeOf(handle.trim(), history.length) : null;
  if (!range) {
    const message = `Cannot recall ${JSON.stringify(handle)}: a handle is m0 to m${
      Math.max(0, history.length - 1)
    }, or a range of two joined by "-"`;
    return toolFailure(message, { type: "tool_input_invalid" });
  }
  const start = typeof offset === "number" && Number.isSafeInteger(offset) && offset > 0 ? offset : 0;
  const messages = history.slice(range[0], range[1] + 1);
  const text = messages.length === 1 ? contentOf(messages[0]) : messages.map((message, at) => {
    const role = isObject(message) ? String(message.role) : "unknown";
    return `[${handleOf(range[0] + at)} ${role}]\n${contentOf(message)}`;
  }).join("\n\n");
  const most = start + MOST_CHARS;
  const is_split = text.codePointAt(most - 1)! > 0xffff; // a character of two code units stays whole
  const end = Math.min(text.length, is_split ? most - 1 : most);
  const answer: JsonObject = { handle, total_chars: text.length, text: text.slice(start, end) };
  if (end < text.length) answer.next_offset = end;
  return { success: true, output: answer };
}

function rangeOf(handle: string, count: number): [number, number] | null {
  const [, first, last = first] = /^m(\d+)(?:-m(\d+))?$/.exec(handle) ?? [];
  const end = Math.min(Number(last), count - 1);
  return Number(first) <= end ? [Number(first), end] : null;
}

/** Returns the text and calls of a message; its content as JSON if it has neither. */
function contentOf(message: Message | undefined): string {
  if (!isObject(message)) return JSON.stringify(message) ?? "";
  const text = textOf(message.content);
  const calls = Array.isArray(message.tool_calls) && message.tool_calls.length > 0
    ? JSON.stringify(message.tool_calls)
    : "";
  if (text !== "" || calls !== "") return [text, calls].filter((part) => part !== "").join("\n");
  return JSON.stringify(message.content) ?? "";
}
