/** The knobs of `context-summarizing` beside those of `context-simple`; checked once, at mount. */
import { type JsonObject, PreampError } from "preamp";

/** Bounds of what summaries may cost. */
export interface SummaryConfig {
  /** Mounted provider that writes summaries; null = the one of the request. */
  readonly summary_provider: string | null;
  /** Tokens of the summary at the most. */
  readonly summary_max_tokens: number;
  /** Tokens of one part that is summarised at a time; a quarter of the provider's window when that is less. */
  readonly summary_chunk_tokens: number;
  /** Model calls after one compaction. */
  readonly summary_max_calls: number;
  /** Seconds for all calls after one compaction. */
  readonly summary_timeout_s: number;
}

const WHOLE = { type: "integer", minimum: 1 } as const;

/** JSON Schema of these knobs. */
export const SUMMARY_PROPERTIES = {
  summary_provider: { type: ["string", "null"], default: null },
  summary_max_tokens: { ...WHOLE, default: 1000 },
  summary_chunk_tokens: { ...WHOLE, default: 12_000 },
  summary_max_calls: { ...WHOLE, default: 4 },
  summary_timeout_s: { ...WHOLE, default: 60 },
};

/** Returns the knobs with defaults filled in. @throws {PreampError} `module_invalid`, with every finding in `details`. */
export function parseSummaryConfig(given: JsonObject): SummaryConfig {
  const details: { path: string; message: string }[] = [];
  const values: JsonObject = {};
  for (const [name, rule] of Object.entries(SUMMARY_PROPERTIES)) {
    const value = given[name] === undefined ? rule.default : given[name];
    const right = name === "summary_provider"
      ? value === null || typeof value === "string"
      : typeof value === "number" && Number.isSafeInteger(value) && value >= 1;
    if (!right) {
      const wanted = name === "summary_provider"
        ? "the name of a provider or null"
        : "a whole number of at least 1";
      const message = `Cannot configure context-summarizing: ${name} must be ${wanted}: received ${
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
