/**
 * The Gemini API (`generateContent`) through the vendor's client, without the client's own retries and loops;
 * maps its errors.
 */
import {
  classifyLLMError,
  type Degradation,
  errorMessage,
  errorName,
  isObject,
  type JsonObject,
  LLMError,
  type LLMErrorType,
  retryAfterOf,
  statusOf,
  toLLMError,
} from "preamp/base";
import {
  type Backend,
  type BackendAnswer,
  type CallIo,
  connectionError,
  Degradations,
  type ListedModel,
  type ProviderSettings,
  type WireRequest,
  withWatchedBody,
} from "preamp/provider";
// @ts-types="./client_types.ts"
import { GoogleGenAI } from "@google/genai/web"; // the other builds import node:fs and a client for Google Cloud
import type { Content, GenerateContentParameters, GoogleGenAI as Client, Transport } from "./client_types.ts";
import { AnswerCollector } from "./answer.ts";
import { bareId } from "./mod.ts";
import { RefusedSignatures } from "./refused_signatures.ts";
import {
  addRefusedFormat,
  formatKey,
  type RequestContext,
  type RequestSettings,
  toRequest,
} from "./request.ts";

/** Returns the backend. Imported on first use, because the client is large. */
export function createBackend({ api_key = "", base_url, config }: ProviderSettings): Backend {
  const settings = config as unknown as RequestSettings & { readonly api_version: string }; // checked by the schema
  const client = new GoogleGenAI({
    apiKey: api_key,
    httpOptions: {
      apiVersion: settings.api_version,
      ...(base_url === undefined ? {} : { baseUrl: base_url.replace(/\/v1(alpha|beta)?$/, "") }),
    },
  });
  const refused: Refused = { signatures: new RefusedSignatures(), formats: new Set() };
  return {
    toRequest: (call) => toRequest(call, settings, refused.formats),
    send: (request, io) => send(client, request, io, refused),
    toError,
    listModels: (io) => listModels(client, io),
  };
}

/** What the API refused in a session. */
interface Refused {
  readonly signatures: RefusedSignatures;
  /** Results of `formatKey`. */
  readonly formats: Set<string>;
}

async function send(
  client: Client,
  { body, context, degradation }: WireRequest,
  io: CallIo,
  refused: Refused,
): Promise<BackendAnswer> {
  const { model, contents, config } = body as unknown as GenerateContentParameters; // made by toRequest
  const degradations = new Degradations(degradation);
  const connection = new Connection(io);
  const collector = new AnswerCollector({
    tools: context as RequestContext, // made by toRequest
    onDelta: io.onDelta,
    onUsage: io.onUsage,
    tail: () => connection.tail(),
  });
  const ask = async (contents: Content[], config: GenerateContentParameters["config"]) => {
    const parameters = {
      model,
      contents,
      config: {
        ...config,
        ...connection.transport,
        automaticContinuation: false,
        automaticFunctionCalling: { disable: true },
      },
    };
    if (io.onDelta) {
      for await (const chunk of await client.models.generateContentStream(parameters)) collector.add(chunk);
    } else collector.add(await client.models.generateContent(parameters));
  };
  return await connection.run(async () => {
    let current = config;
    for (;;) {
      const known = refused.signatures.without(contents, model);
      try {
        await ask(known, current);
        break;
      } catch (error) {
        if (refusesSchema(error) && current?.responseJsonSchema !== undefined) {
          const { responseJsonSchema: _, ...rest } = current;
          current = rest;
          addRefusedFormat(degradations);
        } else if (!refused.signatures.learn(error, known)) throw error;
        await io.onRefusal?.(error);
      }
    }
    // only now: what the API says of a schema, it also says of other arguments
    if (current !== config) refused.formats.add(formatKey(model, config?.responseJsonSchema));
    const error = collector.is_empty ? parseBody(connection.tail()) : undefined;
    if (error) throw new ServerError(error);
    const answer = collector.finish();
    return { ...answer, degradation: withOtherModel(degradations.merged(), bareId(model), answer.model) };
  });
}

/** What the API says about a schema of answers that is too large for it, often without the reason. */
const REFUSED_SCHEMA =
  /schema in GenerationConfig|too many states|response_(?:json_)?schema|request contains an invalid argument/i;

function refusesSchema(error: unknown): boolean {
  return isObject(error) && error.status === 400 && REFUSED_SCHEMA.test(String(error.message));
}

/**
 * Adds that another model answered, such as the successor of a retired one. An alias may mean any model.
 */
function withOtherModel(
  degradation: Degradation | undefined,
  requested: string,
  actual: string | undefined,
): Degradation | undefined {
  if (actual === undefined || !/^gemini-\d/.test(requested)) return degradation;
  if (actual.startsWith(requested) || requested.startsWith(actual)) return degradation;
  const degradations = new Degradations(degradation);
  degradations.add(requested, "Gemini answered with another model", actual);
  return degradations.merged();
}

async function listModels(client: Client, io: CallIo): Promise<ListedModel[]> {
  const connection = new Connection(io);
  return await connection.run(async () => {
    const models: ListedModel[] = [];
    for await (
      const model of await client.models.list({ config: { pageSize: 1000, ...connection.transport } })
    ) {
      if (!model.name || !model.supportedActions?.includes("generateContent")) continue;
      models.push({
        id: bareId(model.name),
        ...(model.displayName ? { display_name: model.displayName } : {}),
        context_window: model.inputTokenLimit ?? 0,
        max_output_tokens: model.outputTokenLimit ?? 0,
      });
    }
    return models;
  });
}

/** Bytes at the end of a response that are kept. */
const TAIL_BYTES = 16_384;

/** The connection of one request. */
class Connection {
  readonly transport: Transport;
  readonly #io: CallIo;
  #response: Response | undefined;
  #tail: Uint8Array[] = [];
  #tail_bytes = 0;

  /** Creates a connection; the client opens it. */
  constructor(io: CallIo) {
    this.#io = io;
    this.transport = {
      abortSignal: io.signal,
      httpOptions: { fetch: (input, init) => this.#fetch(input, init) },
    };
  }

  /** Returns the text at the end of the response. */
  tail(): string {
    return new TextDecoder().decode(new Uint8Array(this.#tail.flatMap((part) => [...part])));
  }

  /**
   * Runs a request. The client's errors have no headers and do not say whether a response had begun: a
   * failure after its begin is rejected as a `StreamError`, and the headers are added to errors of the API.
   */
  async run<T>(request: () => Promise<T>): Promise<T> {
    try {
      return await request();
    } catch (cause) {
      if (cause instanceof LLMError || this.#io.signal.aborted || !this.#response) throw cause;
      const { headers } = this.#response;
      if (isObject(cause) && cause.name === "ApiError") throw Object.assign(cause, { headers });
      const stated = parseBody(this.tail()); // the client reads it in a stream only with a code
      if (stated) throw new ServerError(stated);
      const message = `Cannot read the response of Gemini: ${errorMessage(cause).slice(0, 300)}`;
      throw new LLMError("StreamError", message, { cause });
    }
  }

  async #fetch(input: Parameters<typeof fetch>[0], init?: RequestInit): Promise<Response> {
    const response = this.#response = await this.#io.fetch(input, init);
    if (!response.ok) return response;
    const watched = withWatchedBody(response, (chunk) => this.#keep(chunk));
    const is_json = /json/i.test(response.headers.get("content-type") ?? "");
    return this.#io.onDelta && is_json ? asStream(watched) : watched;
  }

  #keep(part: Uint8Array): void {
    this.#tail.push(part);
    this.#tail_bytes += part.byteLength;
    while (this.#tail_bytes - this.#tail[0]!.byteLength >= TAIL_BYTES) {
      this.#tail_bytes -= this.#tail.shift()!.byteLength;
    }
  }
}

/**
 * Returns an answer in JSON as a stream, which the client reads: the server does not stream, or sends the
 * chunks as a list.
 */
async function asStream(response: Response): Promise<Response> {
  const text = await response.text();
  try {
    const chunks: unknown[] = [JSON.parse(text)].flat();
    return new Response(chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join(""), response);
  } catch {
    return new Response(text, response); // broke off: the client reports it
  }
}

/** An error that a server, such as a proxy, states in a response with status 200. */
class ServerError extends Error {
  readonly status: number;

  /** @param error The error object of the API; the client has left it out. */
  constructor(error: JsonObject) {
    super(JSON.stringify({ error }));
    this.name = "ApiError"; // as the client's own
    this.status = typeof error.code === "number" ? error.code : 500;
  }
}

/** Maximum code units of a vendor's message. */
const MAX_MESSAGE_CHARS = 500;

const TOO_LONG = /input token count .{1,40}exceeds the maximum number of tokens/i;
const BAD_KEY = /api key (not valid|expired|not found)|API_KEY_INVALID/i;
/** Quotas that a minute's wait does not restore: of a day, or none at all. */
const USED_UP = /per.?day|limit: 0\b|credits? (are|is) depleted|\bspend/i;
/** A rate limit without details. */
const VAGUE_LIMIT = /resource (has been )?exhausted/i;

/** Returns an error of the vendor's client as an LLMError. */
function toError(error: unknown): LLMError {
  const status = statusOf(error);
  if (status === null) {
    const failure = toLLMError(error);
    if (failure.type !== "NetworkError" && errorName(error) !== "NotCapable") return failure;
    return connectionError(error, "Cannot reach the Gemini API");
  }
  const { message, details } = readBody(error);
  const retry_after = retryDelayOf(details, message) ?? retryAfterOf(error);
  const type = typeOf(status, message, details, retry_after !== null);
  const options = { cause: error, status_code: status, retry_after };
  return new LLMError(type, message.slice(0, MAX_MESSAGE_CHARS), options);
}

function typeOf(
  status: number,
  message: string,
  details: readonly JsonObject[],
  has_delay: boolean,
): LLMErrorType {
  if (TOO_LONG.test(message)) return "ContextLengthError";
  const facts = JSON.stringify(details);
  if (status === 400 && (BAD_KEY.test(message) || BAD_KEY.test(facts))) return "AuthenticationError";
  if (status !== 429) return classifyLLMError(status, message);
  if (USED_UP.test(message) || USED_UP.test(facts)) return "QuotaExceededError";
  return has_delay || VAGUE_LIMIT.test(message) ? "RateLimitError" : classifyLLMError(status, message);
}

/** Returns the message and details of an error: the client puts the response's JSON into its message. */
function readBody(error: unknown): { message: string; details: JsonObject[] } {
  let message = error instanceof Error ? error.message : String(error);
  let details: JsonObject[] = [];
  // a response that is not marked as JSON is wrapped once more
  for (let depth = 0; depth < 3; depth++) {
    const body = parseBody(message);
    if (!body) break;
    if (Array.isArray(body.details)) details = body.details.filter(isObject);
    if (typeof body.message !== "string" || body.message === "") break;
    message = body.message;
  }
  return { message: message.trim() || "The API answered with an error that has no message", details };
}

function parseBody(text: string): JsonObject | undefined {
  const start = text.search(/[[{]/);
  if (start === -1) return undefined;
  try {
    const value: unknown = JSON.parse(text.slice(start));
    const body = Array.isArray(value) ? value[0] : value;
    const error = isObject(body) ? body.error : undefined;
    if (typeof error === "string" && error !== "") return { message: error }; // as proxies write it
    return isObject(error) ? error : undefined;
  } catch {
    return undefined; // plain text
  }
}

/** Returns the seconds to wait by `google.rpc.RetryInfo`, such as `"23s"`, or by the message. */
function retryDelayOf(details: readonly JsonObject[], message: string): number | undefined {
  const delay = details.find(({ retryDelay }) => typeof retryDelay === "string")?.retryDelay;
  const seconds = /^(\d+(?:\.\d+)?)s$/.exec(String(delay))?.[1] ??
    /retry in (\d+(?:\.\d+)?)s/i.exec(message)?.[1];
  return seconds === undefined ? undefined : Number(seconds);
}
