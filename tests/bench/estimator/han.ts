/**
 * Sorts Han characters by what o200k makes of them, and writes the lists to `src/sdk/token_han.ts`. Before fit.ts:
 *
 *   deno run -A han.ts
 */
import { decode, encode } from "gpt-tokenizer/encoding/o200k_base";
import { allSamples } from "./samples.ts";

/** Most of a token that a character of each class costs on average; `han_single` takes what is below 1.2. */
const COMMON = 0.6;
const USUAL = 0.85;
/** Times a character is taken to have been seen at the cost it has alone: those that are rare here stay cautious. */
const PRIOR_TIMES = 4;

/** The lists. */
export interface HanLists {
  readonly common: string;
  readonly usual: string;
  readonly single: string;
}

/** Returns the characters of the texts by their average cost, a token's cost shared by its characters. */
export function classifyHan(texts: readonly { kind: string; text: string }[]): HanLists {
  const seen = new Map<string, { tokens: number; times: number }>();
  for (const { kind, text } of texts) {
    if (kind !== "chinese" && kind !== "japanese") continue;
    for (const token of encode(text, { disallowedSpecial: new Set() })) {
      const characters = [...decode([token])];
      for (const character of characters) {
        if (!/\p{Script=Han}/u.test(character)) continue;
        const entry = seen.get(character) ?? { tokens: 0, times: 0 };
        entry.tokens += 1 / characters.length;
        entry.times++;
        seen.set(character, entry);
      }
    }
  }
  const lists = { common: "", usual: "", single: "" };
  for (let code = 0x4e00; code <= 0x9fff; code++) {
    const character = String.fromCharCode(code);
    const alone = encode(character).length;
    if (alone > 1) continue; // several tokens: what is in no list
    const { tokens, times } = seen.get(character) ?? { tokens: 0, times: 0 };
    const average = (tokens + PRIOR_TIMES) / (times + PRIOR_TIMES);
    lists[average < COMMON ? "common" : average < USUAL ? "usual" : "single"] += character;
  }
  return lists;
}

/** Writes the lists as a module of data. */
export async function writeHan({ common, usual, single }: HanLists): Promise<void> {
  const text =
    `/** Han characters by what o200k makes of them. Written by \`tests/bench/estimator/fit.ts\`; data only. */

// deno-fmt-ignore -- written by a script
/** Characters that are mostly part of a longer token. */
export const COMMON_HAN = "${common}";

// deno-fmt-ignore
/** Characters that sometimes are. */
export const USUAL_HAN = "${usual}";

// deno-fmt-ignore
/** Characters that are mostly a token by themselves. */
export const SINGLE_HAN = "${single}";
`;
  await Deno.writeTextFile(new URL("../../../src/sdk/token_han.ts", import.meta.url), text);
}

if (import.meta.main) await writeHan(classifyHan(allSamples().fitted));
