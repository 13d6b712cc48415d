/** Settings of `context-simple`, with Amplifier's names and defaults; checked once, at mount. */
import { type JsonObject, readConfig } from "../base.ts";
import type { TokenMeter } from "./calibration.ts";

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
  /** `estimate`; `calibrated`: the estimate corrected by reported usage. */
  readonly token_meter: TokenMeter;
  /** Whether the tool `context_recall` is mounted, and markers name its handles. */
  readonly recall: boolean;
  /** Whether views for providers with prompt caching contain `metadata.cache_control`. */
  readonly cache_breakpoints: boolean;
}

const DEFAULT_MAX_TOKENS = 200_000;

const WHOLE = { type: "integer" } as const;

/** JSON Schema of the configuration. */
export const CONFIG_SCHEMA = {
  type: "object",
  properties: {
    max_tokens: {
      ...WHOLE,
      minimum: 1,
      description: `Upper limit of a request; default: the provider's window, or ${DEFAULT_MAX_TOKENS}`,
    },
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
    token_meter: { enum: ["estimate", "calibrated"], default: "calibrated" },
    recall: { type: "boolean", default: false },
    cache_breakpoints: { type: "boolean", default: true },
  },
};

/** Frozen config → its settings, because all runs of a plan share a frozen config. */
const parsed = new WeakMap<JsonObject, { schema: JsonObject; config: Config }>();

/**
 * Returns the configuration with defaults filled in.
 *
 * @param schema The JSON Schema of a context that has more settings, or other defaults.
 * @throws {PreampError} `module_invalid` with all problems and their paths.
 */
export function parseConfig<Settings = unknown>(
  values: JsonObject,
  schema: JsonObject = CONFIG_SCHEMA,
): Config & Settings {
  const known = parsed.get(values);
  if (known?.schema === schema) return known.config as Config & Settings; // the settings of that schema
  const given = readConfig<Config & Settings>(schema, values, (config, refuse) => {
    if (config.target_usage < config.compact_threshold) return;
    refuse(["target_usage"], `must be below compact_threshold (${config.compact_threshold})`);
  });
  const config = {
    ...given,
    max_tokens: given.max_tokens ?? DEFAULT_MAX_TOKENS,
    max_tokens_is_limit: given.max_tokens !== undefined,
  };
  if (Object.isFrozen(values)) parsed.set(values, { schema, config });
  return config;
}
