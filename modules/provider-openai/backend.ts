/** OpenAI's API, and servers with the same API: sends requests with OpenAI's client. */
import { OpenAI } from "openai";
import { isObject, jsonEqual, type JsonObject, LLMError, type ModelInfo } from "preamp/base";
import {
  AnswerBlocks,
  type AssistantPart,
  type Backend,
  type BackendAnswer,
  type CallIo,
  type CallSettings,
  type Conversation,
  type ListedModel,
  type ProviderSettings,
  type UserPart,
  type WireRequest,
  withoutVariables,
} from "preamp/provider";
import { ChatAnswer } from "./chat_answer.ts";
import { chatRequest } from "./chat_request.ts";
import { toError } from "./errors.ts";
import { FORMS, refusedPart, refusesSchema, statedOutputLimit } from "./refusals.ts";
import { optionsOf, type PlanOptions } from "./request_options.ts";
import { ResponsesAnswer } from "./responses_answer.ts";
import { responsesRequest } from "./responses_request.ts";

/** OpenAI's own address. */
const OPENAI_URL = "https://api.openai.com/v1";

/** Timeout of the client; the provider layer has its own. */
const NO_TIMEOUT_MS = 2 ** 31 - 1;

/** Maximum parameters that one attempt learns to leave out. */
const MAX_CORRECTIONS = 5;

/** Minimum of the Responses API; with less room there is no answer. */
const MIN_OUTPUT_TOKENS = 16;

/** The backend with the settings of a plan. Imported on first use, because the client is large. */
export class OpenAIBackend implements Backend {
  readonly #settings: ProviderSettings;
  readonly #options: PlanOptions;
  readonly #uses_chat: boolean;
  /** Model → parameters and forms of messages that the server refused for it. */
  readonly #refused = new Map<string, Set<string>>();

  constructor(settings: ProviderSettings, session_id: string) {
    const { api, parallel_tool_calls, reasoning_summary } = settings.config;
    const own_host = isOpenAI(settings.base_url);
    this.#settings = settings;
    this.#uses_chat = api === undefined ? !own_host : api === "chat";
    this.#options = {
      own_host,
      reasoning_summary: typeof reasoning_summary === "string" ? reasoning_summary : "auto",
      ...(own_host ? { prompt_cache_key: session_id } : {}),
      ...(typeof parallel_tool_calls === "boolean" ? { parallel_tool_calls } : {}),
    };
  }

  /** @param only_now Parameters that are left out of this request alone. */
  toRequest(requested: CallSettings, only_now: readonly string[] = []): WireRequest {
    const known = this.#refusedOf(requested.model);
    const refused = only_now.length === 0 ? known : new Set([...known, ...only_now]);
    const call = refused.has(FORMS.long_ids) ? withShortIds(requested) : requested;
    const options = optionsOf(this.#options, call.model, refused);
    const { conversation } = call;
    if (this.#uses_chat) return chatRequest(call, options);
    return responsesRequest(
      refused.has(FORMS.items) ? { ...call, conversation: withoutNative(conversation) } : call,
      options,
    );
  }

  /**
   * Sends a request. A parameter that the server refuses is left out, now and in later requests. A maximum of
   * the answer that is too large for the server is lowered. A refusal that changes nothing in the request is
   * an error.
   */
  async send(request: WireRequest, io: CallIo): Promise<BackendAnswer> {
    let call = request.context as CallSettings; // set by toRequest
    // an earlier attempt may have found parameters that the server refuses
    let current = this.#refusedOf(call.model).size === 0 ? request : this.toRequest(call);
    const only_now: string[] = [];
    for (let corrections = 0;; corrections++) {
      try {
        const answer = await this.#sendOnce(current.body, call, io);
        return { ...answer, degradation: current.degradation };
      } catch (error) {
        if (corrections >= MAX_CORRECTIONS) throw error;
        const limit = statedOutputLimit(error);
        const isLower = limit !== undefined && limit >= MIN_OUTPUT_TOKENS && limit < call.max_output_tokens;
        if (isLower) call = { ...call, max_output_tokens: limit };
        else if (refusesSchema(error)) only_now.push("response_format");
        else if (!this.#learn(error, current.body, call.model)) throw error;
        const corrected = this.toRequest(call, only_now);
        if (jsonEqual(corrected.body, current.body)) throw error;
        await io.onRefusal?.(error);
        current = corrected;
      }
    }
  }

  readonly toError: (error: unknown) => LLMError = toError;

  async listModels(io: CallIo): Promise<ListedModel[]> {
    const { data }: { data: unknown } = await this.#client(io).models.list({ signal: io.signal });
    const models = Array.isArray(data) ? data.filter(isObject) : [];
    const listed = models.flatMap((model) => listedModel(model) ?? []);
    return this.#options.own_host ? listed.filter(({ id }) => CHAT_MODEL.test(id)) : listed;
  }

  #refusedOf(model: string): Set<string> {
    let refused = this.#refused.get(model);
    if (!refused) this.#refused.set(model, refused = new Set());
    return refused;
  }

  /** Notes what the server refused of a body; returns false when it is another error. */
  #learn(error: unknown, body: JsonObject, model: string): boolean {
    const part = refusedPart(error, body);
    if (part !== undefined) this.#refusedOf(model).add(part);
    return part !== undefined;
  }

  async #sendOnce(body: JsonObject, call: CallSettings, io: CallIo): Promise<BackendAnswer> {
    const blocks = new AnswerBlocks(callIds(call), io.onDelta);
    const states_cost = isOpenRouter(this.#settings.base_url);
    const answer = this.#uses_chat
      ? new ChatAnswer(blocks, states_cost)
      : new ResponsesAnswer(blocks, states_cost);
    const path = this.#uses_chat ? "/chat/completions" : "/responses";
    const stream = body.stream === true;
    const sent = this.#client(io).post<unknown>(path, { body, signal: io.signal, stream });
    const response = await sent.asResponse();
    const is_json = /\bjson\b/i.test(response.headers.get("content-type") ?? "");
    if (stream && !is_json) {
      for await (const event of await sent as AsyncIterable<unknown>) answer.readEvent(event);
    } else answer.readWhole(stream ? await response.json() : await sent); // the server does not stream
    io.signal.throwIfAborted(); // the client ends an aborted stream as if it were complete
    return answer.finish();
  }

  /** Returns a client for one call. */
  #client({ fetch }: CallIo): OpenAI {
    const { api_key, base_url = OPENAI_URL, config } = this.#settings;
    const own = isObject(config.headers) ? config.headers as Record<string, string> : {}; // checked by the schema
    checkHeaders({ ...own, ...(api_key === undefined ? {} : { Authorization: `Bearer ${api_key}` }) });
    return withoutVariables(() =>
      new OpenAI({
        apiKey: api_key ?? "none",
        baseURL: base_url,
        defaultHeaders: { ...(api_key === undefined ? { Authorization: null } : {}), ...own },
        maxRetries: 0,
        timeout: NO_TIMEOUT_MS,
        logLevel: "off",
        dangerouslyAllowBrowser: true, // the check takes a worker for a browser
        fetch,
      })
    );
  }
}

/** Checks headers before the client does: its error would look like one of the connection. */
function checkHeaders(headers: Record<string, string>): void {
  try {
    new Headers(headers);
  } catch (cause) {
    const fact = "api_key or a name or value in headers has characters that HTTP does not allow";
    throw new LLMError("ConfigurationError", `Cannot send the request: ${fact}`, { cause });
  }
}

/** Returns whether an address is OpenAI's own, in any region. */
function isOpenAI(base_url: string | undefined): boolean {
  return base_url === undefined || /(^|\.)api\.openai\.com$/.test(new URL(base_url).hostname);
}

/** Returns whether an address is OpenRouter's: it states the cost of each answer, in US dollars. */
function isOpenRouter(base_url: string | undefined): boolean {
  return base_url !== undefined && /(^|\.)openrouter\.ai$/.test(new URL(base_url).hostname);
}

/** Ids of models that answer messages, among all models of OpenAI. */
const CHAT_MODEL =
  /^(?:gpt-|o\d|chat-latest)(?!.*(?:audio|realtime|image|tts|transcribe|search|instruct|live|deep-research))/;

/** Returns a model of the list; servers name its sizes differently. */
function listedModel(model: JsonObject): ListedModel | undefined {
  const { id, name, top_provider } = model;
  if (typeof id !== "string" || id === "") return undefined;
  const fields: Partial<ModelInfo> = {};
  const top = isObject(top_provider) ? top_provider : {};
  const window = count(
    model.context_window,
    model.context_length,
    model.max_model_len,
    model.max_context_length,
  );
  const output = count(model.max_completion_tokens, top.max_completion_tokens, model.max_output_tokens);
  if (typeof name === "string" && name !== "") fields.display_name = name;
  if (window !== undefined) fields.context_window = window;
  if (output !== undefined) fields.max_output_tokens = output;
  return { id, ...fields };
}

function count(...values: unknown[]): number | undefined {
  return values.find((value): value is number => Number.isSafeInteger(value) && Number(value) > 0);
}

function callIds({ conversation }: CallSettings): string[] {
  return conversation.turns.flatMap(({ parts }) =>
    (parts as readonly AssistantPart[]).flatMap((part) => part.type === "tool_call" ? [part.id] : [])
  );
}

function withoutNative(conversation: Conversation): Conversation {
  const turns = conversation.turns.map((turn) =>
    turn.role === "user" ? turn : { ...turn, parts: turn.parts.filter(({ type }) => type !== "native") }
  );
  return { ...conversation, turns };
}

/** Returns a call whose conversation numbers the ids of calls, with nine letters and digits each. */
function withShortIds(call: CallSettings): CallSettings {
  const ids = new Map(callIds(call).map((id, index) => [id, `call${String(index + 1).padStart(5, "0")}`]));
  const turns = call.conversation.turns.map((turn) => ({
    ...turn,
    parts: (turn.parts as readonly (UserPart | AssistantPart)[]).map((part) =>
      part.type === "tool_call"
        ? { ...part, id: ids.get(part.id)! } // each call has one
        : part.type === "tool_result"
        ? { ...part, tool_call_id: ids.get(part.tool_call_id)! } // each result has a call
        : part
    ),
  })) as Conversation["turns"]; // the parts of each turn have the same types as before
  return { ...call, conversation: { ...call.conversation, turns } };
}
