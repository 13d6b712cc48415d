/** Finds the parameter that a server refused, so that the request can be sent again without it. */
import { isObject, type JsonObject } from "preamp/base";

/** Name in errors → name in `RequestOptions.refused`. Only these are left out. */
const OPTIONAL: Readonly<Record<string, string>> = {
  temperature: "temperature",
  top_p: "top_p",
  stop: "stop",
  reasoning_effort: "reasoning_effort",
  "reasoning.effort": "reasoning_effort",
  "reasoning.summary": "reasoning.summary",
  reasoning: "reasoning",
  include: "include",
  tool_choice: "tool_choice",
  parallel_tool_calls: "parallel_tool_calls",
  response_format: "response_format",
  "text.format": "response_format",
  prompt_cache_key: "prompt_cache_key",
  stream: "stream",
  stream_options: "stream_options",
  max_tokens: "max_tokens",
  max_completion_tokens: "max_completion_tokens",
};

const REFUSAL =
  /unsupported|not supported|does not support|unknown|unrecognized|unexpected|not (?:allowed|permitted|available)|unavailable|extra (?:inputs|fields)|must be verified/i;

/** Maximum characters of a message that are read. */
const MAX_MESSAGE = 2000;

/** Returns the error object of a refused request and its message; undefined for other errors. */
function refusalOf(error: unknown): { stated: JsonObject; message: string } | undefined {
  if (!isObject(error) || error.status !== 400 && error.status !== 422) return undefined;
  const stated = isObject(error.error) ? error.error : {};
  const message = typeof stated.message === "string" ? stated.message : JSON.stringify(stated);
  return { stated, message: message.slice(0, MAX_MESSAGE) };
}

/** Returns the parameter of a body that a server refused as such, or undefined. */
export function refusedParameter(error: unknown, body: JsonObject): string | undefined {
  const refusal = refusalOf(error);
  if (!refusal) return undefined;
  const { stated, message } = refusal;
  const code = typeof stated.code === "string" ? stated.code : "";
  if (!REFUSAL.test(`${code} ${message}`)) return undefined;
  const names = typeof stated.param === "string" ? [stated.param] : mentioned(message);
  return names.filter((name) => Object.hasOwn(OPTIONAL, name) && isIn(body, name)).map((name) =>
    OPTIONAL[name]
  )[0];
}

/** Returns the names in a message: in quotes, or with an underscore. */
function mentioned(message: string): string[] {
  return [...message.matchAll(/['"`]([a-z_.]+)['"`]|\b([a-z]+(?:_[a-z]+)+)\b/g)]
    .map(([, quoted, plain]) => quoted ?? plain ?? "");
}

function isIn(body: JsonObject, name: string): boolean {
  let value: unknown = body;
  for (const key of name.split(".")) {
    if (!isObject(value) || !Object.hasOwn(value, key)) return false;
    value = value[key];
  }
  return true;
}

/** Returns whether a server cannot read the reasoning in a body, for example of another account or model. */
export function refusesReasoning(error: unknown, { input }: JsonObject): boolean {
  if (!isObject(error) || error.status !== 400 || !isObject(error.error) || !Array.isArray(input)) {
    return false;
  }
  const { code, message } = error.error;
  const isRefusal = code === "invalid_encrypted_content" ||
    /encrypted content .{0,80}could not be/i.test(String(message));
  return isRefusal && input.some((item) => isObject(item) && item.type === "reasoning");
}

/** Messages about an answer that may not be as long as requested: its maximum, or window and request (vLLM). */
const OUTPUT_LIMITS: readonly RegExp[] = [
  /supports at most (\d+) completion tokens/i, // OpenAI
  /max(?:_completion)?_tokens\W.{0,60}less than or equal to \W?(\d+)/i, // Groq
  /valid range of max_tokens is \[1, (\d+)\]/i, // DeepSeek
  /max_tokens.{0,60}is too large.*\(\d+ > (\d+) - (\d+)\)/is, // vLLM
];

/** Returns the maximum tokens of an answer that a server states, or undefined for other errors. */
export function statedOutputLimit(error: unknown): number | undefined {
  const refusal = refusalOf(error);
  if (!refusal) return undefined;
  for (const pattern of OUTPUT_LIMITS) {
    const [, limit, used = "0"] = pattern.exec(refusal.message) ?? [];
    if (limit !== undefined) return Math.max(0, Number(limit) - Number(used));
  }
  return undefined;
}
