/** The trace of a run: which model calls, tools, sub-agents and waits it had, and when. */
import type { ModelCall, Question, RunTranscript, Thread, ToolItem } from "preamp/client";

/** One thing that took time. */
export interface Span {
  readonly key: string;
  readonly kind: "model" | "tool" | "wait";
  readonly name: string;
  /** What it was about, in a few words. */
  readonly brief: string;
  /** How many sub-agents are above it. */
  readonly depth: number;
  /** Milliseconds since the epoch; `ended` is null while it lasts. */
  readonly started: number;
  readonly ended: number | null;
  /** Entry that began it, and the one that says most of it. */
  readonly seq: number;
  readonly detail_seq: number;
  /** Tokens and dollars of a model call; of a tool with a sub-agent, of all calls below it. */
  readonly tokens: number | null;
  readonly cost_usd: number | null;
  readonly style: "" | "failed" | "waiting";
}

/** Returns the spans of a run in the order in which they began, those of a sub-agent below its tool call. */
export function spansOf(transcript: RunTranscript): Span[] {
  const { thread, calls } = transcript;
  return thread === null ? [] : ofThread(thread, 0, Map.groupBy(calls, ({ session_id }) => session_id));
}

function ofThread(
  { session_id, items }: Thread,
  depth: number,
  calls: ReadonlyMap<string, readonly ModelCall[]>,
): Span[] {
  const groups: Span[][] = (calls.get(session_id) ?? []).map((call) => [ofCall(call, depth)]);
  for (const item of items) {
    if (item.kind === "question") groups.push([ofWait(item.question, item.seq, depth)]);
    if (item.kind !== "tool") continue;
    const below = item.thread ? ofThread(item.thread, depth + 1, calls) : [];
    const asked = item.question ? [ofWait(item.question, item.seq, depth)] : [];
    const has_begun = item.started !== null || item.ended !== null;
    const own = item.phase !== "asking" && has_begun ? [ofTool(item, depth, below), ...below] : below;
    groups.push([...asked, ...own]);
  }
  const begun = groups.filter(({ length }) => length > 0);
  return begun.sort(([a], [b]) => a!.started - b!.started || a!.seq - b!.seq).flat();
}

function ofCall({ seq, provider, started, ended, end_seq, usage, error }: ModelCall, depth: number): Span {
  return {
    key: `call ${seq}`,
    kind: "model",
    name: provider,
    brief: error ?? "",
    depth,
    started: Date.parse(started),
    ended: ended === null ? null : Date.parse(ended),
    seq,
    detail_seq: end_seq ?? seq,
    tokens: usage ? (usage.input_tokens ?? 0) + (usage.output_tokens ?? 0) : null,
    cost_usd: usage?.cost_usd ? Number(usage.cost_usd) : null,
    style: error ? "failed" : "",
  };
}

function ofTool(item: ToolItem, depth: number, below: readonly Span[]): Span {
  const { name, phase, seq, end_seq, started, ended, thread } = item;
  const models = below.filter(({ kind }) => kind === "model");
  const at = Date.parse(started ?? ended ?? "");
  return {
    key: `tool ${item.key}`,
    kind: "tool",
    name: thread?.agent ? `${name} → ${thread.agent}` : name,
    brief: briefOf(item),
    depth,
    started: at,
    ended: ended === null ? null : Date.parse(ended),
    seq,
    detail_seq: end_seq ?? seq,
    tokens: models.length > 0 ? sum(models, "tokens") : null,
    cost_usd: models.some(({ cost_usd }) => cost_usd !== null) ? sum(models, "cost_usd") : null,
    style: phase === "failed" || phase === "denied" ? "failed" : "",
  };
}

function ofWait(question: Question, seq: number, depth: number): Span {
  const { id, created_at, decided_at, status } = question;
  return {
    key: `wait ${id}`,
    kind: "wait",
    name: "a person",
    brief: question.prompt,
    depth,
    started: Date.parse(created_at),
    ended: decided_at === undefined ? null : Date.parse(decided_at),
    seq,
    detail_seq: seq,
    tokens: null,
    cost_usd: null,
    style: status === "denied" ? "failed" : "waiting",
  };
}

function sum(spans: readonly Span[], field: "tokens" | "cost_usd"): number {
  return spans.reduce((total, span) => total + (span[field] ?? 0), 0);
}

/** Returns the first text of a call's input in one line; of a failed call, the reason. */
function briefOf({ phase, input, result }: ToolItem): string {
  const value = phase === "failed" || phase === "denied"
    ? result
    : Object.values((input ?? {}) as Record<string, unknown>)[0];
  const text = typeof value === "string" ? value : value === undefined ? "" : JSON.stringify(value);
  return text.slice(0, 120).replace(/\s+/g, " ");
}
