/** Looking for words in a tokenised prompt. */
import type { Token } from "./lexer.ts";

/** Returns the index of the first token of a phrase (lower-case words in a row), -1 when it is not there. */
export function indexOfPhrase(tokens: readonly Token[], phrase: readonly string[]): number {
  return tokens.findIndex((_, start) =>
    phrase.every((word, offset) => tokens[start + offset]?.text === word)
  );
}

/** Returns the index behind the last token of the first phrase that is there, -1 when none is. */
export function endOfPhrase(tokens: readonly Token[], phrases: readonly (readonly string[])[]): number {
  for (const phrase of phrases) {
    const start = indexOfPhrase(tokens, phrase);
    if (start >= 0) return start + phrase.length;
  }
  return -1;
}
