/**
 * Two runs side by side: what the agents did in each model call, and the first difference. Compared are the
 * texts, the tool calls with their names, inputs, outcomes and results, the same of sub-agents, and the
 * status.
 */
import { computed, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import { type Item, type TextItem, textOf, type ToolItem, type ToolPhase } from "preamp/client";
import type { PlanChanges } from "./plan_draft.ts";
import { type RunView, watched } from "./run_view.ts";

/** What both runs did in one model call, or before the first one. */
interface Step {
  readonly left: readonly Item[];
  readonly right: readonly Item[];
}

/** The first difference of two runs. */
export interface Difference {
  /** Index of the step; null if the status differs. */
  readonly step: number | null;
  /** The difference in words, in which the runs are A and B. */
  readonly message: string;
}

/** Two runs, aligned. */
interface Aligned {
  /** What the left run did before the right one was forked from it. */
  readonly before: readonly Item[];
  readonly steps: readonly Step[];
  readonly difference: Difference | null;
  /** Whether both runs have ended: without a difference they are equal, not just so far. */
  readonly ended: boolean;
}

/** The difference of two plans. */
export interface PlanDifference {
  /** Text of the right run's plan. */
  readonly text: string;
  /** Null when the plans are the same, or one of them cannot be read by this server any more. */
  readonly changes: PlanChanges | null;
  /** The changed lines with signs; empty without one. */
  readonly lines: string;
}

/** Two runs that are shown side by side. */
export class Comparison {
  readonly left: RunView;
  readonly right: RunView;
  /** Entry of the left run after which the right one continues; null if it does not. */
  readonly fork: ReadonlySignal<number | null>;
  /** Null until it is known. */
  readonly plans: Signal<PlanDifference | null> = signal(null);
  readonly aligned: ReadonlySignal<Aligned>;

  constructor(left: RunView, right: RunView) {
    this.left = left;
    this.right = right;
    this.fork = computed(() => right.count.value === 0 ? null : forkOf(right, left.id));
    this.aligned = computed(() => align(left, right, this.fork.value));
  }
}

/** Returns the entry from which an item is made again: a prompt's own, else the request of its model call. */
export function forkSeqOf({ calls }: RunView, { kind, seq }: Item): number {
  return kind === "prompt" ? seq : calls.value.findLast((call) => call.seq <= seq)?.seq ?? seq;
}

function forkOf({ entries }: RunView, left: string): number | null {
  const { run_id, seq } = (entries[0]!.data.forked_from ?? {}) as { run_id?: string; seq?: number };
  return run_id === left ? seq! : null;
}

/** Aligns two runs; `fork` is the entry of the left one from which the right one was started, if it was. */
export function align(left: RunView, right: RunView, fork: number | null): Aligned {
  const a = stepsOf(left, fork !== null && hasPrompt(left, fork) ? fork : 0);
  const b = stepsOf(right, 0);
  const count = Math.max(a.steps.length, b.steps.length);
  const steps = Array.from({ length: count }, (_, index) => ({
    left: a.steps[index] ?? [],
    right: b.steps[index] ?? [],
  }));
  const ended = left.ended.value !== null && right.ended.value !== null;
  return { before: a.before, steps, difference: firstDifference(steps, left, right), ended };
}

/** Whether the history up to an entry has the prompt: from there the turn continues, else it begins. */
function hasPrompt({ entries, thread }: RunView, fork: number): boolean {
  let started = false;
  for (const { seq, event, session_id, data } of entries) {
    if (seq > fork) return false;
    if (session_id !== thread.value?.session_id) continue;
    started ||= event === "execution:start";
    const { role } = (data.message ?? {}) as { role?: string };
    if (started && event === "context:message" && role === "user") return true;
  }
  return false;
}

/** Returns what a run did after an entry, by model calls; a call that had not ended by then is repeated. */
function stepsOf({ thread, calls }: RunView, after: number): { before: Item[]; steps: Item[][] } {
  const before: Item[] = [];
  const steps: Item[][] = [[]];
  const own = thread.value;
  if (own === null) return { before, steps: [] };
  watched(own); // read again when it grows
  const own_calls = calls.value.filter(({ session_id }) => session_id === own.session_id);
  let next = 0;
  let is_call_after = after === 0;
  for (const item of own.items) {
    for (; next < own_calls.length && own_calls[next]!.seq <= item.seq; next++) {
      is_call_after = (own_calls[next]!.end_seq ?? Infinity) > after;
      if (is_call_after) steps.push([]);
    }
    (isAfter(item, is_call_after, after) ? steps.at(-1)! : before).push(item);
  }
  return { before, steps };
}

function isAfter(item: Item, is_call_after: boolean, after: number): boolean {
  if (item.kind === "tool") return is_call_after || (watched(item).end_seq ?? Infinity) > after;
  return item.kind === "text" || item.kind === "thinking" ? is_call_after : item.seq > after;
}

function firstDifference(steps: readonly Step[], left: RunView, right: RunView): Difference | null {
  const [a_ended, b_ended] = [left, right].map(({ ended }) => ended.value !== null); // and all entries are here
  const a_last = steps.findLastIndex((step) => step.left.length > 0);
  const b_last = steps.findLastIndex((step) => step.right.length > 0);
  for (const [index, step] of steps.entries()) {
    const message = differenceOf(
      step.left,
      step.right,
      a_ended! || index < a_last,
      b_ended! || index < b_last,
    );
    if (message === undefined) return null;
    if (message !== null) return { step: index, message };
  }
  const [a, b] = [left.status.value, right.status.value];
  return a_ended && b_ended && a !== b ? { step: null, message: `A is ${a}, B is ${b}` } : null;
}

type Act = TextItem | ToolItem;

/** Returns the first difference in words, null without one, undefined while it is open. */
function differenceOf(
  left: readonly Item[],
  right: readonly Item[],
  a_done: boolean,
  b_done: boolean,
): string | null | undefined {
  const [acts_a, acts_b] = [left.filter(isAct), right.filter(isAct)];
  for (let at = 0; at < Math.max(acts_a.length, acts_b.length); at++) {
    const [a, b] = [acts_a[at], acts_b[at]];
    if (!a || !b) return (a ? b_done : a_done) ? `${wordsOf(a, "A")}; ${wordsOf(b, "B")}` : undefined;
    const message = a.kind === "tool" && b.kind === "tool"
      ? differenceOfCalls(a, b)
      : a.kind === "text" && b.kind === "text"
      ? differenceOfTexts(a, b)
      : `${wordsOf(a, "A")}; ${wordsOf(b, "B")}`;
    if (message !== null) return message;
  }
  return null;
}

function isAct(item: Item): item is Act {
  return item.kind === "text" || item.kind === "tool";
}

function differenceOfCalls(a: ToolItem, b: ToolItem): string | null | undefined {
  watched(a);
  watched(b);
  if (a.name !== b.name) return `${wordsOf(a, "A")}; ${wordsOf(b, "B")}`;
  if (a.input === undefined || b.input === undefined) return undefined; // still being written
  if (canonical(a.input) !== canonical(b.input)) return `${wordsOf(a, "A")}; ${wordsOf(b, "B")}`;
  if (a.thread !== null && b.thread !== null) {
    const [one, other] = [watched(a.thread), watched(b.thread)];
    const message = differenceOf(one.items, other.items, a.ended !== null, b.ended !== null);
    if (message !== null) return message && `in ${one.agent}: ${message}`;
  }
  if (a.ended === null || b.ended === null) return undefined; // its outcome is not known
  if (a.phase !== b.phase) return `${a.name} ${OUTCOMES[a.phase]} in A and ${OUTCOMES[b.phase]} in B`;
  if (a.thread !== null && b.thread !== null) return null; // the result has ids of the sub-agents' sessions
  const [one, other] = [textOf(a.result).trim(), textOf(b.result).trim()];
  if (one === other) return null;
  const at = firstOther(one, other);
  return `${a.name} gives A ${excerpt(one, at)} and B ${excerpt(other, at)}`;
}

/** What became of a call, in words. */
const OUTCOMES: Readonly<Record<ToolPhase, string>> = {
  writing: "was not complete",
  asking: "was not answered",
  running: "did not end",
  done: "succeeded",
  failed: "failed",
  denied: "was denied",
  stopped: "was stopped",
};

/** Returns the place of the first character in which two texts differ. */
function firstOther(one: string, other: string): number {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at++;
  return at;
}

function differenceOfTexts(a: TextItem, b: TextItem): string | null | undefined {
  const [one, other] = [watched(a).text.trim(), watched(b).text.trim()];
  if (one === other) return a.done && b.done ? null : undefined;
  if (!a.done && other.startsWith(one) || !b.done && one.startsWith(other)) return undefined;
  const at = firstOther(one, other);
  return `A writes ${excerpt(one, at)}; B writes ${excerpt(other, at)}`;
}

/** Returns the words of a text around a place. */
function excerpt(text: string, at: number): string {
  const start = at < 30 ? 0 : at - 20;
  const end = at + 60;
  const part = text.slice(start, end).replace(/\s+/g, " ");
  return `“${start > 0 ? "…" : ""}${part}${end < text.length ? "…" : ""}”`;
}

function wordsOf(act: Act | undefined, side: string): string {
  if (!act) return `${side} does nothing more`;
  if (act.kind === "tool") {
    const input = canonical(act.input) ?? "";
    return `${side} calls ${act.name} ${input.length > 100 ? `${input.slice(0, 99)}…` : input}`.trimEnd();
  }
  return `${side} writes ${excerpt(act.text.trim(), 0)}`;
}

/** Inputs as text, which are compared again in each frame of a stream. */
const canonical_texts = new WeakMap<object, string>();

/** Returns a value as JSON with the names of objects in order. */
function canonical(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  let text = canonical_texts.get(value);
  if (text === undefined) canonical_texts.set(value, text = sorted(value));
  return text;
}

function sorted(value: object): string {
  return JSON.stringify(
    value,
    (_, part) =>
      typeof part !== "object" || part === null || Array.isArray(part)
        ? part
        : Object.fromEntries(Object.entries(part).sort(([a], [b]) => a < b ? -1 : 1)),
  );
}
