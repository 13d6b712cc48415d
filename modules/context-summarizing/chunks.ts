/** Renders left-out messages as text for the summarising model, in chunks that each fit one request. */
import { estimateTokens, isObject, type Message, textOf } from "preamp/base";

/** Maximum characters of one tool result in a chunk; the beginning is kept. */
const RESULT_CHARS = 1500;

/** Maximum characters of any other message in a chunk. */
const MESSAGE_CHARS = 6000;

/** Returns the messages as chunks of text of at most `max_tokens` estimated tokens each, in order. */
export function chunksOf(messages: readonly Message[], max_tokens: number): string[] {
  const chunks: string[] = [];
  let chunk = "";
  let tokens = 0;
  for (const message of messages) {
    const line = truncateToTokens(lineOf(message), max_tokens);
    const size = estimateTokens(line) + 2;
    if (chunk !== "" && tokens + size > max_tokens) {
      chunks.push(chunk);
      [chunk, tokens] = ["", 0];
    }
    chunk += `${line}\n`;
    tokens += size;
  }
  return chunk === "" ? chunks : [...chunks, chunk];
}

function lineOf(message: Message): string {
  const { role, content, tool_calls } = message;
  const maxChars = role === "tool" ? RESULT_CHARS : MESSAGE_CHARS;
  const calls = (Array.isArray(tool_calls) ? tool_calls : []).filter(isObject)
    .map((call) => ` [calls ${call.name} ${shortened(JSON.stringify(call.arguments) ?? "", 400)}]`).join("");
  return `${role}: ${shortened(textOf(content), maxChars)}${calls}`;
}

function shortened(text: string, maxChars: number): string {
  return text.length <= maxChars ? text : `${text.slice(0, maxChars).toWellFormed()}...`;
}

/** Returns the beginning of a text, at most `max_tokens` estimated tokens long. */
export function truncateToTokens(text: string, max_tokens: number): string {
  let short = text;
  for (let tokens = estimateTokens(short); tokens > max_tokens; tokens = estimateTokens(short)) {
    short = short.slice(0, Math.floor(short.length * Math.min(0.95, max_tokens / tokens))).toWellFormed();
  }
  return short;
}
