/** What was left out, as text for a summariser, in parts that each fit one request. Pure. */
import { estimateTokens, isObject, type Message, textOf } from "preamp";

/** Characters of one tool result that a summariser is shown; the beginning says what it was. */
const RESULT_CHARS = 1500;

/** Characters of any other message that it is shown. */
const MESSAGE_CHARS = 6000;

/** Returns the messages as texts of at most `max_tokens` estimated tokens each, in order. */
export function partsOf(messages: readonly Message[], max_tokens: number): string[] {
  const parts: string[] = [];
  let part = "";
  let tokens = 0;
  for (const message of messages) {
    const line = within(lineOf(message), max_tokens);
    const size = estimateTokens(line) + 2;
    if (part !== "" && tokens + size > max_tokens) {
      parts.push(part);
      [part, tokens] = ["", 0];
    }
    part += `${line}\n`;
    tokens += size;
  }
  return part === "" ? parts : [...parts, part];
}

function lineOf(message: Message): string {
  const { role, content, tool_calls } = message;
  const most = role === "tool" ? RESULT_CHARS : MESSAGE_CHARS;
  const calls = (Array.isArray(tool_calls) ? tool_calls : []).filter(isObject)
    .map((call) => ` [calls ${call.name} ${shortened(JSON.stringify(call.arguments) ?? "", 400)}]`).join("");
  return `${role}: ${shortened(textOf(content), most)}${calls}`;
}

function shortened(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most).toWellFormed()}...`;
}

/** Returns the beginning of a text that has at most so many estimated tokens. */
export function within(text: string, max_tokens: number): string {
  let short = text;
  for (let tokens = estimateTokens(short); tokens > max_tokens; tokens = estimateTokens(short)) {
    short = short.slice(0, Math.floor(short.length * Math.min(0.95, max_tokens / tokens))).toWellFormed();
  }
  return short;
}
