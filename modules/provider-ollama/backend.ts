/** The API of an Ollama server through `fetch`. */
import { type Degradation, errorMessage, isObject, type JsonObject, LLMError, toLLMError } from "preamp/base";
import type { Backend, BackendAnswer, CallIo, ListedModel, WireRequest } from "preamp/provider";
import { AnswerCollector } from "./answer.ts";
import { malformedCall, toConnectionError, toServerError } from "./errors.ts";
import { type OllamaMessage, type RequestContext, type RequestSettings, toRequest } from "./request.ts";

/** Where the server is. */
export interface ServerAddress {
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
  return {
    toRequest: (call) => toRequest(call, settings),
    send: (request, io) => send(server, request, io),
    toError: (error) => toLLMError(error), // this backend throws LLMErrors already
    listModels: (io) => listModels(server, io),
  };
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
  return { ...answer, degradation: truncationOf(request.body, answer) };
}

/**
 * Returns that the server left out messages: servers before 0.12.10 do not know `truncate` and `shift`. Only
 * a request that is far too long for the window is noticed.
 */
function truncationOf({ messages, options }: JsonObject, { usage }: BackendAnswer): Degradation | undefined {
  const num_ctx = isObject(options) ? Number(options.num_ctx) : 0;
  if (!usage || usage.input_tokens > num_ctx) return undefined;
  const chars = (messages as OllamaMessage[]).reduce((sum, { content }) => sum + content.length, 0);
  if (chars <= num_ctx * MAX_TOKEN_CHARS) return undefined;
  return {
    requested: `a request of ${chars} characters`,
    actual: `${usage.input_tokens} tokens of it`,
    reason: `the server left messages out: num_ctx is ${num_ctx}, see context_window`,
  };
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
  try {
    const value: unknown = JSON.parse(line);
    if (isObject(value)) return value;
  } catch {
    // reported below
  }
  throw new LLMError(
    "StreamError",
    `Cannot read the response of Ollama: a line is not a JSON object: ${line.slice(0, 80)}`,
  );
}
