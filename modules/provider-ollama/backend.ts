/**
 * The API of an Ollama server through `fetch`: requests, answers, errors of the server and of the connection.
 */
import {
  classifyLLMError,
  errorMessage,
  isObject,
  type JsonObject,
  LLMError,
  type LLMErrorOptions,
  toLLMError,
  type ToolSpec,
} from "preamp/base";
import {
  AnswerBlocks,
  type AnswerUsage,
  type Backend,
  type BackendAnswer,
  type CallIo,
  type CallSettings,
  connectionError,
  Degradations,
  type ListedModel,
  readEvents,
  type WireRequest,
} from "preamp/provider";
import { parsed } from "../ai-sdk/names.ts";
import { countOf, objectsIn } from "../ai-sdk/wire/event_reader.ts";
import { hasImages, RefusedImages } from "../ai-sdk/refused_images.ts";
import { type RequestSettings, toRequest } from "./request.ts";

/** Where the server is. */
interface ServerAddress {
  /** Address without a trailing slash. */
  readonly base_url: string;
  /** Key of a server that needs one. */
  readonly api_key?: string | undefined;
}

/** Models whose details are requested at once. */
const PARALLEL_DETAILS = 4;
const NO_THINKING = /does not support thinking/i;

export function createBackend(server: ServerAddress, settings: RequestSettings): Backend {
  /** Models that refused `think`. */
  const without_thinking = new Set<unknown>();
  const sendThinking = async (request: WireRequest, io: CallIo): Promise<BackendAnswer> => {
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
    const answer = await send(server, { ...request, body }, io);
    return { ...answer, degradation: degradations.merged() };
  };
  const images = new RefusedImages();
  /** Models whose capabilities are known. */
  const described = new Set<string>();
  /** A model without vision answers as if there were no image: its server says nothing. */
  const learnVision = async (model: string, io: CallIo): Promise<void> => {
    if (described.has(model)) return;
    const { capabilities = [] } = await describe(server, model, io).catch(() => ({ capabilities: [] }));
    io.signal.throwIfAborted();
    described.add(model);
    if (capabilities.length > 0 && !capabilities.includes("vision")) images.addModel(model);
  };
  const withoutRefused = (request: WireRequest, call: CallSettings): WireRequest => {
    const degradations = new Degradations();
    const allowed = images.without(call, degradations);
    return allowed === call ? request : { ...toRequest(allowed, settings, degradations), context: call };
  };
  return {
    toRequest: (call) => ({ ...toRequest(call, settings), context: call }),
    async send(request, io) {
      const call = request.context as CallSettings; // set by toRequest
      if (!hasImages(call)) return await sendThinking(request, io);
      await learnVision(call.model, io);
      const sendRefused = async () => {
        const current = withoutRefused(request, call);
        const answer = await sendThinking(current, io);
        return { ...answer, degradation: answer.degradation ?? current.degradation };
      };
      try {
        return await sendRefused();
      } catch (error) {
        const { status_code, cause } = toLLMError(error);
        const text = `${errorMessage(error)} ${String(cause)}`; // the whole message, see serverError
        if (!images.learn({ status: status_code ?? 0, text }, call)) throw error;
        await io.onRefusal?.(error);
        return await sendRefused();
      }
    },
    toError: (error) => toLLMError(error), // this backend throws LLMErrors already
    listModels: (io) => listModels(server, io),
  };
}

async function send(server: ServerAddress, request: WireRequest, io: CallIo): Promise<BackendAnswer> {
  const { tools } = request.context as CallSettings; // set by toRequest
  const blocks = new AnswerBlocks([], { onDelta: io.onDelta, think_tags: true });
  let last: JsonObject | undefined;
  let model: string | undefined;
  let is_empty = true;
  const addText = (kind: "text" | "thinking", text: unknown) => {
    if (typeof text === "string") blocks.append(blocks.keyFor(kind), kind, text);
  };
  const addCall = ({ id, function: fields }: JsonObject) =>
    blocks.addCall({ ...(isObject(fields) ? fields : {}), id });
  try {
    for await (const object of objectsOf(await post(server, "/api/chat", request.body, io))) {
      is_empty = false;
      if (object.error) throw serverError(200, JSON.stringify(object));
      if (typeof object.model === "string") model = object.model;
      const { thinking, content, tool_calls } = isObject(object.message) ? object.message : {};
      addText("thinking", thinking);
      addText("text", content);
      for (const call of objectsIn(tool_calls)) addCall(call);
      if (object.done !== true) continue;
      last = object; // it has the counters, and nothing follows that matters
      break;
    }
  } catch (error) {
    const call = error instanceof LLMError ? malformedCall(error, tools) : undefined;
    if (!call) throw error;
    addCall(call);
    last = {};
  }
  if (!last) {
    const fact = is_empty ? "has no JSON object; check base_url" : "ended before the answer was done";
    throw new LLMError("StreamError", `The response of Ollama ${fact}`);
  }
  const { done_reason, total_duration, load_duration } = last;
  const reason = typeof done_reason === "string" && done_reason ? done_reason : "stop";
  const tool_calls = blocks.calls();
  return {
    content: blocks.content(),
    tool_calls,
    finish_reason: reason === "stop" && tool_calls.length > 0 ? "tool_calls" : reason,
    usage: usageOf(last),
    model,
    metadata: { total_duration, load_duration },
    raw: last,
  };
}

/** Returns the tokens; the server leaves a count out when it counted nothing, as of a cached request. */
function usageOf({ prompt_eval_count: sent, eval_count: answered }: JsonObject): AnswerUsage | undefined {
  const [input_tokens, output_tokens] = [countOf(sent), countOf(answered)];
  if (input_tokens === undefined && output_tokens === undefined) return undefined;
  return { input_tokens: input_tokens ?? 0, output_tokens: output_tokens ?? 0 };
}

async function listModels(server: ServerAddress, io: CallIo): Promise<ListedModel[]> {
  const { models } = await json(server, "/api/tags", undefined, io);
  const names = objectsIn(models).flatMap(({ name }) => typeof name === "string" ? name : []);
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
  const known = Array.isArray(capabilities) ? capabilities.filter((item) => typeof item === "string") : [];
  return {
    id,
    context_window: Number(facts[`${facts["general.architecture"]}.context_length`]) || 0,
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
  for await (const object of objectsOf(await post(server, path, body, io))) return object;
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
    const failure = connectionError(error, `Cannot reach Ollama at ${base_url}`);
    if (!/refused|ECONNREFUSED|nothing listens/i.test(failure.message)) throw failure;
    const hint = "start it with `ollama serve`, or set base_url or the variable OLLAMA_HOST";
    const message = `Cannot reach Ollama at ${base_url}: is Ollama running? nothing listens there; ${hint}`;
    throw new LLMError("NetworkError", message, { cause: error, delay_multiplier: 0 });
  }
  if (response.ok && response.body) return response.body;
  throw serverError(response.status, await response.text(), response.headers);
}

/**
 * Yields the objects of a response, wherever the network cuts it.
 *
 * @throws {LLMError} `StreamError` when the connection breaks, or a line is not a JSON object.
 */
async function* objectsOf(body: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<JsonObject> {
  try {
    for await (const { text } of readEvents(body)) yield lineOf(text);
  } catch (cause) {
    if (cause instanceof LLMError) throw cause;
    const message = `Cannot read the response of Ollama: ${errorMessage(cause)}`;
    throw new LLMError("StreamError", message, { cause });
  }
}

function lineOf(line: string): JsonObject {
  const object = parsed(line);
  if (isObject(object)) return object;
  const message = `Cannot read the response of Ollama: a line is not a JSON object: ${line.slice(0, 80)}`;
  throw new LLMError("StreamError", message);
}

/** Maximum code units of a server's message. */
const MAX_MESSAGE_CHARS = 500;

const NOT_FOUND = /model ["']?([^"' ]+)["']? not found/i;
/** The last words: the server dropped the user's message, because the request did not fit. */
const TOO_LONG =
  /longer than the context length|exceeds? the (context length|available context size)|exceed_context_size|no user query found/i;

/**
 * Returns an error that the server reported.
 *
 * @param status Status of the response; that of a stream has begun with 200.
 * @param body The body as text, or the value of `error`.
 */
function serverError(status: number, body: string, headers?: Headers): LLMError {
  const message = messageIn(body);
  const text = message.slice(0, MAX_MESSAGE_CHARS);
  const status_code = status < 400 ? 500 : status;
  const options: LLMErrorOptions = { status_code, cause: message };
  const [, model] = NOT_FOUND.exec(message) ?? [];
  if (model !== undefined) {
    const advice = `Cannot find the model ${model} in Ollama: get it with \`ollama pull ${model}\``;
    return new LLMError("NotFoundError", advice, options);
  }
  if (TOO_LONG.test(message)) return new LLMError("ContextLengthError", text, options);
  if (/more system memory|out of memory/i.test(message)) {
    const hint = "choose a smaller model, or a smaller context_window";
    return new LLMError("ProviderUnavailableError", `${text}; ${hint}`, { ...options, retryable: false });
  }
  const is_limit = /usage limit/i.test(message); // of a plan of Ollama.com
  const type = is_limit ? "QuotaExceededError" : classifyLLMError(status_code, message);
  return toLLMError({ name: type, message: text, headers }, options);
}

/** Returns the message of a body; that of the model's own server is JSON within the text. */
function messageIn(body: string): string {
  let message = body.trim();
  for (let depth = 0; depth < 3; depth++) {
    const object = parsed(message);
    const error = isObject(object) ? object.error : undefined;
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

/** The server could not read the call that the model wrote. */
const MALFORMED_CALL = /error parsing tool call: raw='([\s\S]*)', err=/;

/**
 * Returns the call that a server's error is about, with the text that the model wrote as its arguments, so
 * that the model gets an error which it can correct. The error does not name the tool: it is the only one, or
 * the first with a property of the text. Undefined for other errors.
 */
function malformedCall({ cause }: LLMError, tools: readonly ToolSpec[]): JsonObject | undefined {
  const [, text] = MALFORMED_CALL.exec(String(cause)) ?? []; // the whole message, see serverError
  if (text === undefined) return undefined;
  const tool = tools.length === 1
    ? tools[0]
    : tools.find(({ parameters: { properties } }) =>
      isObject(properties) && Object.keys(properties).some((key) => text.includes(`"${key}"`))
    );
  return tool && { function: { name: tool.name, arguments: text } };
}
