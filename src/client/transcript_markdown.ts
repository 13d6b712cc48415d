/** A transcript as Markdown, to keep or to send to somebody. */
import { type RunTranscript, textOf } from "./transcript.ts";
import type { Item, Question, Thread, ToolItem } from "./transcript_items.ts";

/** Returns the conversation of a run as Markdown: texts as they are, inputs and results as blocks of code. */
export function transcriptMarkdown({ thread, status, usage, started }: RunTranscript): string {
  if (thread === null) return "";
  const cost = usage.cost_usd === null ? "" : `, $${usage.cost_usd.toFixed(4)}`;
  const facts = `${status}, ${usage.model_calls} model calls, ${usage.total_tokens} tokens${cost}`;
  return `${partsOf(thread).join("\n\n")}\n\n*${started}: ${facts}*\n`;
}

function partsOf({ items, agent }: Thread): string[] {
  return items.flatMap((item) => partOf(item, agent));
}

function partOf(item: Item, agent: string | null): string[] {
  switch (item.kind) {
    case "prompt":
      return [`## ${agent === null ? "You" : `Task of ${agent}`}`, item.text];
    case "steering":
      return ["## You, steering", item.text];
    case "text":
      return [`## ${agent ?? "Agent"}`, item.text];
    case "thinking":
      return [quoted(item.text)];
    case "notice":
      return [quoted(item.text)];
    case "question":
      return [quoted(answerOf(item.question))];
    case "tool":
      return callOf(item);
  }
}

function callOf({ name, phase, input, result, output, question, thread }: ToolItem): string[] {
  return [
    `**${name}** (${phase})`,
    ...(input === undefined ? [] : [fenced(input)]),
    ...(question ? [quoted(answerOf(question))] : []),
    ...(thread ? [quoted(partsOf(thread).join("\n\n"))] : []),
    ...(result === undefined ? output === "" ? [] : [fenced(output)] : [fenced(result)]),
  ];
}

function answerOf({ prompt, status, reason }: Question): string {
  return `${prompt} ${status}${reason ? `: ${reason}` : ""}`;
}

function quoted(text: string): string {
  return text.split("\n").map((line) => `> ${line}`.trimEnd()).join("\n");
}

/** Returns a value in a block whose fence is longer than any row of backticks in it. */
function fenced(value: unknown): string {
  const text = textOf(value).trimEnd();
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}\n${text}\n${fence}`;
}
