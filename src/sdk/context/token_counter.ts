/** Counts tokens: by estimate, or exactly with a tokenizer that is loaded on first use. */
import { type Message, messageTokens, type ToolSpec, toolTokens } from "../base.ts";

/** Values of the setting `token_meter`. */
export type TokenMeter = "estimate" | "calibrated" | "exact";

/** Counts messages and tool specifications. */
export interface TokenCounter {
  message(message: Message): number;
  tools(tools: readonly ToolSpec[] | undefined): number;
}

/** Counts by estimate; used by `estimate` and `calibrated`. */
export const HEURISTIC_COUNTER: TokenCounter = {
  message: (message) => messageTokens(message),
  tools: (tools) => toolTokens(tools),
};

/**
 * Maximum length of a part that is counted at once: a tokenizer's time grows faster than linearly in a text
 * without breaks.
 */
const PART_CHARS = 4096;

let exact: Promise<TokenCounter> | undefined;

/**
 * Resolves to a counter that uses o200k (OpenAI's models); other models have similar counts. Loaded once per
 * process.
 */
export function exactCounter(): Promise<TokenCounter> {
  return exact ??= loadExact();
}

async function loadExact(): Promise<TokenCounter> {
  const { countTokens } = await import("gpt-tokenizer/encoding/o200k_base");
  const options = { disallowedSpecial: new Set<string>() }; // "<|endoftext|>" in a text is plain text
  const count = (text: string) => {
    if (text.length <= PART_CHARS) return countTokens(text, options);
    let tokens = 0;
    for (let start = 0; start < text.length;) {
      const end = endOfPart(text, start + PART_CHARS);
      tokens += countTokens(text.slice(start, end), options);
      start = end;
    }
    return tokens;
  };
  return {
    message: (message) => messageTokens(message, count),
    tools: (tools) => toolTokens(tools, count),
  };
}

/** Returns the end of a part: before a nearby space, and never inside a character. */
function endOfPart(text: string, end: number): number {
  if (end >= text.length) return text.length;
  const space = text.lastIndexOf(" ", end);
  if (space > end - 256) return space;
  const last = text.charCodeAt(end - 1);
  return last >= 0xd800 && last < 0xdc00 ? end - 1 : end;
}
