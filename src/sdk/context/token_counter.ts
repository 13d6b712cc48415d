/** How tokens are counted: by estimate, or exactly with a tokenizer that is loaded when it is first needed. */
import { type Message, messageTokens, type ToolSpec, toolTokens } from "../mod.ts";

/** Values of the knob `token_meter`. */
export type TokenMeter = "estimate" | "calibrated" | "exact";

/** Counts messages and tool specifications. */
export interface TokenCounter {
  message(message: Message): number;
  tools(tools: readonly ToolSpec[] | undefined): number;
}

/** Counts by estimate; what `estimate` and `calibrated` begin with. */
export const HEURISTIC_COUNTER: TokenCounter = {
  message: (message) => messageTokens(message),
  tools: (tools) => toolTokens(tools),
};

/** A tokenizer's time grows faster than a text without breaks; a text is counted in pieces of at most this length. */
const PIECE_CHARS = 4096;

let exact: Promise<TokenCounter> | undefined;

/** Resolves to a meter that counts as o200k does (OpenAI's models); others come close. Loaded once a process. */
export function exactMeter(): Promise<TokenCounter> {
  return exact ??= loadExact();
}

async function loadExact(): Promise<TokenCounter> {
  const { countTokens } = await import("gpt-tokenizer/encoding/o200k_base");
  const options = { disallowedSpecial: new Set<string>() }; // "<|endoftext|>" in a text is text
  const count = (text: string) => {
    if (text.length <= PIECE_CHARS) return countTokens(text, options);
    let tokens = 0;
    for (let start = 0; start < text.length;) {
      const end = endOfPiece(text, start + PIECE_CHARS);
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

/** A piece ends before a space where there is one near, and never inside a character. */
function endOfPiece(text: string, end: number): number {
  if (end >= text.length) return text.length;
  const space = text.lastIndexOf(" ", end);
  if (space > end - 256) return space;
  const last = text.charCodeAt(end - 1);
  return last >= 0xd800 && last < 0xdc00 ? end - 1 : end;
}
