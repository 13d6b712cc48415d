/**
 * The guard around a provider. Refuses a call that was cancelled, denied or over a limit; normalises each
 * answer and counts its usage. `model_call.ts` reports the calls of the loop.
 */
import { untilAborted } from "../sdk/abortable.ts";
import { errorMessage, errorName, PreampError } from "../sdk/errors.ts";
import { statusOf, toLLMError, usageOfFailure } from "../sdk/llm_errors.ts";
import { GrowingText } from "../sdk/growing_text.ts";
import { placeInjections } from "../sdk/loop/chat_request.ts";
import { providerFailure, retriesItself } from "../sdk/loop/provider_errors.ts";
import { isObject, toPlain } from "../sdk/json.ts";
import { describeKind } from "../sdk/value_path.ts";
import { costOf, parsePrices } from "../sdk/money.ts";
import { sentTokens, Usage } from "../sdk/messages.ts";
import { addSnakeCase, methodOf, withSnakeCase } from "../sdk/snake_case_aliases.ts";
import { ProviderCall } from "../sdk/request_ids.ts";
import { estimateTokens, requestTokens, toolTokens } from "../sdk/token_estimate.ts";
import { parseToolCall } from "../sdk/tools.ts";
import type {
  ChatRequest,
  ChatResponse,
  CompleteOptions,
  ModelInfo,
  Provider,
  ProviderInfo,
  StreamDelta,
  ToolCall,
} from "../sdk/types.ts";
import { limitOf, type Reservation } from "./run_limits.ts";
import type { StepAbort } from "./timeouts.ts";
import { cancelledError, type SessionContext } from "./session_context.ts";
import type { Turn } from "./turn.ts";
import { FailedAttempt, ModelCall } from "./model_call.ts";
import { type Answer, readAnswer } from "./answer.ts";
import { withinLimits } from "./limit_pause.ts";

/** Output tokens reserved when neither the request nor the provider states a maximum. */
const DEFAULT_MAX_OUTPUT_TOKENS = 4096;

/** A call to a provider, which may pass its key on to another provider: then both count as one. */
interface OpenCall {
  readonly is_for_loop: boolean;
  /** Receives the deltas for the events of a call of the loop. */
  readonly onDelta: ((delta: StreamDelta) => void) | undefined;
  /** Whether the call has not ended. */
  open: boolean;
  /** Whether another provider answers it, or has. */
  taken: boolean;
  /** Usage of another provider that answered it. */
  usage: Usage | null;
  /** Deltas that the caller received, without those of a part that is counted already. */
  text: GrowingText;
  /** Deltas of text among all that the caller received. */
  readonly answer_text: GrowingText;
  /** Whether a part of another provider's answer is counted already. */
  part_is_counted: boolean;
  /** Ids of the model calls within it. */
  readonly requests: ProviderCall;
  /** Error of the limit that its answer reached; null: none. */
  over: unknown;
}

function createCall(is_for_loop: boolean, onDelta?: OpenCall["onDelta"]): OpenCall {
  return {
    is_for_loop,
    onDelta,
    open: true,
    taken: false,
    usage: null,
    text: new GrowingText(),
    answer_text: new GrowingText(),
    part_is_counted: false,
    requests: new ProviderCall(),
    over: null,
  };
}

/** Calls by the keys that their providers received: empty objects, of which a module cannot create one. */
const CALLS = new WeakMap<object, OpenCall>();

/** Returns whether a call is one of the orchestrator, by the key that its provider received. */
export function isCallOfLoop(key: object | undefined): boolean {
  return key !== undefined && CALLS.get(key)?.is_for_loop === true;
}

/** Takes the call of a key for another provider; undefined if the call has ended, or has one. */
function takeCall(key: object | undefined): OpenCall | undefined {
  const call = key && CALLS.get(key);
  if (!call?.open || call.taken) return undefined;
  call.taken = true;
  return call;
}

/**
 * The provider that modules receive. A class, because an object literal with two spellings of each method
 * takes 100 times as long to create.
 */
class ProviderHandle implements Provider {
  readonly name: string;
  readonly priority: number;
  readonly #guard: ProviderGuard;
  readonly #is_for_loop: boolean;

  constructor(guard: ProviderGuard, is_for_loop: boolean) {
    this.name = guard.name;
    this.priority = guard.priority;
    this.#guard = guard;
    this.#is_for_loop = is_for_loop;
  }

  complete(request: ChatRequest, options?: CompleteOptions): Promise<ChatResponse> {
    return this.#is_for_loop
      ? this.#guard.completeForLoop(request, options)
      : this.#guard.complete(request, options);
  }

  getInfo(): ProviderInfo {
    return this.#guard.readInfo();
  }

  listModels(): Promise<ModelInfo[]> {
    return this.#guard.listModels();
  }

  parseToolCalls(response: ChatResponse): ToolCall[] {
    return this.#guard.parseToolCalls(response);
  }
}

withSnakeCase(ProviderHandle);

/** The guard of a provider; modules and the loop receive its handles only. */
export class ProviderGuard {
  /** For the orchestrator: its answers are answers of the turn. */
  readonly loop_handle: Provider;
  /**
   * For all other modules, such as a hook that calls a model: counted and logged, but not part of the turn's
   * conversation.
   */
  readonly handle: Provider;
  readonly #session: SessionContext;
  readonly #provider: Provider;
  readonly #name: string;
  readonly #module_id: string;
  #info: ProviderInfo | null = null;
  #unknown_price_is_reported = false;

  /** @param mount Name that the provider is mounted under, and id of the module. */
  constructor(session: SessionContext, provider: Provider, mount: { name: string; module_id: string }) {
    this.#session = session;
    this.#provider = provider;
    this.#name = mount.name;
    this.#module_id = mount.module_id;
    this.loop_handle = this.#createHandle(true);
    this.handle = this.#createHandle(false);
  }

  #createHandle(is_for_loop: boolean): Provider {
    const handle = new ProviderHandle(this, is_for_loop);
    if (methodOf(this.#provider, "getModelInfo")) {
      addSnakeCase(Object.assign(handle, { getModelInfo: () => this.#readModelInfo() }));
    }
    return Object.freeze(handle);
  }

  get name(): string {
    return this.#name;
  }

  get priority(): number {
    return priorityOf(this.#provider);
  }

  async listModels(): Promise<ModelInfo[]> {
    const models = await methodOf(this.#provider, "listModels")?.();
    if (!Array.isArray(models)) return [];
    for (const model of models) this.#session.noteReturned("model info", model, this.#module_id);
    return models;
  }

  parseToolCalls(response: ChatResponse): ToolCall[] {
    if (response.tool_calls) return response.tool_calls;
    const parsed = methodOf(this.#provider, "parseToolCalls")?.(response);
    return Array.isArray(parsed) ? parsed.map(parseToolCall) : [];
  }

  readInfo(): ProviderInfo {
    if (this.#info === null) {
      this.#info = readInfo(this.#session, this.#provider, this.#name);
      this.#session.noteReturned("provider info", this.#info, this.#module_id);
    }
    return this.#info;
  }

  #readModelInfo(): unknown {
    const info: unknown = methodOf(this.#provider, "getModelInfo")?.();
    this.#session.noteReturned("model info", info, this.#module_id);
    return info;
  }

  /** Returns the maximum of a request, else that of the provider; ignores a number below 0, and NaN. */
  #maxOutputTokens({ max_output_tokens: stated }: ChatRequest): number {
    if (isCount(stated)) return stated;
    const maximum = this.readInfo().defaults.max_output_tokens;
    return isCount(maximum) ? maximum : DEFAULT_MAX_OUTPUT_TOKENS;
  }

  /** A call of the orchestrator: the next step of the turn. */
  async completeForLoop(request: ChatRequest, options: CompleteOptions = {}): Promise<Answer> {
    const turn = this.#requireTurn(request, true);
    if (options.signal?.aborted) throw turn.provider_error = options.signal.reason;
    const { step, steps } = this.#session; // that of the turn's last events is another one
    const { iteration } = await steps.callOf(turn, this.#name);
    if (turn.pending.length > turn.placed) { // of a loop that asked the context for no view
      const messages = placeInjections(request.messages, turn.pending.slice(turn.placed));
      request = { ...request, messages };
      turn.placed = turn.pending.length;
    }
    let call: OpenCall | undefined; // of the last attempt
    const answer = await new ModelCall(this.#session, {
      provider: this.#name,
      iteration,
      max_retries: retriesItself(this.loop_handle) ? 0 : options.max_retries ?? 0,
      shorten: options.shorten,
      attempt: (asked, onDelta) => {
        call = createCall(true, onDelta);
        return this.#attempt(turn, asked, options, call, step);
      },
    }).answer(request);
    if (call!.over !== null) throw call!.over; // there was an attempt
    return answer;
  }

  /** A call of any other module: counted and logged, but not part of the conversation. */
  async complete(request: ChatRequest, options: CompleteOptions = {}): Promise<Answer> {
    const turn = this.#requireTurn(request, false);
    if (options.signal?.aborted) throw options.signal.reason;
    if (turn.denied !== null) throw new PreampError("denied", turn.denied);
    const { step, run_limits, hooks } = this.#session;
    const outer = takeCall(options.call); // it is reserved, counted and logged
    const call = createCall(false);
    const attempted = await this.#attempt(turn, request, options, call, step, outer);
    if (attempted instanceof FailedAttempt) {
      const { error, failure, part } = attempted;
      if (outer) {
        Object.assign(outer, { taken: false, text: new GrowingText(), part_is_counted: part !== null });
      }
      if (failure !== null && (!outer || part) && turn === this.#session.turn && !step.is_ended) {
        if (part) run_limits.countPart(part);
        await hooks.emit("provider:error", {
          ...failure,
          ...(part ? { usage: toPlain(part) } : {}),
          inner: true,
        });
      }
      throw noteLimit(turn, error);
    }
    const { usage } = attempted;
    if (outer?.open) outer.usage = usage;
    else {
      if (outer) run_limits.countPart(usage); // the outer call ended without it
      const tool_calls = (attempted.tool_calls?.length ?? 0) > 0;
      const data = { provider: this.#name, usage, tool_calls, response: toPlain(attempted), inner: true };
      await hooks.emit("provider:response", data);
    }
    if (call.over !== null) throw call.over;
    return attempted;
  }

  /**
   * Makes one attempt, within the limits of the run.
   *
   * @param outer The call of which this one is a part.
   * @throws {PreampError} `limit_reached` when the call may not be made.
   */
  async #attempt(
    turn: Turn,
    request: ChatRequest,
    options: CompleteOptions,
    call: OpenCall,
    step: StepAbort,
    outer?: OpenCall,
  ): Promise<Answer | FailedAttempt> {
    const reserved = outer ? null : this.#reserve(turn, request, call.is_for_loop);
    const reservation = reserved instanceof Promise ? await reserved : reserved;
    let answer: Answer;
    try {
      const received = await this.#send(request, options, call, reservation, step);
      answer = readAnswer(this.#session, this.#provider, received, call.usage);
      this.#session.noteReturned("response", received, this.#module_id);
    } catch (thrown) {
      const is_aborted = options.signal?.aborted === true;
      reservation?.settle(null, is_aborted && !step.is_ended); // a part counts with the event that reports it
      const is_ended = step.is_ended || limitOf(thrown) !== null ||
        errorName(thrown) === "AbortError" && !is_aborted;
      const error = toTypedError(thrown, this.#name);
      if (call.is_for_loop) {
        turn.broken_off_text = call.answer_text.value;
        turn.provider_error = error;
      }
      const failure = providerFailure(this.#name, error);
      const request_id = call.requests.end(); // the event of the failure ends it
      return new FailedAttempt(
        error,
        failure && request_id !== null ? { request_id, ...failure } : failure,
        this.#partOf(thrown, request, options, call),
        is_ended,
      );
    } finally {
      call.open = false;
    }
    if (call.is_for_loop) this.#setAnswer(turn, answer);
    try {
      reservation?.settle(answer.usage);
    } catch (error) {
      call.over = noteLimit(turn, error); // thrown once the answer is reported
      if (answer.usage.cost_usd === null) this.#session.host.warn("price_unknown", errorMessage(error));
      return answer;
    }
    if (reservation && answer.usage.cost_usd === null) this.#reportUnknownPrice(answer);
    return answer;
  }

  /**
   * Reports once that the policy's dollar limit does not count the calls of this provider, if it needs a key:
   * one without a key, such as a local server, costs nothing.
   */
  #reportUnknownPrice({ model = "its model" }: Answer): void {
    const { config_fields: fields } = this.readInfo();
    const isKey = (field: unknown) => isObject(field) && field.field_type === "secret" && field.required;
    if (this.#unknown_price_is_reported || !Array.isArray(fields) || !fields.some(isKey)) return;
    this.#unknown_price_is_reported = true;
    this.#session.host.warn(
      "price_unknown",
      `The price of ${model} is unknown: max_cost_usd does not count its calls; state prices in the config of ` +
        `provider "${this.#name}"`,
    );
  }

  /** Makes the answer the last one of the turn. */
  #setAnswer(turn: Turn, response: Answer): void {
    const session = this.#session;
    turn.pending.splice(0, turn.placed); // the model has read them
    turn.placed = 0;
    turn.answered++;
    turn.response = response;
    turn.broken_off_text = "";
    session.last_usage = {
      answer: (session.last_usage?.answer ?? 0) + 1,
      input_tokens: sentTokens(response.usage),
    };
    turn.expect(response.tool_calls ?? NO_CALLS);
  }

  /**
   * Returns the usage of the part of an answer that the caller received before the call failed, as far as
   * unknown estimated; null without a part. A call that the caller aborts counts from its request on.
   */
  #partOf(thrown: unknown, request: ChatRequest, { signal }: CompleteOptions, call: OpenCall): Usage | null {
    if (call.part_is_counted) return null;
    const { value: text } = call.text;
    const stated = call.usage ?? usageOfFailure(thrown);
    if (stated !== null || (text === "" && signal?.aborted !== true)) return stated;
    const input_tokens = requestTokens(request.messages) + toolTokens(request.tools);
    return Usage({ input_tokens, output_tokens: estimateTokens(text), estimated: true });
  }

  /** Returns the turn of a call. @throws {Error} without a running turn, after a cancel, without messages. */
  #requireTurn(request: ChatRequest, is_for_loop: boolean): Turn {
    const { turn, cancellation } = this.#session;
    if (turn === null) {
      throw new PreampError("internal", `Cannot call provider "${this.#name}": no turn is running`);
    }
    if (cancellation.is_cancelled) {
      turn.was_stopped ||= is_for_loop;
      throw cancelledError();
    }
    if (!Array.isArray(request?.messages)) throw this.#unusableRequest(request);
    return turn;
  }

  #unusableRequest(request: unknown): PreampError {
    const fact = isObject(request)
      ? `messages must be a list: received ${describeKind(request.messages)}`
      : `the request must be {messages: […]}: received ${describeKind(request)}`;
    return new PreampError("module_invalid", `Cannot call provider "${this.#name}": ${fact}`);
  }

  #reserve(
    turn: Turn,
    request: ChatRequest,
    is_for_loop: boolean,
  ): Reservation | Promise<Reservation> {
    const session = this.#session;
    const max_output_tokens = this.#maxOutputTokens(request);
    const message_tokens = requestTokens(request.messages);
    const tool_tokens = toolTokens(request.tools);
    if (is_for_loop) {
      const window = this.readInfo().defaults.context_window;
      const budget = typeof window === "number"
        ? window - Math.trunc(max_output_tokens / 2) - tool_tokens
        : 0;
      session.request_size = { tokens: message_tokens, budget: Math.max(0, budget) };
    }
    const input_tokens = message_tokens + tool_tokens;
    try {
      const reserved = withinLimits(
        session,
        () => session.run_limits.reserveCall(input_tokens, max_output_tokens),
        { next: () => this.#mostOf(input_tokens, max_output_tokens) },
      );
      return reserved instanceof Promise
        ? reserved.catch((error) => {
          throw noteLimit(turn, error);
        })
        : reserved;
    } catch (error) {
      throw noteLimit(turn, error);
    }
  }

  /** Returns what a call takes at most, by the prices that the provider states of its model. */
  #mostOf(input_tokens: number, output_tokens: number): { tokens: number; cost_usd: string | null } {
    const tokens = input_tokens + output_tokens;
    try {
      const info = this.#readModelInfo();
      const prices = isObject(info) && isObject(info.prices) ? parsePrices(info.prices) : null;
      const usage = Usage({ input_tokens, output_tokens });
      return { tokens, cost_usd: prices && costOf(usage, prices) };
    } catch {
      return { tokens, cost_usd: null }; // prices that cannot be read
    }
  }

  /** Calls the provider. `reservation` is null for a part of another call. */
  #send(
    request: ChatRequest,
    options: CompleteOptions,
    call: OpenCall,
    reservation: Reservation | null,
    step: StepAbort,
  ): Promise<unknown> {
    const maximum = this.#maxOutputTokens(request);
    const max_output_tokens = reservation?.max_output_tokens ?? maximum; // at most the maximum
    const is_changed = max_output_tokens !== (request.max_output_tokens ?? maximum);
    const { cancellation } = this.#session;
    const own_signal = options.signal === cancellation.signal ? undefined : options.signal;
    const signal = own_signal ? AbortSignal.any([step.signal, own_signal]) : step.signal;
    // perf: a named constant on purpose, see src/docs/performance.md#closures
    const onDelta = (delta: StreamDelta): void => {
      if (!call.open || !isDelta(delta)) return; // a late one belongs to no answer
      call.text.append(delta.delta);
      if (delta.block_type === "text") call.answer_text.append(delta.delta);
      call.onDelta?.(delta);
      options.onDelta?.(delta);
    };
    const key = {};
    CALLS.set(key, call);
    const sent = is_changed ? { ...request, max_output_tokens } : request;
    const sent_options = options.onDelta || call.onDelta
      ? { signal, call: key, onDelta }
      : { signal, call: key };
    const pending = step.race(call.requests.run(() => this.#provider.complete(sent, sent_options)));
    return own_signal ? untilAborted(own_signal, pending) : pending;
  }
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && value >= 0;
}

const NO_CALLS: readonly ToolCall[] = [];

/**
 * Converts an error with an HTTP status, as vendors' SDKs throw it, to an LLM error, so that it is retried
 * and reported as one.
 */
function toTypedError(error: unknown, provider: string): unknown {
  return statusOf(error) === null ? error : toLLMError(error, { provider });
}

/** Notes in the turn which limit an error reports, if any; returns the error. */
function noteLimit(turn: Turn, error: unknown): unknown {
  turn.limit ??= limitOf(error);
  return error;
}

function readInfo(session: SessionContext, provider: Provider, name: string): ProviderInfo {
  let info: unknown;
  try {
    info = methodOf(provider, "getInfo")?.();
  } catch (error) {
    session.host.warn(
      "provider_info_failed",
      `Cannot read the info of provider "${name}": ${errorMessage(error)}`,
    );
  }
  const fields: Partial<ProviderInfo> = isObject(info) ? { ...info } : {}; // perf: the copy of a whole object is fast
  fields.id ??= name;
  fields.display_name ??= name;
  fields.credential_env_vars ??= [];
  fields.capabilities ??= [];
  fields.config_fields ??= [];
  if (!isObject(fields.defaults)) fields.defaults = {};
  return fields as ProviderInfo; // every field is there
}

function isDelta(value: unknown): value is StreamDelta {
  return isObject(value) && Number.isSafeInteger(value.block_index) && typeof value.block_type === "string" &&
    typeof value.delta === "string";
}

/** Returns the provider's own priority, else that of its config, else 100. */
function priorityOf(provider: Provider): number {
  if (typeof provider.priority === "number") return provider.priority;
  const { config } = provider as { config?: unknown };
  return isObject(config) && typeof config.priority === "number" ? config.priority : 100;
}
