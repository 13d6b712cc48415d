/**
 * The API of an Ollama server through `fetch`: requests, answers, errors of the server and of the
 * connection to it.
 */
import {
  classifyLLMError,
  type Degradation,
  errorMessage,
  isObject,
  type JsonObject,
  LLMError,
  type LLMErrorOptions,
  type StreamDelta,
  toLLMError,
  type ToolSpec,
} from "preamp/base";
import {
  AnswerBlocks,
  type AnswerUsage,
  type Backend,
  type BackendAnswer,
  type CallIo,
  connectionError,
  Degradations,
  type ListedModel,
  type WireRequest,
} from "preamp/provider";
import { type OllamaMessage, type RequestContext, type RequestSettings, toRequest } from "./request.ts";

/** Where the server is. */
interface ServerAddress {
  /** Address without a trailing slash. */
  readonly base_url: string;
  /** Key of a server that needs one. */
  readonly api_key?: string | undefined;
}

/** Models whose details are requested at once. */
const PARALLEL_DETAILS = 4;

/** Code units of a text that surely are more than one token. */
const MAX_TOKEN_CHARS = 6;

export function createBackend(server: ServerAddress, settings: RequestSettings): Backend {
  const without_thinking = new Set<unknown>();
  return {
    toRequest: (call) => toRequest(call, settings),
    send: (request, io) => sendToModel(server, request, io, without_thinking),
    toError: (error) => toLLMError(error), // this backend throws LLMErrors already
    listModels: (io) => listModels(server, io),
  };
}

const NO_THINKING = /does not support thinking/i;

/**
 * Sends a request; without `think` to a model that refuses it.
 *
 * @param without_thinking Models that refused it.
 */
async function sendToModel(
  server: ServerAddress,
  request: WireRequest,
  io: CallIo,
  without_thinking: Set<unknown>,
): Promise<BackendAnswer> {
  const { think, ...body } = request.body;
  if (think === undefined) return await send(server, request, io);
  if (!without_thinking.has(body.model)) {
    try {
      return await send(server, request, io);
    } catch (error) {
      if (!NO_THINKING.test(errorMessage(error))) throw error;
      without_thinking.add(body.model);
      await io.onRefusal?.(error);
    }
  }
  const degradations = new Degradations(request.degradation);
  degradations.add(`think ${think}`, `${body.model} does not think`);
  return await send(server, { ...request, body, degradation: degradations.merged() }, io);
}

async function send(server: ServerAddress, request: WireRequest, io: CallIo): Promise<BackendAnswer> {
  const { tools } = request.context as RequestContext; // made by toRequest
  const collector = new AnswerCollector(io.onDelta);
  try {
    const response = await post(server, "/api/chat", request.body, io);
    for await (const object of readObjects(response)) {
      if (object.error !== undefined && object.error !== null) {
        throw toServerError(200, JSON.stringify(object));
      }
      collector.add(object);
    }
  } catch (error) {
    const call = error instanceof LLMError ? malformedCall(error, tools) : undefined;
    if (!call) throw error;
    collector.addCall(call);
    collector.add({ done: true });
  }
  const answer = collector.finish();
  return { ...answer, degradation: withTruncation(request, answer) };
}

/**
 * Adds that the server left out messages: servers before 0.12.10 do not know `truncate` and `shift`. Only
 * a request that is far too long for the window is noticed.
 */
function withTruncation(
  { body: { messages, options }, degradation }: WireRequest,
  { usage }: BackendAnswer,
): Degradation | undefined {
  const num_ctx = isObject(options) ? Number(options.num_ctx) : 0;
  if (!usage?.input_tokens || usage.input_tokens > num_ctx) return degradation;
  const chars = (messages as OllamaMessage[]).reduce((sum, { content }) => sum + content.length, 0);
  if (chars <= num_ctx * MAX_TOKEN_CHARS) return degradation;
  const degradations = new Degradations(degradation);
  degradations.add(
    `a request of ${chars} characters`,
    `the server left messages out: num_ctx is ${num_ctx}, see context_window`,
    `${usage.input_tokens} tokens of it`,
  );
  return degradations.merged();
}

async function listModels(server: ServerAddress, io: CallIo): Promise<ListedModel[]> {
  const { models } = await json(server, "/api/tags", undefined, io);
  const names = (Array.isArray(models) ? models : []).flatMap((model: unknown) =>
    isObject(model) && typeof model.name === "string" ? model.name : []
  );
  const listed: ListedModel[] = [];
  for (let at = 0; at < names.length; at += PARALLEL_DETAILS) {
    const some = names.slice(at, at + PARALLEL_DETAILS);
    listed.push(...await Promise.all(some.map((name) => describe(server, name, io))));
  }
  return listed;
}

async function describe(server: ServerAddress, id: string, io: CallIo): Promise<ListedModel> {
  const { model_info, capabilities } = await json(server, "/api/show", { model: id }, io);
  const facts = isObject(model_info) ? model_info : {};
  const context_window = Number(facts[`${facts["general.architecture"]}.context_length`]) || 0;
  const known = Array.isArray(capabilities) ? capabilities.filter((item) => typeof item === "string") : [];
  return {
    id,
    context_window,
    ...(known.length > 0
      ? { capabilities: ["streaming", ...known.filter((item) => item !== "completion")] }
      : {}),
  };
}

async function json(
  server: ServerAddress,
  path: string,
  body: JsonObject | undefined,
  io: CallIo,
): Promise<JsonObject> {
  for await (const object of readObjects(await post(server, path, body, io))) return object;
  return {};
}

/** Resolves to the body of a response. Without a `body` the method is GET. */
async function post(
  { base_url, api_key }: ServerAddress,
  path: string,
  body: JsonObject | undefined,
  io: CallIo,
): Promise<ReadableStream<Uint8Array<ArrayBuffer>>> {
  let response: Response;
  try {
    response = await io.fetch(base_url + path, {
      method: body ? "POST" : "GET",
      headers: {
        "content-type": "application/json",
        ...(api_key === undefined ? {} : { authorization: `Bearer ${api_key}` }),
      },
      body: body ? JSON.stringify(body) : null,
      signal: io.signal,
    });
  } catch (error) {
    if (io.signal.aborted) throw error;
    throw toConnectionError(error, base_url);
  }
  if (response.ok && response.body) return response.body;
  throw toServerError(response.status, await response.text(), response.headers);
}

/**
 * Yields the objects of a response, wherever the network cuts it.
 *
 * @throws {LLMError} `StreamError` when the connection breaks, or a line is not a JSON object.
 */
async function* readObjects(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
): AsyncGenerator<JsonObject> {
  let rest = "";
  for await (const text of readText(body)) {
    const lines = text.split("\n");
    lines[0] = rest + lines[0];
    rest = lines.pop() ?? "";
    for (const line of lines) if (line.trim() !== "") yield parseLine(line);
  }
  if (rest.trim() !== "") yield parseLine(rest);
}

async function* readText(body: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<string> {
  try {
    yield* body.pipeThrough(new TextDecoderStream());
  } catch (cause) {
    const message = `Cannot read the response of Ollama: ${errorMessage(cause)}`;
    throw new LLMError("StreamError", message, { cause });
  }
}

function parseLine(line: string): JsonObject {
  const object = parse(line.trim());
  if (object) return object;
  throw new LLMError(
    "StreamError",
    `Cannot read the response of Ollama: a line is not a JSON object: ${line.slice(0, 80)}`,
  );
}

/** Maximum code units of a server's message. */
const MAX_MESSAGE_CHARS = 500;

const NOT_FOUND = /model ["']?([^"' ]+)["']? not found/i;
const TOO_LONG =
  /longer than the context length|exceeds? the (context length|available context size)|exceed_context_size/i;
/** The server dropped the user's message, because the request did not fit. */
const TRUNCATED = /no user query found/i;
const NO_MEMORY = /more system memory|out of memory/i;
/** Of a plan of Ollama.com. */
const USAGE_LIMIT = /usage limit/i;
const REFUSED = /refused|ECONNREFUSED|nothing listens/i;

/** Returns an error of the connection as an LLMError. */
function toConnectionError(cause: unknown, url: string): LLMError {
  const fact = `Cannot reach Ollama at ${url}`;
  const failure = connectionError(cause, fact);
  if (!REFUSED.test(failure.message.slice(fact.length))) return failure;
  const hint = "start it with `ollama serve`, or set base_url or the variable OLLAMA_HOST";
  const message = `${fact}: is Ollama running? nothing listens there; ${hint}`;
  return new LLMError("NetworkError", message, { cause, retryable: false });
}

/**
 * Returns an error that the server reported.
 *
 * @param status Status of the response; that of a stream has begun with 200.
 * @param body The body as text, or the value of `error`.
 */
function toServerError(status: number, body: string, headers?: Headers): LLMError {
  const message = readMessage(body);
  const status_code = status < 400 ? 500 : status;
  const options: LLMErrorOptions = { status_code, cause: message };
  const [, model] = NOT_FOUND.exec(message) ?? [];
  if (model !== undefined) {
    const text = `Cannot find the model ${model} in Ollama: get it with \`ollama pull ${model}\``;
    return new LLMError("NotFoundError", text, options);
  }
  const text = message.slice(0, MAX_MESSAGE_CHARS);
  if (TOO_LONG.test(message) || TRUNCATED.test(message)) {
    return new LLMError("ContextLengthError", text, options);
  }
  if (NO_MEMORY.test(message)) {
    const hint = "choose a smaller model, or a smaller context_window";
    return new LLMError("ProviderUnavailableError", `${text}; ${hint}`, { ...options, retryable: false });
  }
  const type = USAGE_LIMIT.test(message) ? "QuotaExceededError" : classifyLLMError(status_code, message);
  return toLLMError({ name: type, message: text, headers }, options);
}

/** Returns the message of a body; that of the model's own server is JSON within the text. */
function readMessage(body: string): string {
  let message = body.trim();
  for (let depth = 0; depth < 3; depth++) {
    const error = parse(message)?.error;
    if (typeof error === "string") message = error;
    else if (isObject(error) && typeof error.message === "string") {
      const { message: text, type, n_prompt_tokens, n_ctx } = error;
      return n_ctx === undefined
        ? text
        : `${text} (${type}, n_prompt_tokens: ${n_prompt_tokens}, n_ctx: ${n_ctx})`;
    } else break;
  }
  return message || "the server answered with an error that has no message";
}

/** Returns the object in a text; undefined for any other text. */
function parse(text: string): JsonObject | undefined {
  if (!text.startsWith("{")) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined; // not JSON
  }
}

/** The server could not read the call that the model wrote. */
const MALFORMED_CALL = /error parsing tool call: raw='([\s\S]*)', err=/;

/**
 * Returns the call that a server's error is about, with the text that the model wrote as its arguments, so
 * that the model gets an error which it can correct. The error does not name the tool: it is the only one, or
 * the first with a property of the text. Undefined for other errors.
 */
function malformedCall({ cause }: LLMError, tools: readonly ToolSpec[]): JsonObject | undefined {
  const [, text] = MALFORMED_CALL.exec(String(cause)) ?? []; // the whole message, see toServerError
  if (text === undefined) return undefined;
  const tool = tools.length === 1 ? tools[0] : tools.find(({ parameters }) => {
    const { properties } = parameters;
    return isObject(properties) && Object.keys(properties).some((key) => text.includes(`"${key}"`));
  });
  return tool && { function: { name: tool.name, arguments: text } };
}

/** Collects the objects of a response into an answer. A response that is not streamed is one object. */
class AnswerCollector {
  readonly #blocks: AnswerBlocks;
  /** The last object; it has the counters. */
  #last: JsonObject | undefined;
  #model: string | undefined;

  /** @param onDelta Receives a delta for each part of the answer. */
  constructor(onDelta: ((delta: StreamDelta) => void) | undefined) {
    this.#blocks = new AnswerBlocks([], onDelta);
  }

  add(object: JsonObject): void {
    const { message, model, done } = object;
    if (typeof model === "string") this.#model = model;
    if (isObject(message)) {
      this.#addText("thinking", message.thinking);
      this.#addText("text", message.content);
      const calls: unknown[] = Array.isArray(message.tool_calls) ? message.tool_calls : [];
      for (const call of calls) if (isObject(call)) this.addCall(call);
    }
    if (done === true) this.#last = object;
  }

  /** Adds a call: `{id?, function: {name, arguments}}`. */
  addCall({ id, function: fields }: JsonObject): void {
    this.#blocks.addCall({ ...(isObject(fields) ? fields : {}), id });
  }

  /**
   * Returns the answer.
   *
   * @throws {LLMError} `StreamError` when the response ended before the answer did.
   */
  finish(): BackendAnswer {
    if (!this.#last) {
      throw new LLMError("StreamError", "The response of Ollama ended before the answer was done");
    }
    const { done_reason, total_duration, load_duration } = this.#last;
    const reason = typeof done_reason === "string" && done_reason ? done_reason : "stop";
    const tool_calls = this.#blocks.calls();
    return {
      content: this.#blocks.content(),
      tool_calls,
      finish_reason: reason === "stop" && tool_calls.length > 0 ? "tool_calls" : reason,
      usage: usageOf(this.#last),
      model: this.#model,
      metadata: { total_duration, load_duration },
      raw: this.#last,
    };
  }

  #addText(kind: "text" | "thinking", text: unknown): void {
    if (typeof text === "string") this.#blocks.append(this.#blocks.keyFor(kind), kind, text);
  }
}

/** Returns the tokens; the server leaves a count out when it counted nothing, as of a cached request. */
function usageOf({ prompt_eval_count, eval_count }: JsonObject): AnswerUsage | undefined {
  if (!isCount(prompt_eval_count) && !isCount(eval_count)) return undefined;
  return {
    input_tokens: isCount(prompt_eval_count) ? prompt_eval_count : 0,
    output_tokens: isCount(eval_count) ? eval_count : 0,
  };
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}
