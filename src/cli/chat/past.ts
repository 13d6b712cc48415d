/** Displays the conversation that is continued, and writes it as Markdown. */
import type { Runtime } from "../../app/types.ts";
import { isObject, type JsonObject } from "../../sdk/json.ts";
import { fenced } from "../prompt_files.ts";
import { TERMINAL } from "../terminal_caller.ts";
import { callLine } from "../terminal/tool_lines.ts";
import type { ChatView } from "./view.ts";

/** Messages of an earlier conversation that are displayed, the last ones. */
const MOST_SHOWN = 200;

/** A part of a conversation, as a person sees it. */
export type PastPart =
  | { readonly kind: "message"; readonly text: string }
  | { readonly kind: "answer"; readonly text: string }
  | { readonly kind: "call"; readonly call: JsonObject };

/** Resolves to the parts of a conversation: not its system prompts, and not the results of tools. */
export async function pastParts({ runs }: Pick<Runtime, "runs">, session_id: string): Promise<PastPart[]> {
  const parts: PastPart[] = [];
  let cursor: number | undefined;
  do {
    const page = await runs.sessions.messages(TERMINAL, session_id, cursor === undefined ? {} : { cursor });
    parts.push(...page.data.flatMap(partsOf));
    cursor = page.next_cursor === null ? undefined : Number(page.next_cursor);
  } while (cursor !== undefined);
  return parts;
}

function partsOf({ role, content, metadata, tool_calls }: JsonObject): PastPart[] {
  const blocks = Array.isArray(content) ? content.filter(isObject) : [{ type: "text", text: content }];
  const texts = blocks.flatMap(({ type, text }) => type === "text" && typeof text === "string" ? [text] : []);
  if (role === "user") { // of several texts the first one was typed; the others are attached
    const [text = ""] = texts;
    const is_injected = isObject(metadata) && metadata.source === "hook";
    return text === "" || is_injected ? [] : [{ kind: "message", text }];
  }
  if (role !== "assistant") return [];
  const in_blocks = blocks.filter(({ type }) => type === "tool_call");
  const calls = in_blocks.length > 0
    ? in_blocks
    : Array.isArray(tool_calls)
    ? tool_calls.filter(isObject)
    : [];
  const answer = texts.join("\n\n").trim();
  return [
    ...answer === "" ? [] : [{ kind: "answer", text: answer } as const],
    ...calls.map(({ name, tool, input, arguments: given }) => ({
      kind: "call" as const,
      call: { tool_name: name ?? tool, tool_input: input ?? given },
    })),
  ];
}

/** Displays the end of an earlier conversation. */
export async function showPast(
  runtime: Pick<Runtime, "runs">,
  session_id: string,
  view: ChatView,
): Promise<void> {
  const parts = await pastParts(runtime, session_id);
  const shown = parts.slice(-MOST_SHOWN);
  if (shown.length < parts.length) {
    view.note(view.style.dim(`… ${parts.length - shown.length} earlier messages: /export writes all`));
  }
  for (const part of shown) {
    if (part.kind === "message") view.pastMessage(part.text);
    else if (part.kind === "answer") view.pastAnswer(part.text);
    else view.note(callLine({ data: part.call, style: view.style, columns: view.columns() }));
  }
}

/** Returns a conversation as Markdown. */
export function pastMarkdown(title: string, parts: readonly PastPart[]): string {
  const sections = parts.map((part) => {
    if (part.kind === "message") return `## You\n\n${part.text}`;
    if (part.kind === "answer") return `## Agent\n\n${part.text}`;
    const input = JSON.stringify(part.call.tool_input ?? {}, null, 2);
    return `### Tool ${part.call.tool_name}\n\n${fenced(input, "json")}`;
  });
  return `${[`# ${title}`, ...sections].join("\n\n")}\n`;
}
