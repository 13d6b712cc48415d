/** What Google's models accept. */

/** A level of thinking that the API takes. */
export type ThinkingLevel = "MINIMAL" | "LOW" | "MEDIUM" | "HIGH";

/** How a model is asked to think: with a level, with a number of tokens, or not at all. */
export type Thinking = readonly ThinkingLevel[] | "budget" | "none";

const LEVELS: readonly ThinkingLevel[] = ["LOW", "MEDIUM", "HIGH"];
const LEVELS_FROM_MINIMAL: readonly ThinkingLevel[] = ["MINIMAL", ...LEVELS];

/** Models that accept the level MINIMAL; later ones refuse it. */
const MINIMAL = /^gemini-3(\.[0-6])?-flash/;

/** Models without thinking, or with another output than text. */
const NOT_THINKING = /^gemini-(1|2\.0)|^(?!gemini-)|-image|-tts|-embedding|-live|-omni|-robotics/;

/** Returns how a model is asked to think. An unknown model of the family is taken for a recent one. */
export function thinkingOf(model: string): Thinking {
  const id = bareId(model);
  if (NOT_THINKING.test(id)) return "none";
  if (id.startsWith("gemini-2")) return "budget";
  return MINIMAL.test(id) ? LEVELS_FROM_MINIMAL : LEVELS;
}

/** Returns whether a model is of the families 1 and 2, which have fewer combinations of features. */
export function isBeforeGemini3(model: string): boolean {
  return /^gemini-[12]/.test(bareId(model));
}

/** Returns an id without `models/`. */
export function bareId(model: string): string {
  return model.replace(/^models\//, "");
}
