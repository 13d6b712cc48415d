/** Google's models through `@ai-sdk/google`. */
import { createGoogle } from "@ai-sdk/google";
import { isObject, type JsonObject } from "preamp/base";
import type {
  AnswerBlocks,
  Backend,
  CallSettings,
  Degradations,
  ListedModel,
  ProviderSettings,
} from "preamp/provider";
import { bareId, isBeforeGemini3, thinkingOf } from "./google_traits.ts";
import { aiSdkBackend } from "./adapter.ts";
import type { AnswerFacts, ChunkFacts, LLMErrorFacts, Vendor } from "./vendor.ts";
import { GoogleReader } from "./wire/google_reader.ts";

/** Effort → thinking tokens of Gemini 2.5, as in the API's own OpenAI-compatible endpoint. */
const BUDGETS: Readonly<Record<string, number>> = {
  none: 0,
  minimal: 1_024,
  low: 1_024,
  medium: 8_192,
  high: 24_576,
};
const LEVELS = ["minimal", "low", "medium", "high"];

/**
 * Returns the `thinkingConfig` of a call: a level from Gemini 3 on, a number of tokens before. What the model
 * cannot do is replaced by the nearest possible value.
 */
function thinkingConfigOf(
  { model, reasoning_effort, thinking_budget: budget }: CallSettings,
  includeThoughts: boolean,
  degradations: Degradations,
): JsonObject | undefined {
  const thinking = thinkingOf(model);
  const requested = budget === undefined ? reasoning_effort : `thinking_budget ${budget}`;
  if (thinking === "none") {
    if (requested !== undefined && requested !== "none") {
      degradations.add(requested, `${model} does not think`, "no thinking");
    }
    return undefined;
  }
  if (requested === undefined) return { includeThoughts };
  if (thinking === "budget") {
    return { includeThoughts, thinkingBudget: budget ?? BUDGETS[reasoning_effort!] ?? BUDGETS.high };
  }
  const wanted = reasoning_effort ?? Object.keys(BUDGETS).find((effort) => budget! <= BUDGETS[effort]!) ??
    "high";
  const least = Math.max(0, wanted === "none" ? 0 : LEVELS.includes(wanted) ? LEVELS.indexOf(wanted) : 3);
  const levels = thinking.map((level) => level.toLowerCase());
  const thinkingLevel = LEVELS.slice(least).find((level) => levels.includes(level))!; // all models have "high"
  if (thinkingLevel !== requested) {
    const reason = `${model} has the thinking levels ${levels.join(", ")}`;
    degradations.add(requested, reason, `thinking level ${thinkingLevel}`);
  }
  return { includeThoughts, thinkingLevel };
}

/**
 * Returns a schema without `maxItems`, and with names of properties only in `required`: the API refuses a
 * large sum of the first without a reason (googleapis/python-genai#2170), and others of the second.
 */
function schemaOf(schema: JsonObject): JsonObject {
  const { maxItems: _, $schema: __, ...rest } = schema;
  const changed = Object.fromEntries(
    Object.entries(rest).map(([keyword, value]) => [keyword, changedIn(keyword, value)]),
  );
  const { required, properties } = changed;
  if (!Array.isArray(required) || !isObject(properties)) return changed;
  return { ...changed, required: required.filter((name) => Object.hasOwn(properties, String(name))) };
}

const DATA: ReadonlySet<string> = new Set(["const", "default", "enum", "example", "examples", "required"]);
const NAMED: ReadonlySet<string> = new Set(["properties", "$defs", "definitions"]);

function changedIn(keyword: string, value: unknown): unknown {
  if (DATA.has(keyword)) return value;
  if (Array.isArray(value)) return value.map((item) => isObject(item) ? schemaOf(item) : item);
  if (!isObject(value)) return value;
  if (!NAMED.has(keyword)) return schemaOf(value);
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [name, isObject(item) ? schemaOf(item) : item]),
  );
}

/** Returns what of a call excludes its response format. */
function excludedFormat({ model, tools, tool_choice: choice, response_format: format }: CallSettings) {
  if (tools.length === 0 || format === undefined || format.type === "text") return undefined;
  if (choice !== undefined && choice !== "auto" && choice !== "none") return "a required call";
  return isBeforeGemini3(model) ? "tools" : undefined;
}

/** Quotas that a minute's wait does not restore: of a day, or none at all. */
const USED_UP = /per.?day|limit: 0\b|credits? (are|is) depleted|\bspend/i;

function classify(status: number, message: string, { details: list }: JsonObject): LLMErrorFacts | undefined {
  const details = Array.isArray(list) ? list.filter(isObject) : [];
  const facts = `${message} ${JSON.stringify(details)}`;
  if (/input token count .{1,40}exceeds the maximum number of tokens/i.test(message)) {
    return { type: "ContextLengthError" };
  }
  if (status === 400 && /API key (not valid|expired|not found)|API_KEY_INVALID/i.test(facts)) {
    return { type: "AuthenticationError" };
  }
  if (status !== 429) return undefined;
  const delay =
    details.map(({ retryDelay }) => /^(\d+(?:\.\d+)?)s$/.exec(String(retryDelay))?.[1]).find(Boolean) ??
      /retry in (\d+(?:\.\d+)?)s/i.exec(message)?.[1];
  const retry_after = delay === undefined ? undefined : Number(delay);
  if (USED_UP.test(facts)) return { type: "QuotaExceededError", retry_after };
  const passes = retry_after !== undefined || /resource (has been )?exhausted/i.test(message);
  return passes ? { type: "RateLimitError", retry_after } : undefined;
}

/**
 * Adds a call that the API could not read, with the text that the model wrote: it gets an error that it can
 * correct. Reports that another model answered, such as the successor of a retired one; an alias may mean any
 * model.
 */
function finish(blocks: AnswerBlocks, answer: AnswerFacts): void {
  const { requested: id, model, metadata, raw_finish = "", names, degradations } = answer;
  const requested = bareId(id);
  const is_other = model !== undefined && !model.startsWith(requested) && !requested.startsWith(model);
  if (is_other && /^gemini-\d/.test(requested)) {
    degradations.add(requested, "Gemini answered with another model", model);
  }
  if (!/^(MALFORMED_FUNCTION_CALL|UNEXPECTED_TOOL_CALL)$/.test(raw_finish) || blocks.calls().length > 0) {
    return;
  }
  const text = String(metadata.finishMessage ?? "");
  const name = text.replace(/^Malformed function call:/i, "").match(/[\w-]+/g)?.find((word) =>
    names.has(word)
  );
  if (name !== undefined) blocks.addCall({ name: names.toolOf(name), arguments: text });
}

function readChunk({ usageMetadata: usage, modelVersion }: JsonObject): ChunkFacts {
  const model = typeof modelVersion === "string" ? modelVersion : undefined;
  if (!isObject(usage)) return { model };
  const { promptTokenCount = 0, candidatesTokenCount = 0, thoughtsTokenCount = 0 } = usage;
  const output_tokens = Number(candidatesTokenCount) + Number(thoughtsTokenCount);
  return { model, usage: { input_tokens: Number(promptTokenCount), output_tokens } };
}

function listed(
  { name, displayName, inputTokenLimit, outputTokenLimit, ...model }: JsonObject,
): ListedModel | undefined {
  if (typeof name !== "string" || !JSON.stringify(model).includes("generateContent")) return undefined;
  return {
    id: bareId(name),
    ...(displayName ? { display_name: String(displayName) } : {}),
    ...(inputTokenLimit ? { context_window: Number(inputTokenLimit) } : {}),
    ...(outputTokenLimit ? { max_output_tokens: Number(outputTokenLimit) } : {}),
  };
}

/** Returns the backend. */
export function createBackend({ api_key = "", base_url, config }: ProviderSettings): Backend {
  const { include_thoughts = true, api_version = "v1beta", safety_settings } = config;
  const host = (base_url ?? "https://generativelanguage.googleapis.com").replace(/\/v1(alpha|beta)?$/, "");
  const baseURL = `${host}/${api_version}`;
  const vendor: Vendor = {
    key: "google",
    one_text_result: true,
    media: /^image\/(png|jpeg|webp|heic|heif)$|^(audio|video)\/|^application\/pdf$/,
    native_tools: ["googleSearch", "googleMaps", "codeExecution", "urlContext", "fileSearch"],
    schema: schemaOf,
    model: (id, { fetch }) => createGoogle({ apiKey: api_key, baseURL, fetch })(id),
    options: (call, degradations) => {
      const thinkingConfig = thinkingConfigOf(call, include_thoughts === true, degradations);
      const excluded = excludedFormat(call);
      if (excluded !== undefined) {
        const reason = `${call.model} does not combine ${excluded} with a response format`;
        degradations.add(`response_format ${call.response_format!.type}`, reason, "text");
      }
      return {
        reasoning: "provider-default", // see thinkingConfigOf
        ...(excluded === undefined ? {} : { responseFormat: { type: "text" as const } }),
        providerOptions: {
          google: {
            ...(thinkingConfig ? { thinkingConfig } : {}),
            ...(Array.isArray(safety_settings) ? { safetySettings: safety_settings } : {}),
          } as never,
        },
      };
    },
    reader: () => new GoogleReader(),
    facts: { groundingMetadata: "grounding" },
    readChunk,
    classify,
    finish,
    models: () => ({ url: `${baseURL}/models?pageSize=1000`, headers: { "x-goog-api-key": api_key } }),
    listed,
  };
  return aiSdkBackend(vendor);
}
