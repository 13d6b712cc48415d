/** The settings that `context-summarizing` has in addition to those of `context-simple`, and their checks. */
import { type JsonObject, PreampError } from "preamp";

/** The checked settings. */
export interface SummaryConfig {
  /** Name of the provider that writes summaries; null = the request's provider. */
  readonly summary_provider: string | null;
  /** Maximum tokens of the summary. */
  readonly summary_max_tokens: number;
  /** Maximum tokens of messages in one call, or a quarter of the provider's window if that is less. */
  readonly summary_chunk_tokens: number;
  /** Maximum model calls after one compaction. */
  readonly summary_max_calls: number;
  /** Timeout in seconds of all calls after one compaction together. */
  readonly summary_timeout_s: number;
}

const WHOLE = { type: "integer", minimum: 1 } as const;

/** JSON Schema of these settings. */
export const SUMMARY_PROPERTIES = {
  summary_provider: { type: ["string", "null"], default: null },
  summary_max_tokens: { ...WHOLE, default: 1000 },
  summary_chunk_tokens: { ...WHOLE, default: 12_000 },
  summary_max_calls: { ...WHOLE, default: 4 },
  summary_timeout_s: { ...WHOLE, default: 60 },
};

/** Returns the settings with defaults. @throws {PreampError} `module_invalid` with all problems in `details`. */
export function parseSummaryConfig(config: JsonObject): SummaryConfig {
  const details: { path: string; message: string }[] = [];
  const values: JsonObject = {};
  for (const [name, rule] of Object.entries(SUMMARY_PROPERTIES)) {
    const value = config[name] === undefined ? rule.default : config[name];
    const valid = name === "summary_provider"
      ? value === null || typeof value === "string"
      : typeof value === "number" && Number.isSafeInteger(value) && value >= 1;
    if (!valid) {
      const expected = name === "summary_provider"
        ? "the name of a provider or null"
        : "a whole number of at least 1";
      const message = `Cannot configure context-summarizing: ${name} must be ${expected}: received ${
        JSON.stringify(value) ?? typeof value
      }`;
      details.push({ path: name, message });
    }
    values[name] = value;
  }
  const [first] = details;
  if (first) throw new PreampError("module_invalid", first.message, { details });
  return values as unknown as SummaryConfig; // just checked
}
