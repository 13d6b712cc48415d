/** The module's config: its JSON Schema and its checks, which report all problems at once. */
import {
  isObject,
  type JsonObject,
  type JsonSchema,
  ModelInfo,
  parsePrices,
  type Prices,
  PRICES_SCHEMA,
} from "preamp";
import { Findings } from "./findings.ts";
import { ERROR_SCHEMA, readScript, type ScriptEntry, USAGE_SCHEMA } from "./script.ts";

/** The answer after the last entry of the script: the last text again, an error, or the prompt. */
export type After = "repeat" | "error" | "echo";

/** The source of the answers: a script or the default rule. */
export type Answers =
  | { kind: "default" }
  | { kind: "script"; entries: readonly ScriptEntry[]; after: After };

/** A checked config with all defaults. */
export interface MockConfig {
  answers: Answers;
  /** Maximum code points of one text delta. */
  chunk_chars: number;
  /** Maximum tokens of request and answer together. */
  context_window: number;
  /** Maximum tokens of an answer; reported, but not enforced. */
  max_output_tokens: number;
  models: ModelInfo[];
  /** Prices; without them the cost of a call is unknown unless its entry has one. */
  prices?: Prices;
  priority?: number;
}

/** The answer after a script without text. */
export const DEFAULT_TEXT = "Mock response";

const MODEL_SCHEMA: JsonSchema = {
  type: "object",
  required: ["id"],
  properties: {
    id: { type: "string", minLength: 1 },
    display_name: { type: "string" },
    context_window: { type: "integer", minimum: 1 },
    max_output_tokens: { type: "integer", minimum: 1 },
    capabilities: { type: "array", items: { type: "string" } },
    defaults: { type: "object" },
  },
};

/** The config as JSON Schema. */
export const CONFIG_SCHEMA: JsonSchema = {
  type: "object",
  properties: {
    response: { type: "string", description: "The answer to every call." },
    responses: {
      type: "array",
      description: "A script: one entry for each call of the session. A string is {text}.",
      items: {
        anyOf: [{ type: "string" }, {
          type: "object",
          properties: {
            text: { type: "string" },
            thinking: { type: "string" },
            tool_calls: {
              type: "array",
              items: {
                type: "object",
                required: ["name"],
                properties: {
                  name: { type: "string", minLength: 1 },
                  arguments: { type: ["object", "string", "null"] },
                  id: { type: "string" },
                },
              },
            },
            usage: USAGE_SCHEMA,
            delay_ms: { type: "number", minimum: 0 },
            finish_reason: { type: "string" },
            error: ERROR_SCHEMA,
          },
        }],
      },
    },
    after: { enum: ["repeat", "error", "echo"], default: "repeat" },
    chunk_chars: { type: "integer", minimum: 1, default: 20 },
    context_window: { type: "integer", minimum: 1, default: 100_000 },
    max_output_tokens: { type: "integer", minimum: 1, default: 4096 },
    models: { type: "array", items: { anyOf: [{ type: "string", minLength: 1 }, MODEL_SCHEMA] } },
    prices: PRICES_SCHEMA,
    priority: { type: "number" },
    model: { type: "string", description: "Same as default_model; the key that other providers use." },
    default_model: {
      type: "string",
      default: "mock-model",
      description: "Id of the model when models is absent.",
    },
    debug: { type: "boolean", description: "Ignored; accepted for plans for other mocks." },
  },
};

/**
 * Returns the config with its defaults: `chunk_chars` 20, `context_window` 100,000, `max_output_tokens` 4,096, `after` repeat.
 *
 * @throws {PreampError} `module_invalid` with all problems and their paths, such as `config.responses[1].text`.
 */
export function readConfig(config: JsonObject): MockConfig {
  const findings = new Findings();
  const context_window = findings.whole("config.context_window", config.context_window, 1) ?? 100_000;
  const max_output_tokens = findings.whole("config.max_output_tokens", config.max_output_tokens, 1) ?? 4096;
  const priority = findings.number("config.priority", config.priority, Number.MIN_SAFE_INTEGER);
  const settings: MockConfig = {
    answers: readAnswers(config, findings),
    chunk_chars: findings.whole("config.chunk_chars", config.chunk_chars, 1) ?? 20,
    context_window,
    max_output_tokens,
    models: readModels(config, { context_window, max_output_tokens }, findings),
    ...(priority === undefined ? {} : { priority }),
  };
  const prices = readPrices(config.prices, findings);
  if (prices) settings.prices = prices;
  findings.throwIfAny();
  return settings;
}

function readPrices(value: unknown, findings: Findings): Prices | undefined {
  if (value === undefined) return undefined;
  try {
    return parsePrices(value);
  } catch {
    // replaces the SDK's message by one with the path
    findings.add("config.prices", 'must be {input, output, cache_read?, cache_write?} such as "0.30"', value);
    return undefined;
  }
}

function readAnswers(config: JsonObject, findings: Findings): Answers {
  const after = findings.oneOf("config.after", config.after, ["repeat", "error", "echo"]);
  const response = findings.text("config.response", config.response);
  const scripted = config.responses !== undefined;
  if (scripted) {
    if (response !== undefined) {
      findings.add("config.response", "give response or responses, not both", response);
    }
    const entries = readScript("config.responses", config.responses, findings);
    return { kind: "script", entries, after: after ?? "repeat" };
  }
  if (after !== undefined) findings.add("config.after", "needs responses, which may be an empty list", after);
  return response === undefined
    ? { kind: "default" }
    : { kind: "script", entries: [{ text: response }], after: "repeat" };
}

function readModels(
  config: JsonObject,
  window: { context_window: number; max_output_tokens: number },
  findings: Findings,
): ModelInfo[] {
  const named = findings.text("config.model", config.model);
  const fallback = named || findings.text("config.default_model", config.default_model) || "mock-model";
  const models = config.models === undefined ? [fallback] : config.models;
  if (!Array.isArray(models)) {
    findings.add("config.models", "must be a list of model ids or objects with an id", models);
    return [];
  }
  return models.flatMap((model, index) =>
    readModel(`config.models[${index}]`, model, window, findings) ?? []
  );
}

function readModel(
  path: string,
  value: unknown,
  window: { context_window: number; max_output_tokens: number },
  findings: Findings,
): ModelInfo | undefined {
  const fields = typeof value === "string" ? { id: value } : value;
  if (!isObject(fields)) {
    findings.add(path, `must be a model id or an object with an id`, value);
    return undefined;
  }
  const id = fields.id;
  if (typeof id !== "string" || id === "") {
    findings.add(`${path}.id`, "must be a text", id);
    return undefined;
  }
  const { capabilities = ["tools", "streaming"], defaults = {} } = fields;
  if (!Array.isArray(capabilities) || !capabilities.every((item) => typeof item === "string")) {
    findings.add(`${path}.capabilities`, "must be a list of texts", capabilities);
    return undefined;
  }
  if (!isObject(defaults)) {
    findings.add(`${path}.defaults`, "must be an object", defaults);
    return undefined;
  }
  return ModelInfo({
    id,
    display_name: findings.text(`${path}.display_name`, fields.display_name) ?? id,
    context_window: findings.whole(`${path}.context_window`, fields.context_window, 1) ??
      window.context_window,
    max_output_tokens: findings.whole(`${path}.max_output_tokens`, fields.max_output_tokens, 1) ??
      window.max_output_tokens,
    capabilities,
    defaults,
  });
}
