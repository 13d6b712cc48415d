/** Observers of runs: read log entries as they are stored, and record metrics, spans, or both. */
import type { Entry } from "../kernel/host.ts";
import { isObject, type JsonObject } from "../sdk/json.ts";
import { LLM_ERROR_TYPES } from "../sdk/llm_errors.ts";
import type { Metrics } from "./metrics.ts";
import { OpenModelCalls } from "./open_model_calls.ts";
import type { RunObserver, RunsDeps } from "../runs/ports.ts";

/** Names of the built-in providers. Plans may add providers with names of their own. */
const PROVIDERS = (
  "anthropic azure deepseek gemini groq mistral mock ollama openai openrouter replay xai"
).split(" ");
const MAX_OTHER_PROVIDERS = 32;
const MAX_STOP_REASONS = 64;
const OPEN = ["queued", "running", "awaiting_approval", "awaiting_limit"] as const;
const ENDED = ["completed", "incomplete", "denied", "cancelled", "failed"];

const TOKENS = [
  ["input", "input_tokens"],
  ["output", "output_tokens"],
  ["cache_read", "cache_read_tokens"],
  ["cache_write", "cache_write_tokens"],
  ["reasoning", "reasoning_tokens"],
] as const;

/** Records the metrics of all runs of a process, and logs a line for each that ends. */
export class RunsMetrics {
  readonly metrics: Metrics;
  readonly log: RunsDeps["log"];
  readonly provider: BoundedLabel = new BoundedLabel(PROVIDERS, MAX_OTHER_PROVIDERS);
  readonly error: BoundedLabel = new BoundedLabel(["ok", ...LLM_ERROR_TYPES], 0);
  readonly status: BoundedLabel = new BoundedLabel(ENDED, 0);
  readonly stop_reason: BoundedLabel = new BoundedLabel([], MAX_STOP_REASONS);
  readonly #open = new Set<RunMetrics>();

  constructor(metrics: Metrics, log: RunsDeps["log"]) {
    this.metrics = metrics;
    this.log = log;
    metrics.watch("preamp_runs", () => {
      const statuses = [...this.#open].map(({ status }) => status);
      return OPEN.map((status) => ({
        labels: { status },
        value: statuses.filter((one) => one === status).length,
      }));
    });
  }

  /** Creates the reader of one run. */
  run(): RunMetrics {
    return new RunMetrics(this, this.#open);
  }
}

/** Records the metrics of one run. */
class RunMetrics {
  readonly #runs: RunsMetrics;
  readonly #open: Set<RunMetrics>;
  /** Timestamp of the start of open tool calls. */
  readonly #started = new Map<string, string>();
  /** Timestamps of the starts of open model calls. */
  readonly #requested = new OpenModelCalls<string>();
  /** Status of the run while it is open. */
  status = "running";

  constructor(runs: RunsMetrics, open: Set<RunMetrics>) {
    this.#runs = runs;
    this.#open = open;
  }

  /** Reads entries in the order of the log. */
  stored(entries: readonly Entry[]): void {
    for (const entry of entries) this.#read(entry);
  }

  /** The run has ended here; also called when it is left to another process. */
  ended(): void {
    this.#open.delete(this);
  }

  #read(entry: Entry): void {
    const { data } = entry;
    switch (entry.event) {
      case "run:start":
      case "run:status":
        this.status = textOf(data.status);
        this.#open.add(this);
        break;
      case "run:end":
        if (isObject(data.run)) this.#readRun(data.run);
        break;
      case "provider:request":
        this.#requested.add(entry, entry.ts);
        break;
      case "provider:response":
        this.#endModelCall(entry, "ok");
        if (isObject(data.usage)) this.#readUsage(data.provider, data.usage);
        break;
      case "provider:error":
        this.#endModelCall(entry, isObject(data.error) ? data.error.type : undefined);
        if (isObject(data.usage)) this.#readUsage(data.provider, data.usage);
        break;
      case "provider:retry":
        this.#runs.metrics.record("preamp_model_retries_total", {
          provider: this.#runs.provider.value(data.provider),
        });
        if (isObject(data.usage)) this.#readUsage(data.provider, data.usage);
        break;
      case "tool:pre":
        this.#started.set(callKey(entry), entry.ts);
        if (entry.verdict?.action === "deny") this.#endToolCall(entry, "denied");
        break;
      case "approval:granted": // the wait for a person is not part of the call
        if (this.#started.has(callKey(entry))) this.#started.set(callKey(entry), entry.ts);
        break;
      case "approval:denied":
        this.#endToolCall(entry, "denied");
        break;
      case "tool:post":
        this.#endToolCall(entry, isObject(data.result) && data.result.success === false ? "failed" : "ok");
        break;
      case "tool:error":
        this.#endToolCall(entry, "error");
        break;
    }
  }

  #readRun({ id, session_id, status, stop_reason, created_at, ended_at, usage, error }: JsonObject): void {
    const { metrics, log, status: statuses, stop_reason: reasons } = this.#runs;
    const labels = { status: statuses.value(status) };
    const seconds = secondsBetween(textOf(created_at), textOf(ended_at));
    metrics.record("preamp_run_duration_seconds", labels, seconds);
    metrics.record("preamp_runs_ended_total", { ...labels, stop_reason: reasons.value(stop_reason) });
    const { input_tokens, output_tokens, cost_usd } = isObject(usage) ? usage : {};
    const facts: JsonObject = {
      ...{ run_id: textOf(id), session_id: textOf(session_id), status: textOf(status) },
      ...{ stop_reason: textOf(stop_reason), duration_s: seconds },
      ...(isObject(error) ? { code: textOf(error.code) } : {}),
      ...(typeof input_tokens === "number" ? { input_tokens } : {}),
      ...(typeof output_tokens === "number" ? { output_tokens } : {}),
      ...(typeof cost_usd === "string" ? { cost_usd } : {}),
    };
    log("info", "run_ended", facts);
  }

  #endModelCall(entry: Entry, outcome: unknown): void {
    const { metrics, provider, error } = this.#runs;
    const { ts, data } = entry;
    const seconds = secondsBetween(this.#requested.take(entry) ?? ts, ts); // a module's own call has no request
    metrics.record("preamp_model_retries_total", { provider: provider.value(data.provider) }, 0);
    metrics.record("preamp_model_call_duration_seconds", {
      provider: provider.value(data.provider),
      outcome: error.value(outcome),
    }, seconds);
  }

  #readUsage(name: unknown, usage: JsonObject): void {
    const { metrics } = this.#runs;
    const provider = this.#runs.provider.value(name);
    for (const [kind, field] of TOKENS) {
      const tokens = usage[field];
      metrics.record(
        "preamp_model_tokens_total",
        { provider, kind },
        typeof tokens === "number" ? tokens : 0,
      );
    }
    const cost = Number(textOf(usage.cost_usd)); // a sum for watching; the exact one is in the log
    if (typeof usage.cost_usd === "string") metrics.record("preamp_model_cost_usd_total", { provider }, cost);
  }

  /** Records the end of a tool call, once. */
  #endToolCall(entry: Entry, outcome: "ok" | "failed" | "error" | "denied"): void {
    const seconds = this.#secondsSince(callKey(entry), entry.ts);
    if (seconds === null && outcome !== "error") return; // an error may precede the start: a call of an unknown tool
    this.#runs.metrics.record("preamp_tool_call_duration_seconds", { outcome }, seconds ?? 0);
  }

  /** Returns the seconds since the start of an open call, and closes it; null without such a call. */
  #secondsSince(key: string, ts: string): number | null {
    const started = this.#started.get(key);
    if (started === undefined) return null;
    this.#started.delete(key);
    return secondsBetween(started, ts);
  }
}

/**
 * Returns the seconds between two timestamps; 0 for a clock that was set back, NaN if one is not a timestamp.
 */
function secondsBetween(start: string, end: string): number {
  return start === end ? 0 : Math.max(0, Date.parse(end) - Date.parse(start)) / 1000;
}

/** Returns a key for a tool call: ids of calls are unique in one session only. */
function callKey({ session_id, data }: Entry): string {
  return `${session_id} ${textOf(data.tool_call_id)}`;
}

/** Value of a label beyond the limit. */
const OTHER = "other";
/** Longest value. */
const MAX_CHARS = 64;

/** The values of one label: known ones, the first `max` others, and `other` for the rest. */
class BoundedLabel {
  readonly #values: Set<string>;
  #free: number;

  constructor(known: Iterable<string>, max: number) {
    this.#values = new Set(known);
    this.#free = max;
  }

  /** Returns the value, or `other` when there are too many or it is not a short text. */
  value(text: unknown): string {
    if (typeof text !== "string" || text === "" || text.length > MAX_CHARS) return OTHER;
    if (this.#values.has(text)) return text;
    if (this.#free === 0) return OTHER;
    this.#free--;
    this.#values.add(text);
    return text;
  }
}

/** Returns a value of a log entry if it is a text, else an empty one. Modules may emit any JSON. */
export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

type CreateObserver = NonNullable<RunsDeps["observe"]>;

/** Returns a function that creates the observer of a run; undefined when nothing is observed. */
export function runObservers(
  metrics: Metrics | null,
  tracing: { run: CreateObserver } | null,
  log: RunsDeps["log"],
): CreateObserver | undefined {
  const counted = metrics ? new RunsMetrics(metrics, log) : null;
  if (counted && tracing) {
    return (run): RunObserver => {
      const [count, spans] = [counted.run(), tracing.run(run)];
      return {
        ...spans,
        stored(entries) {
          count.stored(entries);
          spans.stored(entries);
        },
        ended() {
          count.ended();
          spans.ended();
        },
      };
    };
  }
  if (tracing) return (run) => tracing.run(run);
  return counted ? () => counted.run() : undefined;
}
