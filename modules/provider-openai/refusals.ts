/**
 * Reads what a server refused of a request: a parameter, a form of its messages, or the maximum of its
 * answer. The patterns are words of the servers that are named beside them.
 */
import { errorMessage, isObject, type JsonObject } from "preamp/base";
import { MAX_MESSAGE, textOf } from "./errors.ts";

/** Forms of messages that not every server takes; marks among the refused parameters of a model. */
export const FORMS = {
  /** Items of earlier answers, such as reasoning of another account or model (Responses). */
  items: "items of answers",
  /** Ids of calls in another form than nine letters and digits. */
  long_ids: "long ids",
  /** The model's messages without reasoning, such as those of another provider. */
  without_reasoning: "messages without reasoning",
  /** The reasoning in the model's messages. */
  reasoning: "reasoning in messages",
  /** `content: null` beside calls. */
  null_content: "content that is null",
  /** Functions beside reasoning, which Chat Completions of GPT-5.6 and later refuses. */
  reasoning_with_tools: "functions beside reasoning",
  /** A question directly after the results of calls. */
  user_after_tool: "user messages after results",
} as const;

/** Returns the mark of a value of `reasoning_effort` that is refused while others are not. */
export function effortMark(effort: unknown): string {
  return `reasoning_effort ${effort}`;
}

/** Parameters that are left out when a server refuses them. */
const OPTIONAL: ReadonlySet<string> = new Set(
  ("temperature top_p stop reasoning_effort reasoning.summary reasoning include tool_choice parallel_tool_calls " +
    "response_format prompt_cache_key stream stream_options max_tokens max_completion_tokens").split(" "),
);

/** Places in the body of Responses → these names. */
const PLACES: ReadonlyMap<string, string> = new Map([
  ["reasoning.effort", "reasoning_effort"],
  ["text.format", "response_format"],
]);

const REFUSAL = new RegExp(
  "unsupported|not supported|does not support|unknown|unrecognized|unexpected|unavailable|must be (?:one of|['`\"])|" +
    "not (?:allowed|permitted|available)|cannot be combined|incompatible|only .{1,20} is allowed|" +
    "extra (?:inputs|fields)|extra_forbidden",
  "i",
);

/** The server takes the parameter, but not the schema in it. */
const INVALID_SCHEMA = /\binvalid_json_schema\b|\binvalid schema for\b/i;

/** Returns whether a server takes `response_format`, but not the schema in it: another one may pass. */
export function refusesSchema(error: unknown): boolean {
  const text = refusalText(error);
  if (text === undefined) return false;
  const stated: JsonObject = isObject(error) && isObject(error.error) ? error.error : {};
  const all = `${textOf(stated.code) ?? ""} ${textOf(stated.param) ?? ""} ${text}`;
  return /response_format|text\.format/.test(all) && (INVALID_SCHEMA.test(all) || /\.schema\b/.test(all));
}

/**
 * Returns what the server refused of a body: a parameter in it, or one of {@link FORMS}; undefined for other
 * errors.
 */
export function refusedPart(error: unknown, body: JsonObject): string | undefined {
  if (refusesItems(error, body)) return FORMS.items;
  const text = refusalText(error);
  if (text === undefined) return undefined;
  const [form] = FORM_REFUSALS.find(([, refuses]) => refuses(text, messagesOf(body))) ?? [];
  return form ?? refusedParameter(error, text, body);
}

/** Returns what a server says about a refused request, also in its details; undefined for other errors. */
function refusalText(error: unknown): string | undefined {
  if (!isObject(error) || error.status !== 400 && error.status !== 422) return undefined;
  const stated = isObject(error.error) ? error.error : { message: error.error };
  const { message, details, metadata } = stated;
  const raw = isObject(metadata) ? metadata.raw : undefined; // of the model's vendor (OpenRouter)
  const texts = [message, details, raw].flatMap((value) =>
    textOf(value) ?? (isObject(value) || Array.isArray(value) ? JSON.stringify(value) : [])
  );
  return (texts.join(" ") || errorMessage(error)).slice(0, MAX_MESSAGE);
}

function messagesOf({ messages }: JsonObject): JsonObject[] {
  return Array.isArray(messages) ? messages.filter(isObject) : [];
}

type Refuses = (text: string, messages: readonly JsonObject[]) => boolean;

const FORM_REFUSALS: readonly (readonly [form: string, refuses: Refuses])[] = [
  // Mistral
  [FORMS.long_ids, (text) => /tool call id .{0,200}length of 9\b/is.test(text)],
  [FORMS.user_after_tool, (text) => /unexpected role 'user' after role 'tool'/i.test(text)],
  // OpenAI and Azure, also when the request states no effort
  [
    FORMS.reasoning_with_tools,
    (text) =>
      /function tools with reasoning_effort are not supported.*set reasoning_effort to 'none'/is.test(text),
  ],
  // DeepSeek, Moonshot
  [
    FORMS.without_reasoning,
    (text) => /reasoning_content\W.{0,80}(?:missing|must be passed back)/is.test(text),
  ],
  // Groq, Cerebras and Mistral: of another model, or in another field than their own
  [
    FORMS.reasoning,
    (text, messages) =>
      REFUSAL.test(text) && /\breasoning(?:_content|_details|_text)?\b/.test(text) &&
      messages.some((message) => Object.keys(message).some((key) => key.startsWith("reasoning"))),
  ],
  // LM Studio, Ollama
  [
    FORMS.null_content,
    (text, messages) =>
      /content.{0,60}(?:must be a string|should be a valid string|<nil>|got null)/is.test(text) &&
      messages.some(({ content }) => content === null),
  ],
];

function refusedParameter(error: unknown, text: string, body: JsonObject): string | undefined {
  const stated: JsonObject = isObject(error) && isObject(error.error) ? error.error : {};
  const code_and_text = `${textOf(stated.code) ?? ""} ${text}`;
  if (!REFUSAL.test(code_and_text) || INVALID_SCHEMA.test(code_and_text)) return undefined;
  const named = textOf(stated.param);
  // some servers state a kind of error there (Cerebras)
  const names = named !== undefined && (isIn(body, named) || /[.[]/.test(named)) ? [named] : mentioned(text);
  const part = names.filter((name) => isIn(body, name)).map(parameterOf).find((name) => name !== undefined);
  if (part !== "reasoning_effort" || !/supported values are/i.test(text)) return part;
  return effortMark(body.reasoning_effort ?? (isObject(body.reasoning) ? body.reasoning.effort : undefined));
}

/** Returns the names in a message: in quotes, with an underscore, or after "invalid" (Moonshot). */
function mentioned(message: string): string[] {
  const names = [...message.matchAll(/['"`]([a-z_.]+)['"`]|\b([a-z]+(?:_[a-z]+)+)\b|\binvalid ([a-z]+)\b/g)]
    .map((found) => found.slice(1).find((name) => name !== undefined) ?? "");
  return /\bjson mode\b/i.test(message) ? [...names, "response_format"] : names; // Groq, beside tools
}

function isIn(body: JsonObject, name: string): boolean {
  let value: unknown = body;
  for (const key of name.split(".")) {
    if (!isObject(value) || !Object.hasOwn(value, key)) return false;
    value = value[key];
  }
  return true;
}

/**
 * Returns the parameter of a place in a body, such as `response_format` for `response_format.type`; undefined
 * for a place in a schema, which other requests may not have.
 */
function parameterOf(place: string): string | undefined {
  if (/\.schema\b/.test(place)) return undefined;
  const name = PLACES.get(place) ?? place;
  if (OPTIONAL.has(name)) return name;
  const end = place.lastIndexOf(".");
  return end === -1 ? undefined : parameterOf(place.slice(0, end));
}

/** What a server says about items of its answers that it does not take back. */
const REFUSED_ITEM =
  /encrypted content .{0,80}could not be|without its required following item|items are not persisted/i;

/** Returns whether a server does not take back items of its answers in a body. */
function refusesItems(error: unknown, { input }: JsonObject): boolean {
  if (!isObject(error) || error.status !== 400 && error.status !== 404) return false;
  if (!isObject(error.error) || !Array.isArray(input)) return false;
  const { code, message } = error.error;
  const isRefusal = code === "invalid_encrypted_content" || REFUSED_ITEM.test(String(message));
  return isRefusal && input.some((item) => isObject(item) && typeof item.id === "string");
}

/**
 * Messages about an answer that may not be as long as requested: its maximum, or window and request (vLLM).
 */
const OUTPUT_LIMITS: readonly RegExp[] = [
  /supports at most (\d+) completion tokens/i, // OpenAI
  /max(?:_completion)?_tokens\W.{0,60}less than or equal to \W?(\d+)/i, // Groq
  /valid range of max_tokens is \[1, (\d+)\]/i, // DeepSeek
  /max_tokens.{0,60}is too large.*\(\d+ > (\d+) - (\d+)\)/is, // vLLM
];

/** Returns the maximum tokens of an answer that a server states, or undefined for other errors. */
export function statedOutputLimit(error: unknown): number | undefined {
  const text = refusalText(error) ?? "";
  for (const pattern of OUTPUT_LIMITS) {
    const [, limit, used = "0"] = pattern.exec(text) ?? [];
    if (limit !== undefined) return Math.max(0, Number(limit) - Number(used));
  }
  return undefined;
}
