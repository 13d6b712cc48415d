/** What the rule book is made of: a task per tool, asked for its next step until all have only words left. */
import type { ScriptedCall } from "./script.ts";
import type { TurnCall } from "./turn.ts";

/** What a task does next, seen from the calls of its tool in this turn. */
export type Step = { call: ScriptedCall } | { say: string };

/** One thing that a prompt wants of one tool. */
export interface Task {
  tool: string;
  /** What is wanted, as it fits behind "I cannot". */
  wish: string;
  next(calls: readonly TurnCall[]): Step;
}
