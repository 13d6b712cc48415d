/**
 * The Messages API through Anthropic's own client. Only two of its resources are imported, a third of its
 * size.
 */
import type { Anthropic } from "@anthropic-ai/sdk";
import { BaseAnthropic } from "@anthropic-ai/sdk/client";
import { Messages } from "@anthropic-ai/sdk/resources/messages/messages";
import { Models } from "@anthropic-ai/sdk/resources/models";
import { isObject, type JsonObject, LLMError, toLLMError } from "preamp/base";
import {
  type Backend,
  type BackendAnswer,
  type CallIo,
  type CallSettings,
  connectionError,
  type ListedModel,
  type ProviderSettings,
  type WireRequest,
  withoutVariables,
} from "preamp/provider";
import { containerOf, readStream, toAnswer, usageOf, type WireMessage } from "./from_response.ts";
import { RefusedThinking } from "./refused_thinking.ts";
import { formatKey, refusesFormat } from "./response_format.ts";
import { toRequest } from "./to_request.ts";

const VENDOR_URL = "https://api.anthropic.com";
/** Requests for one answer: the API pauses a long turn with tools of its own. */
const MAX_CONTINUATIONS = 5;

/** Returns the backend. Imported on first use, because the client is large. */
export function createBackend(settings: ProviderSettings): Backend {
  const refused: Refused = { thinking: new RefusedThinking(), formats: new Set() };
  return {
    toRequest: (call) => toRequest(refused.thinking.without(call), refused.formats),
    toError,
    send: (request, io) => send(request, io, settings, refused),
    listModels: (io) => listModels(io, settings),
  };
}

function clientOf(
  { api_key, base_url = VENDOR_URL, timeout_s }: ProviderSettings,
  io: CallIo,
): BaseAnthropic {
  return withoutVariables(() =>
    new BaseAnthropic({
      apiKey: api_key ?? null,
      baseURL: base_url.replace(/\/v1$/, ""),
      maxRetries: 0,
      timeout: timeout_s * 1000,
      logLevel: "off",
      openTelemetry: false,
      fetch: io.fetch,
    })
  );
}

/** What the API refused in a session. */
interface Refused {
  readonly thinking: RefusedThinking;
  /** Results of `formatKey`. */
  readonly formats: Set<string>;
}

async function send(
  wire: WireRequest,
  io: CallIo,
  settings: ProviderSettings,
  refused: Refused,
): Promise<BackendAnswer> {
  const api = new Messages(clientOf(settings, io));
  const { signal, onDelta } = io;
  const messages: WireMessage[] = [];
  const onUsage = (usage: JsonObject) => {
    const counted = usageOf([...messages, { content: [], stop_reason: null, usage }]);
    if (counted) io.onUsage?.(counted);
  };
  const create = async (params: Anthropic.MessageCreateParamsNonStreaming) => {
    const offset = messages.reduce((sum, { content }) => sum + content.length, 0);
    if (!onDelta) return checked(await api.create(params, { signal }));
    const sent = api.create({ ...params, stream: true }, { signal });
    const response = await sent.asResponse();
    const is_json = /\bjson\b/i.test(response.headers.get("content-type") ?? ""); // the server does not stream
    return is_json
      ? checked(await response.json())
      : await readStream(await sent, { onDelta, onUsage }, offset);
  };
  let call = refused.thinking.without(wire.context as CallSettings); // set by toRequest
  // an earlier attempt may have learnt
  let request = call === wire.context ? wire : toRequest(call, refused.formats);
  for (;;) {
    try {
      messages.push(await create(withAnswered(request, messages)));
    } catch (error) {
      if (refusesFormat(error, request.body)) refused.formats.add(formatKey(call));
      else if (refused.thinking.learn(error, call)) call = refused.thinking.without(call);
      else throw error;
      await io.onRefusal?.(error);
      request = toRequest(call, refused.formats);
      continue;
    }
    if (messages.at(-1)!.stop_reason === "pause_turn" && messages.length <= MAX_CONTINUATIONS) continue;
    return { ...toAnswer(messages, call.tools), degradation: request.degradation };
  }
}

/** Returns a request to continue an answer: the API's own blocks; it sends empty texts but refuses them. */
function withAnswered(
  { body }: WireRequest,
  answered: readonly WireMessage[],
): Anthropic.MessageCreateParamsNonStreaming {
  const params = body as unknown as Anthropic.MessageCreateParamsNonStreaming; // made by `toRequest`
  const messages = answered.map(({ content }) => ({
    role: "assistant",
    content: content.filter(({ type, text }) => type !== "text" || String(text).trim() !== ""),
  })) as unknown as Anthropic.MessageParam[];
  const container = containerOf(answered);
  return {
    ...params,
    ...(container === undefined ? {} : { container }),
    messages: [...params.messages, ...messages],
  };
}

/** Returns the message that a server sent whole. @throws {ServerError} when it is an error. */
function checked(value: unknown): WireMessage {
  if (isObject(value) && isObject(value.error)) throw new ServerError(value);
  if (isObject(value) && typeof value.error === "string") { // as proxies write it
    throw new ServerError({ error: { type: "api_error", message: value.error } });
  }
  const isBlock = (block: unknown) => isObject(block) && typeof block.type === "string";
  if (
    isObject(value) && Array.isArray(value.content) && value.content.every(isBlock) && isObject(value.usage)
  ) {
    return value as unknown as WireMessage;
  }
  throw new LLMError("LLMError", "Cannot read the answer: it is no message of the Messages API");
}

async function listModels(io: CallIo, settings: ProviderSettings): Promise<ListedModel[]> {
  const models: ListedModel[] = [];
  for await (const model of new Models(clientOf(settings, io)).list({ limit: 1000 }, { signal: io.signal })) {
    const { id, display_name, max_input_tokens, max_tokens } = model;
    models.push({
      id,
      display_name,
      ...(max_input_tokens ? { context_window: max_input_tokens } : {}),
      ...(max_tokens ? { max_output_tokens: max_tokens } : {}),
    });
  }
  return models;
}

/** An error that a server, such as a proxy, states in an answer with status 200. */
class ServerError extends Error {
  readonly type: unknown;

  /** @param error The body of the answer; the type decides about the error as in a stream. */
  constructor(readonly error: JsonObject) {
    super("The API reported an error without a message");
    this.type = isObject(error.error) ? error.error.type : undefined;
  }
}

/** Statuses of errors that a stream reports after its response began with 200. */
const STREAM_STATUS: ReadonlyMap<unknown, number> = new Map([
  ["invalid_request_error", 400],
  ["authentication_error", 401],
  ["billing_error", 402],
  ["permission_error", 403],
  ["not_found_error", 404],
  ["request_too_large", 413],
  ["rate_limit_error", 429],
  ["api_error", 500],
  ["timeout_error", 504],
  ["overloaded_error", 529],
]);

function toError(error: unknown): LLMError {
  if (!(error instanceof Error)) return toLLMError(error);
  const { status, type, headers } = error as { status?: number; type?: unknown; headers?: unknown };
  const status_code = status ?? STREAM_STATUS.get(type);
  if (status_code === undefined && error instanceof SyntaxError) {
    const message = "Cannot read the stream of the answer: it is not JSON";
    return new LLMError("StreamError", message, { cause: error });
  }
  if (status_code === undefined && error.cause instanceof Error) {
    return connectionError(error, "Cannot reach the API"); // the client says only "Connection error."
  }
  const message = messageOf(error as unknown as JsonObject) ?? error.message;
  return toLLMError({ name: error.name, message, headers, status: status_code }, { cause: error });
}

/** Returns the API's own sentence; the client's message is the whole body. */
function messageOf({ error }: JsonObject): string | undefined {
  const inner = isObject(error) ? error.error : undefined;
  return isObject(inner) && typeof inner.message === "string" && inner.message !== ""
    ? inner.message
    : undefined;
}
