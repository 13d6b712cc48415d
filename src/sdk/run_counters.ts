/** Counters of a log: of a run, and of a session over all of its runs. */
import { isObject, type JsonObject } from "./json.ts";
import { sumCostUsd } from "./money.ts";

/** The counters of an empty log. */
const NO_COUNTS = {
  total_messages: 0,
  /** Answered provider calls. */
  turn_count: 0,
  /** Executed calls, without denied, unknown, invalid and refused ones. */
  tool_invocations: 0,
  tool_successes: 0,
  tool_failures: 0,
  total_input_tokens: 0,
  total_output_tokens: 0,
  total_tokens: 0,
  cache_read_tokens: 0,
  cache_write_tokens: 0,
  /** Decimal string; null = unknown. */
  cost_usd: null as string | null,
  compactions: 0,
  /** Level of the last compaction, from 1; 0 = none yet. */
  compaction_level: 0,
};

/** Counters of a log; `runs/run/run_projection.ts` extends them to the run object. */
export type Counters = typeof NO_COUNTS;

/** Returns the counters of an empty log. */
export function emptyCounters(): Counters {
  return { ...NO_COUNTS };
}

/** Types of `tool:error` for calls that were not executed. */
const NEVER_RAN: ReadonlySet<unknown> = new Set(["tool_not_found", "tool_input_invalid", "limit_reached"]);

/** Adds one entry to the counters. */
export function count(
  counters: Counters,
  entry: { readonly event: string; readonly data: JsonObject },
): void {
  const { data } = entry;
  switch (entry.event) {
    case "context:message":
      counters.total_messages++;
      break;
    case "provider:response":
      counters.turn_count++;
      if (isObject(data.usage)) countUsage(counters, data.usage);
      break;
    case "provider:error": // after a part of the answer
    case "provider:retry":
    case "llm:stream_aborted":
      if (isObject(data.usage)) countUsage(counters, data.usage);
      break;
    case "tool:post":
      counters.tool_invocations++;
      if (isObject(data.result) && data.result.success === false) counters.tool_failures++;
      else counters.tool_successes++;
      break;
    case "tool:error":
      counters.tool_failures++;
      if (!NEVER_RAN.has(isObject(data.error) ? data.error.type : undefined)) counters.tool_invocations++;
      break;
    case "context:compaction":
      counters.compactions++;
      counters.compaction_level = number(data.strategy_level);
      break;
  }
}

function countUsage(counters: Counters, usage: Record<string, unknown>): void {
  counters.total_input_tokens += number(usage.input_tokens);
  counters.total_output_tokens += number(usage.output_tokens);
  counters.total_tokens += number(usage.total_tokens);
  counters.cache_read_tokens += number(usage.cache_read_tokens);
  counters.cache_write_tokens += number(usage.cache_write_tokens);
  counters.cost_usd = sumCostUsd([
    counters.cost_usd,
    typeof usage.cost_usd === "string" ? usage.cost_usd : null,
  ]);
}

function number(value: unknown): number {
  return typeof value === "number" ? value : 0;
}
