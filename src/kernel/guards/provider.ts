/** The guard around a provider: no call that was cancelled, denied or not paid for; every answer read, settled and counted. */
import { checkAnswerBounds } from "../../sdk/answer_bounds.ts";
import { errorMessage, PreampError, statusOf, toLLMError } from "../../sdk/errors.ts";
import { isObject, toPlain } from "../../sdk/json.ts";
import { toChatResponse, Usage } from "../../sdk/messages.ts";
import { addSnakeCase, methodOf, withSnakeCase } from "../../sdk/snake_case_aliases.ts";
import { RequestMeter, toolTokens } from "../../sdk/token_estimate.ts";
import { parseToolCall } from "../../sdk/tools.ts";
import type {
  ChatRequest,
  ChatResponse,
  CompleteOptions,
  ContentBlock,
  ModelInfo,
  Provider,
  ProviderInfo,
  StreamDelta,
  ToolCall,
} from "../../sdk/types.ts";
import type { Reservation } from "../run_limits.ts";
import { cancelledError, type SessionContext } from "../session/session_context.ts";
import { withAbort } from "../timeouts.ts";
import type { Turn } from "../session/turn_state.ts";
import { limitOf } from "./tool.ts";

/** What the guard needs of the session beside the session. */
export interface ProviderGuardDeps {
  /**
   * Does what must be done before the loop's next model call: tells what was not told, closes calls that the loop left
   * unanswered, and has the gates decided, whether the loop asked or not.
   */
  beforeCall(provider: string): Promise<void> | void;
  /** Tells an answer that was not told yet. */
  emitResponse(): Promise<unknown> | void;
}

/** The two handles of one provider. */
export interface GuardedProvider {
  /** For the orchestrator: its answers are the turn's. */
  readonly loop: Provider;
  /** For everybody else, such as a hook that asks a model: counted and told, but none of the loop's business. */
  readonly inner: Provider;
}

/** Output tokens reserved when neither request nor provider say how many an answer may have. */
const DEFAULT_MAX_OUTPUT_TOKENS = 4096;

/** Guards a provider mounted under `name`. */
export function guardProvider(
  session: SessionContext,
  provider: Provider,
  name: string,
  duties: ProviderGuardDeps,
): GuardedProvider {
  const guard = new ProviderGuard(session, provider, name, duties);
  const loop: Complete = (request, options) => guard.completeForLoop(request, options);
  const inner: Complete = (request, options) => guard.completeForModule(request, options);
  return { loop: createHandle(guard, loop), inner: createHandle(guard, inner) };
}

type Complete = (request: ChatRequest, options?: CompleteOptions) => Promise<ChatResponse>;

/** Models that a provider tells at any time are told by its handles, too. */
function createHandle(guard: ProviderGuard, complete: Complete): Provider {
  const made = new ProviderHandle(guard, complete);
  const { getModelInfo } = guard;
  return Object.freeze(getModelInfo ? addSnakeCase(Object.assign(made, { getModelInfo })) : made);
}

/** What others hold of a provider: a class, because an object with two spellings of each method takes 100 times as long to make. */
class ProviderHandle implements Provider {
  readonly name: string;
  readonly priority: number;
  readonly #guard: ProviderGuard;
  readonly #complete: Complete;

  constructor(guard: ProviderGuard, complete: Complete) {
    this.name = guard.name;
    this.priority = guard.priority;
    this.#guard = guard;
    this.#complete = complete;
  }

  complete(request: ChatRequest, options?: CompleteOptions): Promise<ChatResponse> {
    return this.#complete(request, options);
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

class ProviderGuard {
  readonly #session: SessionContext;
  readonly #provider: Provider;
  readonly #name: string;
  readonly #deps: ProviderGuardDeps;
  readonly #meter = new RequestMeter();
  #info: ProviderInfo | null = null;

  constructor(session: SessionContext, provider: Provider, name: string, duties: ProviderGuardDeps) {
    this.#session = session;
    this.#provider = provider;
    this.#name = name;
    this.#deps = duties;
  }

  get name(): string {
    return this.#name;
  }

  get priority(): number {
    return priorityOf(this.#provider);
  }

  /** Asks the provider for its models of the moment; undefined when it does not tell them. */
  get getModelInfo(): (() => unknown) | undefined {
    const modelInfo = methodOf(this.#provider, "getModelInfo");
    return modelInfo && (() => modelInfo());
  }

  async listModels(): Promise<ModelInfo[]> {
    const models = await methodOf(this.#provider, "listModels")?.();
    return Array.isArray(models) ? models : [];
  }

  parseToolCalls(response: ChatResponse): ToolCall[] {
    if (response.tool_calls) return response.tool_calls;
    const parsed = methodOf(this.#provider, "parseToolCalls")?.(response);
    return Array.isArray(parsed) ? parsed.map(parseToolCall) : [];
  }

  readInfo(): ProviderInfo {
    return this.#info ??= readInfo(this.#session, this.#provider, this.#name);
  }

  #maxOutputTokens(request: ChatRequest): number {
    if (typeof request.max_output_tokens === "number") return request.max_output_tokens;
    const told = this.readInfo().defaults.max_output_tokens;
    return typeof told === "number" ? told : DEFAULT_MAX_OUTPUT_TOKENS;
  }

  async completeForLoop(request: ChatRequest, options: CompleteOptions = {}): Promise<ChatResponse> {
    const session = this.#session;
    const turn = this.#mayCall();
    const behind = this.#deps.beforeCall(this.#name);
    if (behind) await behind;
    if (turn.denied !== null) throw new PreampError("denied", turn.denied);
    const asked = this.#maxOutputTokens(request);
    const tokens = this.#meter.count(request.messages);
    const of_tools = toolTokens(request.tools);
    const told = this.readInfo().defaults.context_window;
    const room = typeof told === "number" ? told - Math.trunc(asked / 2) - of_tools : 0;
    session.request_size = { tokens, budget: Math.max(0, room) };
    const reservation = this.#reserve(turn, tokens + of_tools, asked);
    const { response, usage } = await this.#call(turn, request, options, reservation, asked);
    turn.answered++;
    turn.response = response;
    turn.response_usage = usage;
    session.last_usage = { answer: (session.last_usage?.answer ?? 0) + 1, input_tokens: usage.input_tokens };
    turn.unreported_response = this.#name;
    turn.expect(response.tool_calls ?? []);
    try {
      settle(turn, reservation, usage);
    } catch (error) {
      // the loop gets no answer, and ends: whoever reads the log is told of the one there was before the loop says so
      if (usage.cost_usd === null) session.host.warn("price_unknown", errorMessage(error));
      await this.#deps.emitResponse();
      throw error;
    }
    return response;
  }

  async completeForModule(request: ChatRequest, options: CompleteOptions = {}): Promise<ChatResponse> {
    const turn = this.#mayCall();
    if (turn.denied !== null) throw new PreampError("denied", turn.denied);
    const asked = this.#maxOutputTokens(request);
    const reservation = this.#reserve(
      turn,
      new RequestMeter().count(request.messages) + toolTokens(request.tools),
      asked,
    );
    const { response, usage } = await this.#call(turn, request, options, reservation, asked);
    const calls = (response.tool_calls?.length ?? 0) > 0;
    const data = { provider: this.#name, usage, tool_calls: calls, response: toPlain(response), inner: true };
    turn.inner_responses.add(data);
    await this.#session.hooks.emit("provider:response", data);
    settle(turn, reservation, usage);
    return response;
  }

  #mayCall(): Turn {
    const { turn, cancellation } = this.#session;
    if (turn === null) {
      throw new PreampError("internal", `Cannot call provider "${this.#name}": no turn is running`);
    }
    if (cancellation.is_cancelled) throw cancelledError();
    return turn;
  }

  #reserve(turn: Turn, input_tokens: number, output_tokens: number): Reservation {
    try {
      return this.#session.run_limits.reserveCall(input_tokens, output_tokens);
    } catch (error) {
      turn.limit ??= limitOf(error);
      throw error;
    }
  }

  async #call(
    turn: Turn,
    request: ChatRequest,
    options: CompleteOptions,
    reservation: Reservation,
    asked: number,
  ): Promise<{ response: ChatResponse; usage: Usage }> {
    const { max_output_tokens } = reservation;
    const lowered = max_output_tokens < asked ? { ...request, max_output_tokens } : request;
    const signal = joinSignals(this.#session, options.signal);
    const stream = options.onDelta ? new DeltaGate(options.onDelta) : null;
    try {
      const answer = this.#provider.complete(
        lowered,
        stream ? { signal, onDelta: stream.onDelta } : { signal },
      );
      const told = await withAbort(Promise.resolve(answer), signal);
      checkAnswerBounds(told, this.#session.limits);
      const read = toChatResponse(told, methodOf(this.#provider, "parseToolCalls"));
      checkAnswerBounds(read, this.#session.limits); // the provider may find calls in its content
      const response = withPairedCalls(this.#session, read);
      const usage = response.usage ??= Usage({});
      return { response, usage };
    } catch (thrown) {
      reservation.settle(null);
      turn.limit ??= limitOf(thrown);
      if (limitOf(thrown) !== null) throw thrown;
      const error = turn.provider_error = toTypedError(thrown, this.#name);
      throw error;
    } finally {
      stream?.close();
    }
  }
}

/** An error with a status, as the SDKs of vendors throw, is told and retried as the failure that it is. */
function toTypedError(error: unknown, provider: string): unknown {
  return statusOf(error) === null ? error : toLLMError(error, { provider });
}

function settle(turn: Turn, reservation: Reservation, usage: Usage): void {
  try {
    reservation.settle(usage);
  } catch (error) {
    turn.limit ??= limitOf(error);
    throw error;
  }
}

function readInfo(session: SessionContext, provider: Provider, name: string): ProviderInfo {
  let told: unknown;
  try {
    told = methodOf(provider, "getInfo")?.();
  } catch (error) {
    session.host.warn(
      "provider_info_failed",
      `Provider "${name}" told nothing of itself: ${errorMessage(error)}`,
    );
  }
  const fields = isObject(told) ? told : {};
  return {
    id: name,
    display_name: name,
    credential_env_vars: [],
    capabilities: [],
    config_fields: [],
    ...fields,
    defaults: isObject(fields.defaults) ? fields.defaults : {},
  };
}

/** Lets the pieces of one answer through while it arrives: none that is no piece, and none after the end. */
class DeltaGate {
  readonly #forward: (delta: StreamDelta) => void;
  #open = true;

  constructor(tell: (delta: StreamDelta) => void) {
    this.#forward = tell;
  }

  // a field, not assigned in the constructor: V8 puts functions that are assigned to a property among what is old, and all that
  // they hold, the whole session, then waits for a full collection
  readonly onDelta = (delta: StreamDelta): void => {
    if (this.#open && isDelta(delta)) this.#forward(delta);
  };

  close(): void {
    this.#open = false;
  }
}

function isDelta(value: unknown): value is StreamDelta {
  return isObject(value) && Number.isSafeInteger(value.block_index) && typeof value.block_type === "string" &&
    typeof value.delta === "string";
}

/** Returns the provider's priority: its own, its config's, else 100 (behaviour.md §7.2). */
function priorityOf(provider: Provider): number {
  if (typeof provider.priority === "number") return provider.priority;
  const { config } = provider as { config?: unknown };
  return isObject(config) && typeof config.priority === "number" ? config.priority : 100;
}

function joinSignals(session: SessionContext, given: AbortSignal | undefined): AbortSignal {
  if (given === undefined || given === session.cancellation.signal) return session.step_signal;
  return AbortSignal.any([session.step_signal, given]);
}

/**
 * Every call of an answer has an id of its own and one block in the content, whatever the provider told: an answer that is
 * stored as its content alone (as R0's loop does) then still pairs with its results.
 */
function withPairedCalls(session: SessionContext, response: ChatResponse): ChatResponse {
  const { tool_calls } = response;
  if (!tool_calls || tool_calls.length === 0) return response;
  const calls = uniqueIds(session, tool_calls);
  response.tool_calls = calls;
  const blocks = response.content.filter(isCallBlock);
  if (
    blocks.length === calls.length &&
    blocks.every((block, index) => block.type === "tool_call" && block.id === calls[index]!.id)
  ) {
    return response;
  }
  const others = response.content.filter((block) => !isCallBlock(block));
  const written = calls.map((call) => ({
    type: "tool_call",
    id: call.id,
    name: call.name,
    input: call.arguments,
  }));
  response.content = [...others, ...written];
  return response;
}

function isCallBlock(block: ContentBlock): boolean {
  return block.type === "tool_call" || block.type === "tool_use";
}

/** A model that repeats an id within one answer gets new ids for the repetitions: every call is answered exactly once. */
function uniqueIds(session: SessionContext, calls: ToolCall[]): ToolCall[] {
  const seen = new Set<string>();
  if (calls.every((call) => !seen.has(call.id) && seen.add(call.id))) return calls;
  seen.clear();
  return calls.map((call) => {
    if (!seen.has(call.id)) {
      seen.add(call.id);
      return call;
    }
    return parseToolCall({
      id: session.host.newId("call"),
      name: call.name,
      arguments: call.invalid_arguments ?? call.arguments,
    });
  });
}
