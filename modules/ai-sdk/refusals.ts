/**
 * What a server refuses of requests: they are sent again without it, and later ones from the start. The
 * patterns are words of the servers that are named beside them.
 */
import { isObject, type JsonObject, type ToolSpec } from "preamp/base";
import type { AssistantPart, CallSettings, Degradations } from "preamp/provider";
import { type StatedError, statedError } from "./errors.ts";
import type { Names } from "./names.ts";
import { RefusedImages } from "./refused_images.ts";
import { REFUSED, RefusedTools } from "./refused_tools.ts";
import type { Vendor } from "./vendor.ts";
import { objectsIn } from "./wire/event_reader.ts";

/** Parameters that are left out when a server refuses them; those within others by their path. */
const OPTIONAL: ReadonlySet<string> = new Set(
  ("temperature top_p stop reasoning_effort reasoning.effort reasoning.summary reasoning include tool_choice " +
    "parallel_tool_calls response_format text.format prompt_cache_key stream stream_options max_tokens " +
    "max_completion_tokens thinking output_config.effort").split(" "),
);
const FORMATS = ["response_format", "text.format"];
const EFFORTS: ReadonlySet<string> = new Set([
  "reasoning_effort",
  "reasoning.effort",
  "output_config.effort",
]);

/** Efforts → those to replace them, the nearest first. A model may have one effort only. */
const NEAREST_EFFORTS: Readonly<Record<string, readonly string[]>> = {
  none: ["low", "medium", "high"],
  minimal: ["low", "medium", "high"],
  low: ["medium", "high"],
  medium: ["high", "low"],
  high: ["medium", "low"],
  xhigh: ["high", "medium", "low"],
  max: ["high", "medium", "low"],
};

const REFUSAL = new RegExp(
  "unsupported|not supported|does not support|unknown|unrecognized|unexpected|unavailable|must be (?:one of|['`\"])|" +
    "not (?:allowed|permitted|available)|cannot be combined|incompatible|only .{1,20} is allowed|verify your organization|" +
    "must be verified|extra (?:inputs|fields)|extra_forbidden",
  "i",
);

/** The server takes the format, but not the schema in it; Gemini often says no more than the last words. */
const REFUSED_SCHEMA = new RegExp(
  "invalid_json_schema|invalid schema for|output_(?:config\\.)?format|schema is too complex|compiled grammar|" +
    "circular reference|schema in GenerationConfig|too many states|nesting depth|response_(?:json_)?schema|" +
    "(?:response_format|text\\.format)\\S*\\.schema\\b|In context=\\(|request contains an invalid argument",
  "i",
);

/**
 * The server does not take back reasoning, such as that of another model or account, or after a compaction.
 */
const REFUSED_THINKING = new RegExp(
  "invalid `?signature`? in `?thinking`? block|thinking`? blocks .{0,80}cannot be modified|invalid_encrypted_content|" +
    "encrypted content .{0,80}could not be|without its required following item|items are not persisted|" +
    "(?:corrupted|invalid) thought.?signature|thought.?signature is not valid",
  "i",
);

/**
 * Messages about an answer that may not be as long as requested: its maximum, or window and request (vLLM).
 */
const OUTPUT_LIMITS: readonly RegExp[] = [
  /supports at most (\d+) completion tokens/i, // OpenAI
  /max(?:_completion)?_tokens\W.{0,60}less than or equal to \W?(\d+)/i, // Groq
  /valid range of max_tokens is \[1, (\d+)\]/i, // DeepSeek
  /max_tokens.{0,60}is too large.*\(\d+ > (\d+) - (\d+)\)/is, // vLLM
];
const MIN_OUTPUT_TOKENS = 16;

/** A form of messages of Chat Completions that not every server takes. */
interface Form {
  readonly name: string;
  readonly refusal: RegExp;
  /** Changes a body, which may not have the form. */
  change(body: JsonObject, messages: JsonObject[]): void;
}

const FORMS: readonly Form[] = [
  { // Mistral
    name: "long ids of calls",
    refusal: /tool call id .{0,200}length of 9\b/is,
    change: (_, messages) => {
      const ids = new Map<unknown, string>();
      const short = (id: unknown) =>
        ids.get(id) ?? ids.set(id, `call${String(ids.size + 1).padStart(5, "0")}`).get(id);
      for (const message of messages) {
        if (message.tool_call_id !== undefined) message.tool_call_id = short(message.tool_call_id);
        for (const call of objectsIn(message.tool_calls)) call.id = short(call.id);
      }
    },
  },
  { // Mistral
    name: "a question after results",
    refusal: /unexpected role 'user' after role 'tool'/i,
    change: (body, messages) => {
      body.messages = messages.flatMap((message, index) =>
        message.role === "user" && messages[index - 1]?.role === "tool"
          ? [{ role: "assistant", content: "I have the results." }, message]
          : [message]
      );
    },
  },
  { // OpenAI and Azure, also when the request states no effort
    name: "tools beside reasoning",
    refusal: /function tools with reasoning_effort are not supported.*set reasoning_effort to 'none'/is,
    change: (body) => {
      if (body.tools !== undefined) body.reasoning_effort = "none";
    },
  },
  { // DeepSeek, Moonshot
    name: "messages without reasoning",
    refusal: /reasoning_content\W.{0,80}(?:missing|must be passed back)/is,
    change: (_, messages) => {
      for (const message of messages) if (message.role === "assistant") message.reasoning_content ??= " ";
    },
  },
  { // Groq, Cerebras and Mistral: of another model, or in another field than their own
    name: "reasoning in messages",
    refusal:
      /(?:unsupported|not supported|unknown|not (?:allowed|permitted)|extra).{0,200}\breasoning(?:_content|_details|_text)?\b|\breasoning(?:_content|_details|_text)?\b.{0,200}(?:unsupported|not supported|unknown|not (?:allowed|permitted)|extra)/is,
    change: (_, messages) => {
      for (const message of messages) {
        for (const key of Object.keys(message)) if (key.startsWith("reasoning")) delete message[key];
      }
    },
  },
  { // LM Studio, Ollama
    name: "content that is null",
    refusal: /content.{0,60}(?:must be a string|should be a valid string|<nil>|got null)/is,
    change: (_, messages) => {
      for (const message of messages) if (message.content === null) message.content = "";
    },
  },
];

/** The refusals of one session. */
export class Refusals {
  /** Parameters, efforts, forms and schemas by model. */
  readonly #by_model = new Map<string, Set<string>>();
  /** Blocks of the model's answers, as texts. */
  readonly #blocks = new Set<string>();
  readonly #images: RefusedImages;
  readonly tools = new RefusedTools();
  /** Number of refusals that were noted. */
  count = 0;

  /** @param text_models Ids of models that take no images. */
  constructor(text_models?: RegExp) {
    this.#images = new RefusedImages(text_models);
  }

  /** Returns what changes the body of a request; undefined when nothing was refused. */
  changeFor({ model }: CallSettings): ((body: JsonObject) => void) | undefined {
    const refused = this.#of(model);
    return refused.size === 0 ? undefined : (body) => changeBody(body, refused);
  }

  /** Returns a call without what the server refused of its blocks, with the nearest effort that it takes. */
  without(call: CallSettings, degradations: Degradations): CallSettings {
    const { model, reasoning_effort: effort } = call;
    const { conversation } = this.#images.without(call, degradations);
    const refused = this.#of(model);
    for (const name of ["temperature", "top_p", "stop", "tool_choice"] as const) {
      if (refused.has(name) && call[name] !== undefined) {
        degradations.add(`${name} ${JSON.stringify(call[name])}`, REFUSED);
      }
    }
    if (refused.has("tools beside reasoning") && call.tools.length > 0) {
      degradations.add("reasoning", "Chat Completions refuses it beside tools; use api: responses", "none");
    }
    const { reasoning_effort: _, ...rest } = call;
    const is_refused = effort !== undefined &&
      (refused.has(`effort ${effort}`) || [...EFFORTS].some((name) => refused.has(name)));
    const nearest = is_refused && refused.has(`effort ${effort}`)
      ? NEAREST_EFFORTS[effort]?.find((other) => !refused.has(`effort ${other}`))
      : undefined;
    if (is_refused) degradations.add(`reasoning_effort ${effort}`, REFUSED, nearest);
    const turns = this.#blocks.size === 0
      ? conversation.turns
      : conversation.turns.map((turn) =>
        turn.role === "user"
          ? turn
          : { ...turn, parts: turn.parts.flatMap((part) => this.#withoutBlock(part)) }
      ).filter(({ parts }) => parts.length > 0);
    return {
      ...this.tools.without(is_refused ? rest : call, degradations),
      conversation: { ...conversation, turns },
      ...(nearest === undefined ? {} : { reasoning_effort: nearest }),
    };
  }

  /** Returns the form of an answer that replaces the refused one of a call; undefined without a refusal. */
  formatFor(
    call: CallSettings,
    { json_mode = true, instructs }: Vendor,
    degradations: Degradations,
  ): { type: "text" } | { type: "json" } | undefined {
    const { response_format: format, model } = call;
    const refused = this.#of(model);
    if (format && format.type !== "text" && FORMATS.some((name) => refused.has(name))) {
      degradations.add(
        `response_format ${format.type}`,
        REFUSED,
        instructs ? "instruction" : "response_format text",
      );
      return { type: "text" };
    }
    if (format?.type !== "json_schema" || !refused.has(schemaMark(call))) return undefined;
    const type = json_mode ? "json" : "text";
    degradations.add("response_format json_schema", "the API refuses its schema", `response_format ${type}`);
    return { type };
  }

  /**
   * Notes what the server refused of a call. Returns the call to send in its place; undefined when it is
   * another error, or the request would be the same again.
   *
   * @param request Its body, its tools with their names, and the value of `count` when it was made: calls at
   * the same time learn from each other.
   */
  learn(
    error: unknown,
    call: CallSettings,
    { known, ...request }: { body: JsonObject; names: Names; sent: readonly ToolSpec[]; known: number },
  ): CallSettings | undefined {
    const stated = statedError(error);
    const { status, text } = stated;
    if (this.#images.learn(stated, call)) {
      this.count++;
      return call;
    }
    if (status !== 400 && status !== 422 && status !== 404) return undefined;
    const refused = this.#of(call.model);
    if (REFUSED_THINKING.test(text)) this.#learnBlocks(call);
    if (status === 404 || REFUSED_THINKING.test(text)) return this.count > known ? call : undefined;
    const limit = outputLimitIn(text);
    if (limit !== undefined) {
      return limit >= MIN_OUTPUT_TOKENS && limit < call.max_output_tokens
        ? { ...call, max_output_tokens: limit }
        : undefined;
    }
    if (this.tools.learn(stated, call, request)) {
      this.count++;
      return call;
    }
    const { body } = request;
    const mark =
      call.response_format?.type === "json_schema" && REFUSED_SCHEMA.test(`${stated.param} ${text}`)
        ? schemaMark(call)
        : formIn(text, body) ?? refusedParameter(stated, body);
    if (mark !== undefined && !refused.has(mark)) {
      refused.add(mark);
      this.count++;
    }
    return mark !== undefined && this.count > known ? call : undefined;
  }

  #of(model: string): Set<string> {
    const known = this.#by_model.get(model) ?? new Set();
    this.#by_model.set(model, known);
    return known;
  }

  #learnBlocks({ conversation }: CallSettings): void {
    const known = this.#blocks.size;
    for (const { parts } of conversation.turns) {
      for (const part of parts as readonly AssistantPart[]) {
        if (part.type === "native" || part.block) this.#blocks.add(JSON.stringify(part.block));
      }
    }
    this.count += this.#blocks.size - known;
  }

  #withoutBlock(part: AssistantPart): AssistantPart[] {
    if (part.block === undefined || !this.#blocks.has(JSON.stringify(part.block))) return [part];
    if (part.type === "native") return /thinking$/.test(String(part.block.type)) ? [] : [part];
    const { block: _, ...bare } = part;
    return [bare];
  }
}

function schemaMark({ response_format: format }: CallSettings): string {
  return `schema ${JSON.stringify(format)}`;
}

function outputLimitIn(text: string): number | undefined {
  for (const pattern of OUTPUT_LIMITS) {
    const [, limit, used = "0"] = pattern.exec(text) ?? [];
    if (limit !== undefined) return Math.max(0, Number(limit) - Number(used));
  }
  return undefined;
}

/** Returns the form that a text refuses, if the body has it. */
function formIn(text: string, body: JsonObject): string | undefined {
  return FORMS.find(({ refusal, change }) => {
    if (!refusal.test(text)) return false;
    const copy = structuredClone(body);
    change(copy, objectsIn(copy.messages));
    return JSON.stringify(copy) !== JSON.stringify(body);
  })?.name;
}

function refusedParameter({ code, param, text }: StatedError, body: JsonObject): string | undefined {
  if (!REFUSAL.test(`${code ?? ""} ${text}`)) return undefined;
  // some servers state a kind of error there (Cerebras)
  const names = param !== undefined && (isIn(body, param) || /[.[]/.test(param)) ? [param] : mentioned(text);
  const name = names.filter((one) => isIn(body, one)).map(parameterOf).find((one) => one !== undefined);
  if (name === undefined || !EFFORTS.has(name) || !/supported values are/i.test(text)) return name;
  return `effort ${valueIn(body, name)}`;
}

/** Returns the names in a message: in quotes, with an underscore, or after "invalid" (Moonshot). */
function mentioned(message: string): string[] {
  const names = [...message.matchAll(/['"`]([a-z_.]+)['"`]|\b([a-z]+(?:_[a-z]+)+)\b|\binvalid ([a-z]+)\b/g)]
    .map((found) => found.slice(1).find((name) => name !== undefined) ?? "");
  return /\bjson mode\b/i.test(message) ? [...names, "response_format"] : names; // Groq, beside tools
}

function isIn(body: JsonObject, path: string): boolean {
  return valueIn(body, path) !== undefined;
}

function valueIn(body: JsonObject, path: string): unknown {
  return path.split(".").reduce<unknown>((value, key) => isObject(value) ? value[key] : undefined, body);
}

/** Returns the parameter of a place in a body, such as `response_format` for `response_format.type`. */
function parameterOf(path: string): string | undefined {
  if (OPTIONAL.has(path)) return path;
  const end = path.lastIndexOf(".");
  return end === -1 || /\.schema\b/.test(path) ? undefined : parameterOf(path.slice(0, end));
}

function changeBody(body: JsonObject, refused: ReadonlySet<string>): void {
  const limit = body.max_tokens ?? body.max_completion_tokens;
  for (const name of refused) {
    if (!OPTIONAL.has(name)) continue;
    const end = name.lastIndexOf(".");
    const owner = end === -1 ? body : valueIn(body, name.slice(0, end));
    if (!isObject(owner)) continue;
    delete owner[name.slice(end + 1)];
    if (Object.keys(owner).length === 0) delete body[name.slice(0, end)];
  }
  if (refused.has("stream")) delete body.stream_options;
  const other = refused.has("max_tokens") ? "max_completion_tokens" : "max_tokens";
  if (
    (refused.has("max_tokens") || refused.has("max_completion_tokens")) && !refused.has(other) &&
    limit !== undefined
  ) {
    body[other] = limit;
  }
  for (const { name, change } of FORMS) if (refused.has(name)) change(body, objectsIn(body.messages));
}
