/** Converts reasoning effort and thinking budget to the API's `thinkingConfig`. */
import type { CallSettings, Degradations } from "preamp/provider";
import type { GenerateContentConfig, ThinkingConfig } from "./client_types.ts";
import type { Thinking, ThinkingLevel } from "./models.ts";

/** Effort → thinking tokens of Gemini 2.5, as in the API's own OpenAI-compatible endpoint. */
const BUDGETS: Readonly<Record<string, number>> = {
  none: 0,
  minimal: 1_024,
  low: 1_024,
  medium: 8_192,
  high: 24_576,
};

/** All levels, lowest first. */
const ORDER: readonly ThinkingLevel[] = ["MINIMAL", "LOW", "MEDIUM", "HIGH"];

/** Effort → level; efforts beyond the levels get the nearest one. */
const LEVELS: Readonly<Record<string, ThinkingLevel>> = {
  none: "MINIMAL",
  minimal: "MINIMAL",
  low: "LOW",
  medium: "MEDIUM",
  high: "HIGH",
  xhigh: "HIGH",
  max: "HIGH",
};

/**
 * Returns the `thinkingConfig` of a call: a level from Gemini 3 on, a number of tokens before. What the model
 * cannot do is replaced by the nearest possible value, which is added to `degradations`.
 */
export function toThinkingConfig(
  { model, reasoning_effort, thinking_budget }: CallSettings,
  thinking: Thinking,
  include_thoughts: boolean,
  degradations: Degradations,
): Pick<GenerateContentConfig, "thinkingConfig"> {
  const requested = thinking_budget === undefined ? reasoning_effort : `thinking_budget ${thinking_budget}`;
  if (thinking === "none") {
    if (requested !== undefined && requested !== "none") {
      degradations.add(requested, `${model} does not think`, "no thinking");
    }
    return {};
  }
  const shared: ThinkingConfig = include_thoughts ? { includeThoughts: true } : {};
  if (requested === undefined) return include_thoughts ? { thinkingConfig: shared } : {};
  if (thinking === "budget") {
    return { thinkingConfig: { ...shared, thinkingBudget: thinking_budget ?? budgetOf(reasoning_effort!) } };
  }
  const level = levelOf(
    thinking_budget === undefined ? reasoning_effort! : effortOf(thinking_budget),
    thinking,
  );
  if (level.toLowerCase() !== requested) {
    degradations.add(
      requested,
      `${model} has the thinking levels ${thinking.join(", ").toLowerCase()}`,
      `thinking level ${level.toLowerCase()}`,
    );
  }
  return { thinkingConfig: { ...shared, thinkingLevel: level } };
}

function budgetOf(effort: string): number {
  return Object.hasOwn(BUDGETS, effort) ? BUDGETS[effort]! : BUDGETS.high!;
}

/** Returns the effort that a number of tokens corresponds to. */
function effortOf(budget: number): string {
  if (budget <= BUDGETS.low!) return budget === 0 ? "none" : "low";
  return budget <= BUDGETS.medium! ? "medium" : "high";
}

function levelOf(effort: string, levels: readonly ThinkingLevel[]): ThinkingLevel {
  const wanted = Object.hasOwn(LEVELS, effort) ? LEVELS[effort]! : "HIGH";
  const above = ORDER.slice(ORDER.indexOf(wanted)).find((level) => levels.includes(level));
  return above ?? levels.at(-1)!;
}
