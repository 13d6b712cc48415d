/**
 * Checks values of a document, for the plan and for the policy: texts, lists, values that fit a schema,
 * limits of runs, names of models. A function reports what is wrong as a finding and returns the value
 * only if it is valid.
 */
import { checkConfig } from "../../sdk/config.ts";
import { isObject, type JsonObject, type JsonSchema } from "../../sdk/json.ts";
import type { Findings } from "../../sdk/findings.ts";
import { describe, describeKind, lastStep, type Path } from "../../sdk/value_path.ts";
import type { LimitName, RunLimits } from "../../sdk/contracts.ts";
import { compareDecimal } from "../../sdk/money.ts";

/** Returns `value` if it is an object. */
export function object(
  value: unknown,
  path: Path,
  findings: Findings,
  hint?: string,
): JsonObject | undefined {
  if (isObject(value)) return value;
  findings.error(
    path,
    "type",
    `Cannot read ${lastStep(path)}: must be an object: received ${describeKind(value)}`,
    hint,
  );
  return undefined;
}

/** Returns `value` if it is text that is not blank. */
export function text(value: unknown, path: Path, findings: Findings, hint?: string): string | undefined {
  if (typeof value === "string" && value.trim() !== "") return value;
  findings.error(
    path,
    "type",
    `Cannot read ${lastStep(path)}: must be text: received ${describeKind(value)}`,
    hint,
  );
  return undefined;
}

/**
 * Returns `value` if it fits a JSON Schema, as a module's config is checked. Messages show the value: it must
 * not be a secret.
 */
export function fitting<T>(
  value: unknown,
  schema: JsonObject,
  path: Path,
  findings: Findings,
): T | undefined {
  const before = findings.errors.length;
  checkConfig(value, schema, { findings, path, name: lastStep, show: describe });
  return findings.errors.length === before ? value as T : undefined; // it fits the schema of T
}

/** Returns `value` if it is a list of texts, none blank. */
export function texts(value: unknown, path: Path, findings: Findings, hint?: string): string[] | undefined {
  if (!Array.isArray(value)) {
    findings.error(
      path,
      "type",
      `Cannot read ${lastStep(path)}: must be a list: received ${describe(value)}`,
      hint,
    );
    return undefined;
  }
  const all = value.map((item, index) => text(item, [...path, index], findings, hint));
  return all.every((item) => item !== undefined) ? all : undefined;
}

/** Smallest duration that a plan, a request or the policy may set, in seconds. */
export const MIN_DURATION_S = 0.001;

const RUN_LIMIT_SCHEMAS: Readonly<Record<LimitName, JsonSchema>> = {
  max_iterations: { type: "integer", minimum: 1, description: "Calls of the model, those of sub-agents too" },
  max_tool_calls: { type: "integer", minimum: 0, description: "Calls of tools; with 0 no tool runs" },
  max_total_tokens: { type: "integer", minimum: 1, description: "Tokens of all requests and answers" },
  max_cost_usd: {
    type: "string",
    format: "decimal",
    description: 'US dollars as text, such as "0.50"; every call needs a price',
  },
  max_duration_s: { type: "number", minimum: MIN_DURATION_S, description: "Seconds of the whole run" },
};

/** Schema of `limits`. */
export const LIMITS_SCHEMA: JsonSchema = {
  type: "object",
  properties: {
    ...RUN_LIMIT_SCHEMAS,
    on_limit: {
      type: "string",
      enum: ["end", "pause"],
      default: "end",
      description: "What a reached limit does: it ends the run, or waits for a person",
    },
  },
  additionalProperties: false,
};

/** Names of the limits, in display order. */
export const LIMIT_NAMES = Object.keys(RUN_LIMIT_SCHEMAS) as readonly LimitName[];

/**
 * Returns a negative number, 0 or a positive number as one value of a limit is below, equal to or above
 * another.
 */
export function compareLimit(a: string | number, b: string | number): number {
  return typeof a === "number" && typeof b === "number" ? a - b : compareDecimal(String(a), String(b));
}

/** Returns the limits that are set; none if one is wrong. */
export function checkLimits(value: unknown, path: Path, findings: Findings): Partial<RunLimits> {
  const fields = object(value, path, findings, 'write limits: {max_tool_calls: 40, max_cost_usd: "0.50"}');
  if (!fields) return {};
  return fitting<Partial<RunLimits>>(fields, LIMITS_SCHEMA, path, findings) ?? {};
}

/** The form, for messages. */
export const MODEL_FORM = "PROVIDER or PROVIDER/MODEL, such as anthropic/claude-sonnet-5-5";

/**
 * A provider, and one of its models, whose id may contain slashes and colons. Without `$`, because the text
 * becomes part of a config, where it could begin a variable.
 */
const FORM = /^([a-z0-9][a-z0-9-]{0,63})(?:\/([\x21-\x23\x25-\x7e]{1,200}))?$/;

/**
 * Returns provider and model; null for text of another form. A model that is absent is the provider's
 * default.
 */
export function readModelName(text: string): { provider: string; model?: string } | null {
  const [, provider, model] = FORM.exec(text) ?? [];
  if (provider === undefined) return null;
  return model === undefined ? { provider } : { provider, model };
}
