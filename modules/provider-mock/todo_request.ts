/** Reads what a prompt wants of a todo list. */
import type { Token } from "./lexer.ts";
import { endOfPhrase, indexOfPhrase } from "./phrases.ts";

/** What a prompt wants: entries added, or the list shown. */
export type TodoRequest = { kind: "add"; items: string[] } | { kind: "list" };

const REMINDERS = [["remind", "me", "to"], ["remind", "me", "about"]] as const;
const LIST_NAMES = [["todo"], ["todos"], ["to-do"], ["to-dos"], ["to", "do", "list"]] as const;
const ADDING: ReadonlySet<string> = new Set(["add", "put", "note", "write"]);
const PREPOSITIONS: ReadonlySet<string> = new Set(["to", "on", "in", "onto"]);
const ASKING: ReadonlySet<string> = new Set(["list", "show", "what", "what's", "what’s", "which", "read"]);
const FILLERS: ReadonlySet<string> = new Set(["list", "item", "entry", "to", "for", "a", "please"]);

/** Entries that one prompt adds at most; a demo's limit. */
const MAX_ITEMS = 20;

/** Code units of an entry; longer ones are cut. */
const MAX_ITEM_CHARS = 200;

/** Returns what the prompt wants of a todo list, or null when it is about something else. */
export function readTodoRequest(prompt: string, tokens: readonly Token[]): TodoRequest | null {
  const reminder = endOfPhrase(tokens, REMINDERS);
  if (reminder >= 0) return toAdd(prompt.slice(tokens[reminder - 1]?.end));
  const first = tokens[0]?.text === "please" ? 1 : 0;
  if (tokens[first]?.text === "plan") {
    return toAdd(afterColon(prompt, tokens, first) ?? after(prompt, tokens, first));
  }
  const behind = endOfPhrase(tokens, LIST_NAMES);
  return behind < 0 ? null : readListRequest(prompt, tokens, behind - 1);
}

/** `list` is the index of the word that names the list. */
function readListRequest(prompt: string, tokens: readonly Token[], list: number): TodoRequest {
  const listed = afterColon(prompt, tokens, list);
  if (listed !== null) return toAdd(listed);
  const before = tokens.slice(0, list);
  const verb = before.findIndex((token) => ADDING.has(token.text));
  if (verb >= 0) {
    const preposition = before.findLastIndex((token) => PREPOSITIONS.has(token.text));
    if (preposition > verb + 1) return toAdd(prompt.slice(tokens[verb]?.end, tokens[preposition]?.start));
  } else if (before.some((token) => ASKING.has(token.text))) return { kind: "list" };
  let last = list;
  while (FILLERS.has(tokens[last + 1]?.text ?? "")) last++;
  return toAdd(after(prompt, tokens, last));
}

/** Returns the text behind the first colon after a token, or null without one. */
function afterColon(prompt: string, tokens: readonly Token[], index: number): string | null {
  const colon = indexOfPhrase(tokens.slice(index), [":"]);
  return colon < 0 ? null : after(prompt, tokens, index + colon);
}

function after(prompt: string, tokens: readonly Token[], index: number): string {
  return prompt.slice(tokens[index]?.end);
}

function toAdd(text: string): TodoRequest {
  const items = text.split("\n").flatMap(itemsOfLine).slice(0, MAX_ITEMS);
  return items.length > 0 ? { kind: "add", items } : { kind: "list" };
}

/** One sentence is a list: `milk, eggs and bread` are three, `fish and chips` is one. */
function itemsOfLine(line: string): string[] {
  const sentence = line.trim().replace(/^(?:[-*•]|\d+[.)])\s+/, "").split(/[.!?](?:\s|$)/)[0] ?? "";
  const parts = sentence.split(/[,;]/);
  const last = parts.length > 1 ? parts.pop()?.split(" and ") ?? [] : [];
  return [...parts, ...last]
    .map((part) => part.trim())
    .map((part) =>
      (part.startsWith("and ") ? part.slice("and ".length) : part).slice(0, MAX_ITEM_CHARS).toWellFormed()
    )
    .filter((part) => part !== "");
}
