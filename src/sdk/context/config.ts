/** Settings of `context-simple`, with Amplifier's names and defaults; checked once, at mount. */
import { type JsonObject, PreampError } from "../mod.ts";
import type { TokenMeter } from "./token_counter.ts";

/** Length of the notice. */
export type NoticeVerbosity = "minimal" | "normal" | "verbose";

/** The module's configuration with every default filled in. */
export interface Config {
  /** Tokens of a request when the provider's window is unknown; an upper limit when the plan sets it. */
  readonly max_tokens: number;
  /** Whether the plan itself set `max_tokens`. */
  readonly max_tokens_is_limit: boolean;
  /** Share of the effective budget from which a view is compacted. */
  readonly compact_threshold: number;
  /** Share of the effective budget that a compaction aims for. */
  readonly target_usage: number;
  /** Share of the latest messages that are not left out. */
  readonly protected_recent: number;
  /** Number of the latest tool results that are neither truncated nor left out. */
  readonly protected_tool_results: number;
  /** Characters kept from the beginning of a truncated tool result. */
  readonly truncate_chars: number;
  /** Whether a compacted view ends with a notice. */
  readonly compaction_notice_enabled: boolean;
  /** Tokens kept free for the notice. */
  readonly compaction_notice_token_reserve: number;
  /** Length of the notice. */
  readonly compaction_notice_verbosity: NoticeVerbosity;
  /** Lowest level that adds a notice. */
  readonly compaction_notice_min_level: number;
  /** Share of the model's `max_output_tokens` that is kept free. */
  readonly output_reserve_fraction: number;
  /** Maximum UTF-8 bytes of one tool result in a view; null = no cap. */
  readonly max_tool_result_bytes: number | null;
  /** `estimate`; `calibrated`: the estimate corrected by reported usage; `exact`: o200k's tokenizer. */
  readonly token_meter: TokenMeter;
  /** Whether the tool `context_recall` is mounted, and markers name its handles. */
  readonly recall: boolean;
  /** Whether views for providers with prompt caching contain `metadata.cache_control`. */
  readonly cache_breakpoints: boolean;
}

const WHOLE = { type: "integer" } as const;

/** JSON Schema of the configuration; the checks below use it. */
export const CONFIG_SCHEMA = {
  type: "object",
  properties: {
    max_tokens: { ...WHOLE, minimum: 1, default: 200_000 },
    compact_threshold: { type: "number", exclusiveMinimum: 0, maximum: 1, default: 0.92 },
    target_usage: { type: "number", exclusiveMinimum: 0, maximum: 1, default: 0.5 },
    protected_recent: { type: "number", minimum: 0, maximum: 1, default: 0.3 },
    protected_tool_results: { ...WHOLE, minimum: 0, default: 5 },
    truncate_chars: { ...WHOLE, minimum: 0, default: 250 },
    compaction_notice_enabled: { type: "boolean", default: true },
    compaction_notice_token_reserve: { ...WHOLE, minimum: 0, default: 800 },
    compaction_notice_verbosity: { enum: ["minimal", "normal", "verbose"], default: "normal" },
    compaction_notice_min_level: { ...WHOLE, minimum: 1, maximum: 8, default: 1 },
    output_reserve_fraction: { type: "number", minimum: 0, maximum: 1, default: 0.5 },
    max_tool_result_bytes: { type: ["integer", "null"], minimum: 1024, default: 131_072 },
    token_meter: { enum: ["estimate", "calibrated", "exact"], default: "calibrated" },
    recall: { type: "boolean", default: false },
    cache_breakpoints: { type: "boolean", default: true },
  },
};

type Rule = {
  readonly type?: string | readonly string[];
  readonly enum?: readonly string[];
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
  readonly maximum?: number;
  readonly default: unknown;
};

/**
 * Returns the configuration with defaults filled in.
 *
 * @throws {PreampError} `module_invalid` for a value of the wrong type or out of range, and for a `target_usage` that is not
 * below `compact_threshold`; `details` has every finding.
 */
export function parseConfig(values: JsonObject, id = "context-simple"): Config {
  // perf: most plans set nothing, and every session mounts a context
  return Object.keys(values).length === 0
    ? defaults ??= Object.freeze(readConfig(values, id))
    : readConfig(values, id);
}

/** Cached configuration of a plan that sets nothing. */
let defaults: Config | undefined;

function readConfig(input: JsonObject, id: string): Config {
  const details: { path: string; message: string }[] = [];
  const values: JsonObject = {};
  for (const [name, rule] of Object.entries<Rule>(CONFIG_SCHEMA.properties)) {
    const value = input[name] === undefined ? rule.default : input[name];
    const problem = problemOf(value, rule);
    if (problem) details.push({ path: name, message: sentence(id, name, problem, value) });
    values[name] = value;
  }
  const config = { ...values, max_tokens_is_limit: input.max_tokens !== undefined } as unknown as Config; // just checked
  if (details.length === 0 && config.target_usage >= config.compact_threshold) {
    const problem = `must be below compact_threshold (${config.compact_threshold})`;
    details.push({
      path: "target_usage",
      message: sentence(id, "target_usage", problem, config.target_usage),
    });
  }
  const first = details[0];
  if (first) throw new PreampError("module_invalid", first.message, { details });
  return config;
}

function sentence(id: string, name: string, problem: string, value: unknown): string {
  return `Cannot configure ${id}: ${name} ${problem}: received ${JSON.stringify(value) ?? typeof value}`;
}

function problemOf(value: unknown, rule: Rule): string | null {
  if (rule.enum) {
    return rule.enum.includes(value as string) ? null : `must be one of ${rule.enum.join(", ")}`; // includes compares only
  }
  const types = typeof rule.type === "string" ? [rule.type] : rule.type ?? [];
  if (value === null && types.includes("null")) return null;
  if (types.includes("boolean")) return typeof value === "boolean" ? null : "must be true or false";
  if (typeof value !== "number" || !Number.isFinite(value)) return "must be a number";
  if (types.includes("integer") && !Number.isSafeInteger(value)) return "must be a whole number";
  if (rule.minimum !== undefined && value < rule.minimum) return `must be at least ${rule.minimum}`;
  if (rule.exclusiveMinimum !== undefined && value <= rule.exclusiveMinimum) {
    return `must be above ${rule.exclusiveMinimum}`;
  }
  if (rule.maximum !== undefined && value > rule.maximum) return `must be at most ${rule.maximum}`;
  return null;
}
