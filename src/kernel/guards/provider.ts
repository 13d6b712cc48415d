/**
 * The guard around a provider. Refuses a call that was cancelled, denied or over a limit; normalises each
 * answer and counts its usage.
 */
import { untilAborted } from "../../sdk/abortable.ts";
import { errorMessage, errorName, PreampError } from "../../sdk/errors.ts";
import { statusOf, toLLMError, usageOfFailure } from "../../sdk/llm_errors.ts";
import { GrowingText } from "../../sdk/growing_text.ts";
import { placeInjections } from "../../sdk/loop/chat_request.ts";
import { providerFailure } from "../../sdk/loop/provider_errors.ts";
import { isObject, toPlain } from "../../sdk/json.ts";
import { describeKind } from "../../sdk/value_path.ts";
import { costOf, parsePrices } from "../../sdk/money.ts";
import { sentTokens, Usage } from "../../sdk/messages.ts";
import { addSnakeCase, methodOf, withSnakeCase } from "../../sdk/snake_case_aliases.ts";
import { ProviderCall } from "../../sdk/request_ids.ts";
import { estimateTokens, requestTokens, toolTokens } from "../../sdk/token_estimate.ts";
import { parseToolCall } from "../../sdk/tools.ts";
import type {
  ChatRequest,
  ChatResponse,
  CompleteOptions,
  JsonObject,
  ModelInfo,
  Provider,
  ProviderInfo,
  StreamDelta,
  ToolCall,
} from "../../sdk/types.ts";
import { limitOf, type Reservation } from "../run_limits.ts";
import type { StepAbort } from "../timeouts.ts";
import { cancelledError, type SessionContext } from "../session/session_context.ts";
import type { Turn } from "../turn.ts";
import { type Answer, readAnswer } from "./provider_answer.ts";
import { withinLimits } from "./limit_pause.ts";

/** Output tokens reserved when neither the request nor the provider states a maximum. */
const DEFAULT_MAX_OUTPUT_TOKENS = 4096;

/** A call to a provider, which may pass its key on to another provider: then both count as one. */
interface OpenCall {
  readonly is_for_loop: boolean;
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
    return this.#guard.complete(request, options, this.#is_for_loop);
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

  /** @param is_for_loop Whether the answer is one of the turn; otherwise it is only counted and logged. */
  async complete(
    request: ChatRequest,
    options: CompleteOptions = {},
    is_for_loop = false,
  ): Promise<ChatResponse> {
    const turn = this.#requireTurn(is_for_loop);
    if (!Array.isArray(request?.messages)) throw this.#unusableRequest(request);
    const { step } = this.#session; // that of the turn's last events is another one
    if (options.signal?.aborted) throw noteError(turn, options.signal.reason, is_for_loop);
    const skipped = is_for_loop ? this.#session.loop_steps.beforeCall(turn, this.#name) : undefined;
    if (skipped) await skipped;
    if (turn.denied !== null) throw new PreampError("denied", turn.denied);
    const injected = is_for_loop ? turn.pending.length : 0;
    if (injected > turn.placed) { // of a loop that asked the context for no view
      const messages = placeInjections(request.messages, turn.pending.slice(turn.placed));
      request = { ...request, messages };
    }
    const outer = is_for_loop ? undefined : takeCall(options.call); // it is reserved, counted and logged
    const reserved = outer ? null : this.#reserve(turn, request, is_for_loop);
    const reservation = reserved instanceof Promise ? await reserved : reserved;
    const state = {
      open: true,
      taken: false,
      usage: null,
      text: new GrowingText(),
      answer_text: new GrowingText(),
      part_is_counted: false,
    };
    const call: OpenCall = { ...state, is_for_loop, requests: new ProviderCall() };
    let response: Answer;
    try {
      const received = await this.#send(request, options, call, reservation, step);
      response = readAnswer(this.#session, this.#provider, received, call.usage);
      this.#session.noteReturned("response", received, this.#module_id);
    } catch (thrown) {
      // a part of an answer counts with the event that reports it
      reservation?.settle(null, options.signal?.aborted === true && !step.is_ended);
      if (is_for_loop) turn.broken_off_text = call.answer_text.value;
      if (is_for_loop && call.text.value !== "" && this.#isBrokenOff(thrown, options, turn, step)) {
        turn.broken_off = this.#partOf(thrown, request, options, call);
      }
      const part = step.is_ended ? null : this.#partOf(thrown, request, options, call);
      const error = toTypedError(thrown, this.#name);
      const failure = this.#failureOf(error, part);
      const request_id = call.requests.end(); // the event of the failure ends it
      if (failure !== null && request_id !== null) failure.request_id = request_id;
      if (outer) {
        Object.assign(outer, { taken: false, text: new GrowingText(), part_is_counted: part !== null });
      }
      if (failure !== null && (!outer || part)) await this.#noteFailure(turn, step, failure, is_for_loop);
      if (limitOf(thrown) !== null) throw noteLimit(turn, thrown);
      throw noteError(turn, error, is_for_loop);
    } finally {
      call.open = false;
    }
    if (outer?.open) outer.usage = response.usage;
    else if (is_for_loop) this.#setAnswer(turn, response, injected);
    else {
      if (outer) this.#session.run_limits.countPart(response.usage); // the outer call ended without it
      await this.#emitInner(turn, response);
    }
    try {
      reservation?.settle(response.usage);
    } catch (error) {
      noteLimit(turn, error);
      if (!is_for_loop) throw error;
      if (response.usage.cost_usd === null) this.#session.host.warn("price_unknown", errorMessage(error));
      await this.#session.loop_steps.emitResponses(); // the loop receives only the error
      throw error;
    }
    if (reservation && response.usage.cost_usd === null) this.#reportUnknownPrice(response);
    return response;
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

  /** Makes the answer the last one of the turn. `injected`: injections that the model has read. */
  #setAnswer(turn: Turn, response: Answer, injected: number): void {
    const session = this.#session;
    turn.pending.splice(0, injected);
    turn.placed = 0;
    const { usage } = response;
    turn.answered++;
    turn.response = response;
    turn.broken_off_text = "";
    session.last_usage = { answer: (session.last_usage?.answer ?? 0) + 1, input_tokens: sentTokens(usage) };
    turn.unreported.push({ provider: this.#name, response, usage });
    turn.expect(response.tool_calls ?? NO_CALLS);
  }

  /**
   * Returns the usage of the part of an answer that the caller received before the call failed, as far as
   * unknown estimated; null without a part. A call that the caller aborts counts from its request on. Not
   * called when the turn's step has ended: then no part counts.
   */
  #partOf(thrown: unknown, request: ChatRequest, { signal }: CompleteOptions, call: OpenCall): Usage | null {
    if (call.part_is_counted) return null;
    const { value: text } = call.text;
    const stated = call.usage ?? usageOfFailure(thrown);
    if (stated !== null || (text === "" && signal?.aborted !== true)) return stated;
    const input_tokens = requestTokens(request.messages) + toolTokens(request.tools);
    return Usage({ input_tokens, output_tokens: estimateTokens(text), estimated: true });
  }

  /** Returns whether a cancellation or the end of the time ended a call of the turn. */
  #isBrokenOff(thrown: unknown, { signal }: CompleteOptions, turn: Turn, step: StepAbort): boolean {
    if (turn !== this.#session.turn || step !== this.#session.step) return false;
    if (step.is_ended || limitOf(thrown) !== null) return true;
    return errorName(thrown) === "AbortError" && signal?.aborted !== true;
  }

  /** Returns the data of `provider:error`, or null when a guard stopped the call. */
  #failureOf(error: unknown, part: Usage | null): JsonObject | null {
    const failure = providerFailure(this.#name, error);
    if (failure && part) failure.usage = toPlain(part);
    return failure;
  }

  /** Logs a failure that is not one of the turn; the loop reports its own. */
  async #noteFailure(turn: Turn, step: StepAbort, failure: JsonObject, is_for_loop: boolean): Promise<void> {
    if (turn !== this.#session.turn || step.is_ended) return;
    if (is_for_loop) {
      if (failure.usage !== undefined) turn.unreported_parts.push(failure);
      else if (failure.request_id !== undefined) turn.failed_request = failure;
      return;
    }
    const data = { ...failure, inner: true };
    turn.inner_responses.add(data);
    await this.#session.hooks.emit("provider:error", data);
  }

  /** Logs an answer that is not one of the turn. */
  async #emitInner(turn: Turn, response: Answer): Promise<void> {
    const { usage } = response;
    const calls = (response.tool_calls?.length ?? 0) > 0;
    const data = { provider: this.#name, usage, tool_calls: calls, response: toPlain(response), inner: true };
    turn.inner_responses.add(data);
    await this.#session.hooks.emit("provider:response", data);
  }

  /** Returns the running turn. @throws {Error} when no turn is running, or the run was cancelled. */
  #requireTurn(is_for_loop: boolean): Turn {
    const { turn, cancellation } = this.#session;
    if (turn === null) {
      throw new PreampError("internal", `Cannot call provider "${this.#name}": no turn is running`);
    }
    if (cancellation.is_cancelled) {
      turn.was_stopped ||= is_for_loop;
      throw cancelledError();
    }
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
      options.onDelta?.(delta);
    };
    const key = {};
    CALLS.set(key, call);
    const sent = is_changed ? { ...request, max_output_tokens } : request;
    const sent_options = options.onDelta ? { signal, call: key, onDelta } : { signal, call: key };
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

/** Notes in the turn an error of a call of the loop; returns the error. */
function noteError(turn: Turn, error: unknown, is_for_loop: boolean): unknown {
  if (is_for_loop) turn.provider_error = error;
  return error;
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
