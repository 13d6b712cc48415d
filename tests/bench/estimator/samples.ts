/** All texts with the tokens that o200k gives them, and which of them are kept out of the fit. */
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import { foundTexts, kindOfLanguage, type Text, wordLists } from "./found_texts.ts";
import { everydayText, MAKERS } from "./made_texts.ts";
import { NATURAL } from "./natural_texts.ts";
import { randomOf } from "./random.ts";

const SEED = 20_261_121;
const TEXTS_OF_A_KIND = 300;

/** Document of texts that are all for the fit. */
const NEVER_KEPT = "";

/** A text that was counted. */
export interface Sample extends Text {
  readonly tokens: number;
}

/** Returns o200k's tokens of a text; what looks like a special token is text. */
export function o200k(text: string): number {
  return countTokens(text, { disallowedSpecial: new Set() });
}

/** Returns all texts, counted: four fifths of the documents to fit on, the rest to judge by. */
export function allSamples(): { fitted: Sample[]; kept: Sample[] } {
  const samples = allTexts().map((text): Sample => ({ ...text, tokens: o200k(text.text) }));
  return { fitted: samples.filter((one) => !isKept(one)), kept: samples.filter(isKept) };
}

function allTexts(): Text[] {
  const random = randomOf(SEED);
  const texts: Text[] = foundTexts();
  for (const [kind, written] of Object.entries(NATURAL)) {
    for (const text of written) texts.push({ kind: `${kind}, natural`, document: NEVER_KEPT, text });
  }
  const vocabulary = wordLists().get("english") ?? [];
  for (const [kind, make] of Object.entries(MAKERS)) {
    for (let index = 0; index < TEXTS_OF_A_KIND; index++) {
      texts.push({ kind, document: `${kind} ${index}`, text: make(random, vocabulary) });
    }
  }
  for (const [language, words] of wordLists()) {
    if (language === "japanese") continue; // words in a random order are no Japanese: o200k joins words there
    const kind = kindOfLanguage(language);
    const count = kind === "other_prose" ? 20 : TEXTS_OF_A_KIND;
    for (let index = 0; index < count; index++) {
      texts.push({ kind, document: `${language} ${index}`, text: everydayText(random, language, words) });
    }
  }
  return texts;
}

/** A fifth of the documents, by a hash of their name. */
function isKept({ document }: Text): boolean {
  if (document === NEVER_KEPT) return false;
  let hash = 0;
  for (const character of document) hash = Math.imul(hash ^ character.codePointAt(0)!, 0x01000193) >>> 0;
  return (hash >>> 8) % 5 === 0;
}
