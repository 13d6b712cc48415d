/** Reads answers of Chat Completions, which each server sends in a form of its own. */
import { isObject, jsonEqual, type JsonObject } from "preamp/base";
import { GrowingText } from "preamp/provider";
import { parsed } from "../names.ts";
import {
  argumentsText,
  type EventReader,
  objectsIn,
  readCounts,
  statesError,
  textOrNone,
} from "./event_reader.ts";

/** Options of {@link ChatReader}. */
export interface ChatReaderOptions {
  /** Whether the package reads reasoning in parts of the content only, as Mistral sends it; default false. */
  readonly reasoning_in_parts?: boolean;
}

/** What a choice adds to the answer. */
interface Delta {
  readonly text: string;
  readonly reasoning: string;
  readonly refusal: string | undefined;
  readonly calls: readonly JsonObject[];
  readonly annotations: readonly JsonObject[];
}

export class ChatReader implements EventReader {
  ended = false;
  readonly #options: ChatReaderOptions;
  readonly #calls = new StreamedCalls();
  readonly #text = new GrowingText();
  readonly #reasoning = new GrowingText();

  constructor(options: ChatReaderOptions = {}) {
    this.#options = options;
  }

  read(event: JsonObject): readonly JsonObject[] {
    if (statesError(event)) return this.ended ? [] : [event];
    const usage = usageIn(event);
    const [choice = usage ? {} : undefined] = objectsIn(event.choices);
    if (!choice) return [];
    const { finish_reason: reason } = choice;
    const finish_reason = textOrNone(reason) ?? null;
    this.ended ||= finish_reason !== null && finish_reason !== "error";
    const delta = this.#deltaOf(choice);
    const calls = [
      ...delta.calls.flatMap((call) => this.#calls.add(call)),
      ...(finish_reason === null ? [] : this.#calls.end()),
    ];
    return [{
      ...factsOf(event),
      object: "chat.completion.chunk",
      choices: [{ index: 0, delta: this.#message({ ...delta, calls }), finish_reason }],
      ...usage,
    }];
  }

  last(): readonly JsonObject[] {
    const tool_calls = this.#calls.end();
    return tool_calls.length === 0 ? [] : [{ choices: [{ index: 0, delta: { tool_calls } }] }];
  }

  whole(answer: JsonObject): JsonObject {
    const choices = objectsIn(answer.choices);
    if (statesError(answer) || choices.length === 0) return answer;
    const [{ message, finish_reason }] = choices as [JsonObject];
    const delta = deltaIn(isObject(message) ? message : {});
    const calls = delta.calls.map(({ id, function: called, extra_content }) => ({
      id: textOrNone(id) ?? crypto.randomUUID(),
      type: "function",
      function: calledIn(called, ""),
      ...(isObject(extra_content) ? { extra_content } : {}),
    }));
    return {
      ...factsOf(answer),
      object: "chat.completion",
      choices: [{
        index: 0,
        message: this.#message({ ...delta, calls }),
        finish_reason: textOrNone(finish_reason) ?? null,
      }],
      usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }, // Mistral's package wants one
      ...usageIn(answer),
    };
  }

  /** Returns the delta of a choice; of a whole message at the end of a stream, what is missing. */
  #deltaOf({ delta, message }: JsonObject): Delta {
    const added = deltaIn(isObject(delta) ? delta : {});
    this.#text.append(added.text);
    this.#reasoning.append(added.reasoning);
    if (!isObject(message)) return added;
    const whole = deltaIn(message);
    const text = missingIn(whole.text, this.#text.value);
    const reasoning = missingIn(whole.reasoning, this.#reasoning.value);
    this.#text.append(text);
    this.#reasoning.append(reasoning);
    return {
      ...added,
      text: added.text + text,
      reasoning: added.reasoning + reasoning,
      calls: [...added.calls, ...whole.calls],
    };
  }

  /** Returns a message in the form that each package takes. */
  #message({ text, reasoning, refusal, calls, annotations }: Delta): JsonObject {
    const in_parts = this.#options.reasoning_in_parts === true && reasoning !== "";
    return {
      role: "assistant",
      content: in_parts
        ? [
          { type: "thinking", thinking: [{ type: "text", text: reasoning }] },
          ...(text === "" ? [] : [{ type: "text", text }]),
        ]
        : text || null,
      ...(reasoning === "" || in_parts ? {} : { reasoning_content: reasoning, reasoning }),
      ...(refusal === undefined ? {} : { refusal }),
      ...(calls.length > 0 ? { tool_calls: calls } : {}),
      ...(annotations.length > 0 ? { annotations } : {}),
    };
  }
}

/** Returns what a text has in addition to the text so far; nothing when it is another text. */
function missingIn(whole: string, so_far: string): string {
  return whole.startsWith(so_far) ? whole.slice(so_far.length) : "";
}

function factsOf({ id, model, created }: JsonObject): JsonObject {
  return {
    ...(textOrNone(id) === undefined ? {} : { id }),
    ...(textOrNone(model) === undefined ? {} : { model }),
    ...(typeof created === "number" ? { created } : {}),
  };
}

/**
 * Returns the usage that an event states: with the tokens that are in the total only, such as reasoning of
 * xAI and Gemini, and with cache reads and writes where each package reads them. Groq states the usage of a
 * stream in a place of its own, a gateway in front of it where others do.
 */
function usageIn({ usage, x_groq }: JsonObject): JsonObject | undefined {
  const read = readCounts(usage) ?? readCounts(isObject(x_groq) ? x_groq.usage : undefined);
  if (!read) return undefined;
  const { prompt_tokens: sent, completion_tokens: answered, total_tokens: total, prompt_tokens_details } =
    read;
  const known = (value: unknown) => Number(value ?? 0);
  const prompt_tokens = known(sent ?? Math.max(0, known(total) - known(answered ?? total)));
  const completion_tokens = Math.max(known(answered), known(total) - prompt_tokens);
  const details = isObject(prompt_tokens_details) ? prompt_tokens_details : {};
  const cached_tokens = details.cached_tokens ?? read.prompt_cache_hit_tokens ?? read.cache_read_input_tokens;
  const cache_write_tokens = details.cache_write_tokens ?? read.cache_creation_input_tokens;
  const whole = {
    ...read,
    prompt_tokens,
    completion_tokens,
    total_tokens: prompt_tokens + completion_tokens,
    prompt_tokens_details: {
      ...details,
      ...(cached_tokens === undefined ? {} : { cached_tokens }),
      ...(cache_write_tokens === undefined ? {} : { cache_write_tokens }),
    },
    ...(cached_tokens === undefined ? {} : { prompt_cache_hit_tokens: cached_tokens }),
  };
  return { usage: whole, x_groq: { usage: whole } };
}

/** Returns what a message, or a part of one, contains. Content may be a list of parts, as of Mistral. */
function deltaIn(
  { content, refusal, reasoning_content, reasoning, tool_calls, annotations }: JsonObject,
): Delta {
  const parts: unknown[] = isObject(content) ? [content] : Array.isArray(content) ? content : [];
  const isThought = (part: unknown) => isObject(part) && /think|reason/.test(String(part.type));
  const thoughts = parts.filter(isThought).map((part) => (part as JsonObject).thinking ?? part);
  const stated = [reasoning_content, reasoning].map(textOrNone).find((text) => text !== undefined);
  return {
    text: typeof content === "string" ? content : textIn(parts.filter((part) => !isThought(part))),
    reasoning: stated ?? textIn(thoughts.flat()),
    refusal: textOrNone(refusal),
    calls: objectsIn(tool_calls),
    annotations: objectsIn(annotations).filter(isCitation),
  };
}

function textIn(parts: readonly unknown[]): string {
  return parts.map((part) =>
    typeof part === "string" ? part : isObject(part) ? textOrNone(part.text) ?? "" : ""
  )
    .join("");
}

function isCitation({ type, url_citation: citation }: JsonObject): boolean {
  if (type !== "url_citation" || !isObject(citation)) return false;
  const { url, title, start_index, end_index } = citation;
  return typeof url === "string" && typeof title === "string" && typeof start_index === "number" &&
    typeof end_index === "number";
}

function calledIn(called: unknown, name: string): JsonObject {
  const { name: own, arguments: args } = isObject(called) ? called : {};
  return { name: textOrNone(own) ?? name, arguments: argumentsText(args) };
}

/** A call that arrives. */
interface StreamedCall {
  /** Place among the calls for the package: no two have the same. */
  readonly place: number;
  /** Index that the server gives it; many give none, or 0 to every call. */
  readonly index: unknown;
  id: string | undefined;
  name: string | undefined;
  text: string;
  /** Whether the package knows it: it needs a name first. */
  is_stated: boolean;
  extra_content: unknown;
}

/** The calls of a stream. */
class StreamedCalls {
  readonly #calls: StreamedCall[] = [];
  /** A call with id and name of another one: all of its arguments decide whether it is sent twice. */
  #repeated: StreamedCall | null = null;

  /** Returns the deltas for the package in the place of one of the server. */
  add(delta: JsonObject): JsonObject[] {
    const { index, extra_content } = delta;
    const called = isObject(delta.function) ? delta.function : {};
    const id = nameIn(delta.id);
    const name = nameIn(called.name);
    const text = argumentsText(called.arguments);
    const known = this.#find(index, id, name, text);
    if (known && known === this.#repeated) {
      known.text += text;
      return this.#release(isObject(parsed(known.text)));
    }
    if (!known || name !== undefined && begins(text) && isWhole(known)) {
      const call = { index, id, name, text, extra_content, is_stated: false, place: this.#calls.length };
      const released = this.#release(true);
      if (known && isSame(known, call)) {
        this.#repeated = call;
        return [...released, ...this.#release(isWhole(call))];
      }
      this.#calls.push(call);
      return [...released, ...this.#state(call, text)];
    }
    // once more the whole of it
    if (text.trim() === "" ? isWhole(known) : text === known.text && isWhole(known)) return [];
    known.text += text;
    known.id ??= id;
    known.name ??= name;
    known.extra_content ??= extra_content;
    return this.#state(known, text);
  }

  /** Returns the deltas of what is held back at the end; the package refuses a call without a name. */
  end(): JsonObject[] {
    const released = this.#release(true);
    const nameless = this.#calls.filter(({ is_stated, id, text }) =>
      !is_stated && `${id ?? ""}${text}` !== ""
    );
    for (const call of nameless) call.is_stated = true;
    return [
      ...released,
      ...nameless.map(({ place: index, text }) => ({ index, function: { arguments: text } })),
    ];
  }

  /** Returns the call that a delta continues or repeats; undefined when it begins one. */
  #find(index: unknown, id: string | undefined, name: string | undefined, text: string) {
    const all = this.#repeated ? [...this.#calls, this.#repeated] : this.#calls;
    const has_index = index !== undefined && index !== null;
    if (id !== undefined) {
      const exact = all.findLast((call) => call.id === id && call.index === index);
      const of_id = exact ?? all.findLast((call) => call.id === id);
      if (exact || of_id && (!has_index || name === undefined || isWhole(of_id))) return of_id;
    }
    const of_index = has_index ? all.findLast((call) => call.index === index) : undefined;
    if (of_index) {
      const is_other = id !== undefined && of_index.id !== undefined && id !== of_index.id;
      if (!is_other) return of_index;
      const continues = !isWhole(of_index) && (name === undefined || name === of_index.name && !begins(text));
      return continues ? of_index : undefined;
    }
    return id === undefined && name === undefined && !has_index ? all.at(-1) : undefined;
  }

  /** Returns the delta of a call's text; nothing before its name is known. */
  #state(call: StreamedCall, text: string): JsonObject[] {
    const { place: index, id, name, extra_content } = call;
    if (call.is_stated) return text === "" ? [] : [{ index, function: { arguments: text } }];
    if (name === undefined) return [];
    call.is_stated = true;
    return [{
      index,
      ...(id === undefined ? {} : { id }),
      type: "function",
      function: { name, arguments: call.text },
      ...(isObject(extra_content) ? { extra_content } : {}),
    }];
  }

  /** Ends the doubt about a call, when all of it is there: it is dropped, or a call of its own. */
  #release(is_whole: boolean): JsonObject[] {
    if (!this.#repeated || !is_whole) return [];
    const call = this.#repeated;
    this.#repeated = null;
    const is_repeated = this.#calls.some((one) =>
      isSame(one, call) && (one.text.startsWith(call.text) || jsonEqual(parsed(one.text), parsed(call.text)))
    );
    if (is_repeated) return [];
    const own = { ...call, place: this.#calls.length };
    this.#calls.push(own);
    return this.#state(own, own.text);
  }
}

/** Returns whether two calls claim to be the same one. */
function isSame(one: StreamedCall, other: StreamedCall): boolean {
  if (one.name !== other.name) return false;
  return one.id === undefined || other.id === undefined
    ? one.id === other.id && one.index === other.index && one.index !== undefined
    : one.id === other.id;
}

function isWhole({ text }: StreamedCall): boolean {
  return text.trimEnd().endsWith("}") && isObject(parsed(text)); // perf: called for each delta
}

/** Returns whether a delta may be the beginning of arguments. */
function begins(text: string): boolean {
  const begin = text.trimStart();
  return begin === "" || begin.startsWith("{");
}

function nameIn(value: unknown): string | undefined {
  return typeof value === "string" && value.trim() !== "" ? value : undefined;
}
