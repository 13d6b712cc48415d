/** What OpenAI and the servers that resemble it share: errors, schemas, keys, lists of models. */
import type { LanguageModelV4CallOptions } from "@ai-sdk/provider";
import type { JsonObject, LLMErrorType } from "preamp/base";
import type { CallSettings, Degradations, ListedModel, ProviderSettings } from "preamp/provider";
import { strictSchema } from "./strict_schema.ts";
import { headersOf, type LLMErrorFacts } from "./vendor.ts";

/** Codes and types of errors. A code that is not here is classified by status and message. */
const BY_CODE: ReadonlyMap<unknown, LLMErrorType> = new Map(Object.entries<LLMErrorType>({
  rate_limit_exceeded: "RateLimitError",
  context_length_exceeded: "ContextLengthError",
  exceed_context_size_error: "ContextLengthError", // llama.cpp
  string_above_max_length: "ContextLengthError",
  insufficient_quota: "QuotaExceededError",
  billing_hard_limit_reached: "QuotaExceededError",
  billing_not_active: "QuotaExceededError",
  invalid_api_key: "AuthenticationError",
  unsupported_country_region_territory: "AccessDeniedError",
  model_not_found: "NotFoundError",
  content_filter: "ContentFilterError",
  content_policy_violation: "ContentFilterError",
  image_content_policy_violation: "ContentFilterError",
  bio_policy: "ContentFilterError",
  cyber_policy: "ContentFilterError",
  misalignment_policy_violation: "ContentFilterError",
  server_error: "ProviderUnavailableError",
  internal_error: "ProviderUnavailableError",
  server_is_overloaded: "ProviderUnavailableError",
  slow_down: "ProviderUnavailableError",
}));

/** One request with more tokens than the limit of a minute never passes, however long the wait. */
const TOO_LARGE = /request too large|larger than .{0,40}tokens per min/i;
const TOO_LONG = /context (?:length|window|size)|maximum (?:prompt|context) length|too many tokens/i;
const FILTERED = /flagged as potentially violating|usage polic/i;

/** Returns what an error of OpenAI, or of a server like it, means. */
export function classify(
  status: number,
  message: string,
  { code, type, n_ctx, n_prompt_tokens }: JsonObject,
): LLMErrorFacts | undefined {
  if (status === 401) return undefined;
  const known = [code, type].map((one) => BY_CODE.get(one)).find((one) => one !== undefined);
  if (typeof n_ctx === "number") { // llama.cpp
    return { type: "ContextLengthError", limit_tokens: n_ctx, requested_tokens: Number(n_prompt_tokens) };
  }
  if (TOO_LARGE.test(message)) return { type: "ContextLengthError" };
  if (known) return { type: known };
  if (status >= 500 || status === 429) return undefined;
  return TOO_LONG.test(message)
    ? { type: "ContextLengthError" }
    : FILTERED.test(message)
    ? { type: "ContentFilterError" }
    : undefined;
}

/** Returns the form of an answer, and whether the API enforces it; reports what it does not enforce. */
export function formatOf(
  { response_format: wanted }: CallSettings,
  degradations: Degradations,
): { responseFormat?: NonNullable<LanguageModelV4CallOptions["responseFormat"]>; is_strict: boolean } {
  if (wanted?.type !== "json_schema") return { is_strict: false };
  const schema = wanted.schema as JsonObject;
  if (schema.type !== "object") {
    degradations.add("response_format json_schema", "the schema must be that of an object", "instruction");
    return { responseFormat: { type: "text" }, is_strict: false };
  }
  const name = typeof schema.title === "string"
    ? schema.title.replace(/[^a-zA-Z0-9_-]/g, "_").slice(0, 64)
    : "";
  const format = { type: "json" as const, name: name || "answer" };
  if (wanted.strict === false) return { responseFormat: { ...format, schema }, is_strict: false };
  const strict = strictSchema(schema);
  if ("schema" in strict) return { responseFormat: { ...format, schema: strict.schema }, is_strict: true };
  degradations.add("response_format json_schema, strict", strict.problem, "not strict");
  return { responseFormat: { ...format, schema }, is_strict: false };
}

/**
 * Returns the schema of a tool's input as OpenAI takes it: an object with `properties`, some of them
 * required.
 */
export function functionSchema({ properties = {}, required, ...schema }: JsonObject): JsonObject {
  const names = Array.isArray(required)
    ? required.filter((name) => Object.hasOwn(properties as object, name))
    : [];
  return { ...schema, properties, ...(names.length > 0 ? { required: names } : {}) };
}

/** Returns the headers with the key of the plan, and its own ones. */
export function authorization(settings: ProviderSettings): Record<string, string> {
  const { api_key } = settings;
  return { ...(api_key === undefined ? {} : { authorization: `Bearer ${api_key}` }), ...headersOf(settings) };
}

/** Reports that the API has no budget. */
export function noBudget(budget: number, degradations: Degradations): void {
  degradations.add(
    `thinking_budget ${budget}`,
    "OpenAI's API has no budget for thinking; use reasoning_effort",
  );
}

/** Returns a model of the list; servers name its sizes differently. */
export function listed(model: JsonObject): ListedModel | undefined {
  const { id, name, top_provider } = model;
  if (typeof id !== "string" || id === "") return undefined;
  const top = (top_provider ?? {}) as JsonObject;
  const { context_window, context_length, max_model_len, max_context_length, meta } = model;
  const n_ctx = (meta as JsonObject | undefined)?.n_ctx; // llama.cpp
  const window = count(context_window, context_length, max_model_len, max_context_length, n_ctx);
  const output = count(model.max_completion_tokens, top.max_completion_tokens, model.max_output_tokens);
  return {
    id,
    ...(typeof name === "string" && name !== "" ? { display_name: name } : {}),
    ...(window === undefined ? {} : { context_window: window }),
    ...(output === undefined ? {} : { max_output_tokens: output }),
  };
}

function count(...values: unknown[]): number | undefined {
  return values.find((value): value is number => Number.isSafeInteger(value) && Number(value) > 0);
}
