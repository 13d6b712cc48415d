/** The provider of a backend: retries, limits, repair, usage, cost and events around its attempts. */
import type { Coordinator, MountReturn } from "../contracts.ts";
import { errorMessage } from "../errors.ts";
import type { JsonObject } from "../json.ts";
import { LLMError } from "../llm_errors.ts";
import type { ContentBlock } from "../content_blocks.ts";
import { type ChatRequest, type ChatResponse, type ResponseFormat, sentTokens, Usage } from "../messages.ts";
import { sumCostUsd } from "../money.ts";
import { estimateTokens, requestTokens, toolTokens } from "../token_estimate.ts";
import { type CompleteOptions, type ModelInfo, type Provider, ProviderInfo } from "../providers.ts";
import type { RetryNotice } from "../retry.ts";
import { parseToolCall, type ToolCall } from "../tools.ts";
import { MAX_ANSWER_BYTES } from "./answer_size.ts";
import { type Attempt, tryUntilAnswered } from "./attempt.ts";
import type { AnswerUsage, Backend, BackendAnswer, CallIo, CallSettings, WireRequest } from "./backend.ts";
import { sharedLimiter } from "./call_limiter.ts";
import type { Repair } from "./conversation.ts";
import { ProviderFailures } from "./failures.ts";
import {
  ModelTable,
  needsKey,
  originOf,
  type ProviderDefinition,
  type ProviderSettings,
  readSettings,
} from "./settings.ts";
import { toConversation } from "./to_conversation.ts";

/**
 * Mounts a provider with the settings of a plan, and contributes its cost to `session.cost`. Without a key
 * the provider is skipped, and the reason names the variable and the page where a key is created.
 *
 * @throws {PreampError} `module_invalid` when a setting is invalid.
 */
export async function mountProvider(
  coordinator: Coordinator,
  config: JsonObject,
  definition: ProviderDefinition,
): Promise<MountReturn> {
  const settings = readSettings(config, definition, coordinator.config);
  if (settings.api_key === undefined && needsKey(definition, settings.config)) {
    return { skipped: missingKey(definition, coordinator.config, config) };
  }
  const provider = new BackendProvider(coordinator, definition, settings);
  coordinator.registerContributor(
    "session.cost",
    `provider:${definition.id}`,
    () => ({ cost_usd: provider.cost_usd }),
  );
  await coordinator.mount("providers", provider, definition.id);
}

function missingKey(definition: ProviderDefinition, plan: JsonObject, config: JsonObject): string {
  const { id, module, credential } = definition;
  const { env_vars, url } = credential!; // a missing key implies a credential
  const fact = `Cannot use ${module ?? `provider-${id}`} without a key`;
  const key = originOf("api_key", plan, config, definition);
  const in_plan = `state the key as api_key in its config, such as \${${env_vars[0]}}`;
  if (!key.stated && originOf("base_url", plan, config, definition).stated) {
    return `${fact}: base_url is another server: ${in_plan}; the variable alone is the key for the vendor's own address`;
  }
  const variables = key.variables.join(" or ");
  return `${fact}: ${
    variables === "" ? in_plan : `set the variable ${variables}`
  }; keys are created at ${url}`;
}

/** What a call goes to. */
interface CallTarget {
  readonly backend: Backend;
  readonly model: string;
  readonly options?: CompleteOptions;
  /** Absent for a list of models. */
  readonly request?: ChatRequest;
}

/** A provider whose answers come from a {@link Backend}. */
class BackendProvider implements Provider {
  readonly name: string;
  declare readonly priority?: number;
  readonly #coordinator: Coordinator;
  readonly #definition: ProviderDefinition;
  readonly #settings: ProviderSettings;
  readonly #table: ModelTable;
  readonly #failures: ProviderFailures;
  readonly #limiter_key: string;
  /** Value of `provider` on the blocks of this provider's answers. */
  readonly #origin: string;
  /** Milliseconds on the session's clock. */
  readonly #mounted_ms: number;
  readonly #repaired = new Set<string>();
  #backend: Promise<Backend> | null = null;
  #costs: (string | null)[] = [];

  /** Creates a provider; the backend is loaded at its first call. */
  constructor(coordinator: Coordinator, definition: ProviderDefinition, settings: ProviderSettings) {
    this.name = definition.id;
    if (settings.priority !== undefined) this.priority = settings.priority;
    this.#coordinator = coordinator;
    this.#definition = definition;
    this.#settings = settings;
    this.#table = new ModelTable(settings, definition);
    this.#failures = new ProviderFailures(definition, settings, coordinator.config);
    const { base_url, api_key } = settings;
    this.#limiter_key = JSON.stringify([definition.id, base_url, api_key]);
    this.#origin = base_url === undefined ? definition.id : `${definition.id}@${new URL(base_url).host}`;
    this.#mounted_ms = coordinator.clock.monotonic();
  }

  /** Cost of all answers in US dollars; null when it is unknown. */
  get cost_usd(): string | null {
    return this.#costs.includes(null) ? null : sumCostUsd(this.#costs);
  }

  getInfo(): ProviderInfo {
    const { id, display_name, credential, config_fields = [] } = this.#definition;
    const { model } = this.#settings;
    const { context_window, capabilities } = this.#table.factsOf(model);
    const key = credential
      ? [{
        id: "api_key",
        display_name: "API key",
        field_type: "secret" as const,
        prompt: `Key from ${credential.url}`,
        env_var: credential.env_vars[0] ?? null,
        required: needsKey(this.#definition, this.#settings.config),
      }]
      : [];
    return ProviderInfo({
      id,
      display_name,
      credential_env_vars: [...credential?.env_vars ?? []],
      capabilities: [...capabilities, "retries"],
      defaults: { model, context_window, max_output_tokens: this.#table.outputLimit(model, undefined) },
      config_fields: [
        ...key,
        { id: "model", display_name: "Model", required: false, default: model },
        ...config_fields,
      ],
    });
  }

  /** Returns the facts about the configured model. */
  getModelInfo(): ModelInfo {
    return this.#table.infoOf({ id: this.#settings.model });
  }

  async listModels(): Promise<ModelInfo[]> {
    const backend = await this.#load();
    const target = { backend, model: this.#settings.model };
    const listed = await this.#tryUntilAnswered(target, (io) => backend.listModels(io));
    return listed.map((model) => this.#table.infoOf(model));
  }

  parseToolCalls(response: ChatResponse): ToolCall[] {
    return callsOf(response);
  }

  async complete(request: ChatRequest, options: CompleteOptions = {}): Promise<ChatResponse> {
    const { conversation, repairs } = toConversation(request.messages, this.#origin);
    await this.#reportRepairs(repairs);
    const call = this.#callSettings(request, options, conversation);
    const backend = await this.#load();
    const wire = backend.toRequest(call);
    const { hooks, clock } = this.#coordinator;
    const facts = { provider: this.name, model: call.model };
    const { raw, reasoning_effort, thinking_budget } = { ...this.#settings, ...call };
    await hooks.emit("llm:request", {
      ...facts,
      message_count: request.messages.length,
      has_instructions: conversation.system.length > 0,
      reasoning_enabled: reasoning_effort !== undefined,
      thinking_enabled: (thinking_budget ?? 0) > 0,
      ...(thinking_budget === undefined ? {} : { thinking_budget }),
      ...(raw ? { raw: wire.body } : {}),
    });
    const started_ms = clock.monotonic();
    const report = (outcome: JsonObject) => {
      const duration_ms = Math.round(clock.monotonic() - started_ms);
      return hooks.emit("llm:response", { ...facts, duration_ms, ...outcome });
    };
    try {
      const target = { backend, model: call.model, options, request };
      const answer = await this.#tryUntilAnswered(target, (io) => backend.send(wire, io));
      const response = this.#toResponse(withCutReason(answer, call), wire, call.model, request);
      const { usage = null } = response;
      await report({ status: "ok", usage, ...(raw ? { raw: { answer: answer.raw ?? null } } : {}) });
      return response;
    } catch (error) {
      const { type, message, usage } = error as LLMError; // #tryUntilAnswered rejects with nothing else
      if (usage) this.#costs.push(usage.cost_usd);
      await report({ status: "error", error: { type, msg: message }, ...(usage ? { usage } : {}) });
      throw error;
    }
  }

  /** Loads the backend once; a failed import is tried again at the next call. */
  #load(): Promise<Backend> {
    return this.#backend ??= Promise.try(() => this.#definition.load(this.#settings)).catch((cause) => {
      this.#backend = null;
      const message = `Cannot load the package of ${this.#definition.display_name}: ${errorMessage(cause)}`;
      throw this.#failures.create("LLMError", message, { cause });
    });
  }

  #callSettings(
    request: ChatRequest,
    options: CompleteOptions,
    conversation: CallSettings["conversation"],
  ): CallSettings {
    const settings = this.#settings;
    const model = request.model ?? settings.model;
    const { temperature, top_p, reasoning_effort, thinking_budget } = {
      ...settings,
      ...withoutUndefined(request),
    };
    return withoutUndefined({
      model,
      conversation,
      tools: request.tools ?? [],
      max_output_tokens: this.#table.outputLimit(model, request.max_output_tokens),
      stream: options.onDelta !== undefined,
      tool_choice: request.tool_choice,
      response_format: request.response_format as ResponseFormat | undefined,
      temperature,
      top_p,
      stop: request.stop,
      reasoning_effort,
      thinking_budget: thinking_budget as number | undefined,
    }) as CallSettings; // its optional fields are absent instead of undefined
  }

  /** Resolves to the result of the first attempt that succeeds. Rejects with an LLMError. */
  async #tryUntilAnswered<T>(
    { backend, model, options = {}, request }: CallTarget,
    send: (io: CallIo) => Promise<T>,
  ): Promise<T> {
    const { clock } = this.#coordinator;
    const { max_retries } = this.#settings;
    const { signal, onDelta } = options;
    let count = 0;
    const run = async (attempt: Attempt) => {
      count++;
      const onRefusal = (error: unknown) => {
        const failure = this.#failures.ofAttempt(error, attempt, backend, { model });
        const { type: error_type, message: error_message } = failure;
        return this.#emitRetry({ attempt: count, max_retries, delay: 0, error_type, error_message }, failure);
      };
      const onWarning = (message: string) =>
        this.#coordinator.hooks.emit("user:notification", { message, level: "warning", source: this.name });
      try {
        return await this.#throttled(
          signal,
          () => attempt.run((io) => send({ ...io, onRefusal, onWarning })),
        );
      } catch (error) {
        const usage = request && this.#usageOf(attempt, model, request);
        throw signal?.aborted
          ? this.#failures.aborted(error, { model, usage })
          : this.#failures.ofAttempt(error, attempt, backend, { model, usage });
      }
    };
    try {
      return await tryUntilAnswered(run, {
        clock,
        settings: this.#settings,
        max_answer_bytes: this.#coordinator.limits.max_answer_bytes ?? MAX_ANSWER_BYTES,
        signal,
        onDelta,
        leftMs: () => this.#left_ms,
        onRetry: (notice, error) => this.#emitRetry(notice, error),
      });
    } catch (error) {
      throw error instanceof LLMError ? error : this.#failures.aborted(error, { model });
    }
  }

  #emitRetry(notice: RetryNotice, { status_code, retry_after }: LLMError): Promise<unknown> {
    return this.#coordinator.hooks.emit("provider:retry", {
      provider: this.name,
      ...notice,
      ...(status_code === null ? {} : { status_code }),
      ...(retry_after === null ? {} : { retry_after }),
    });
  }

  /** Returns the usage of a call that failed after a part of its answer; undefined without a part. */
  #usageOf({ emitted, usage, text }: Attempt, model: string, request: ChatRequest): Usage | undefined {
    if (!emitted) return undefined;
    const output_tokens = Math.max(usage?.output_tokens || 0, estimateTokens(text)); // some count at the end only
    return this.#pricedUsage({ ...usage, output_tokens }, model, request);
  }

  /** Returns usage with its cost; the tokens of the request are estimated if the server reported none. */
  #pricedUsage(usage: Partial<AnswerUsage>, model: string, request: ChatRequest, estimated = false): Usage {
    const { messages, tools } = request;
    const sent = sentTokens(usage) > 0
      ? { estimated }
      : { input_tokens: requestTokens(messages) + toolTokens(tools), estimated: true };
    const counts = Usage({ ...usage, ...sent });
    return { ...counts, cost_usd: this.#table.costOf(model, counts) ?? counts.cost_usd };
  }

  async #throttled<T>(signal: AbortSignal | undefined, call: () => Promise<T>): Promise<T> {
    const { max_concurrent, min_delay_ms } = this.#settings;
    if (max_concurrent === 0 && min_delay_ms === 0) return await call();
    const { clock, hooks } = this.#coordinator;
    const never = signal ?? new AbortController().signal;
    const leave = await sharedLimiter(this.#limiter_key).enter(
      { max_concurrent, min_delay_ms },
      clock,
      never,
      {
        onQueued: (counts) =>
          hooks.emit("provider:concurrency", { provider: this.name, ...counts, max_concurrent }),
        onDelay: (delay) =>
          hooks.emit("provider:throttle", { provider: this.name, delay, reason: "min_delay_ms" }),
      },
    );
    try {
      return await call();
    } finally {
      leave();
    }
  }

  /** Upper bound of the milliseconds left in the run; waits for approvals count as used. */
  get #left_ms(): number {
    const { limits, clock } = this.#coordinator;
    return limits.max_duration_s * 1000 - (clock.monotonic() - this.#mounted_ms);
  }

  async #reportRepairs(repairs: readonly Repair[]): Promise<void> {
    const fresh = repairs.filter(({ tool_call_id }) => !this.#repaired.has(tool_call_id));
    if (fresh.length === 0) return;
    for (const { tool_call_id } of fresh) this.#repaired.add(tool_call_id);
    await this.#coordinator.hooks.emit("provider:tool_sequence_repaired", {
      provider: this.name,
      repair_count: fresh.length,
      repairs: fresh,
    });
  }

  #toResponse(answer: BackendAnswer, wire: WireRequest, model: string, request: ChatRequest): ChatResponse {
    const { content, finish_reason, metadata } = answer;
    const tool_calls = withoutCutCall(answer);
    const { output_tokens, estimated } = answeredTokens(answer);
    const usage = this.#pricedUsage({ ...answer.usage, output_tokens }, model, request, estimated);
    this.#costs.push(usage.cost_usd);
    const degradation = answer.degradation ?? wire.degradation;
    return {
      // blocks that other providers do not understand have the name of this one
      content: content.map((block) => isPlain(block) ? block : { ...block, provider: this.#origin }),
      ...(tool_calls.length > 0 ? { tool_calls } : {}),
      finish_reason,
      model: answer.model ?? model,
      usage,
      ...(degradation ? { degradation } : {}),
      ...(metadata ? { metadata } : {}),
    };
  }
}

/** Returns the tokens of an answer; estimated if the server counted none of one with content. */
function answeredTokens({ usage, content }: BackendAnswer): { output_tokens: number; estimated: boolean } {
  const stated = usage?.output_tokens ?? 0;
  const is_empty = content.every(({ type, text }) => type === "text" && text === "");
  if (stated > 0 || is_empty) return { output_tokens: stated, estimated: false };
  return { output_tokens: requestTokens([{ role: "assistant", content }]), estimated: true };
}

const PLAIN: Readonly<Record<string, ReadonlySet<string>>> = {
  text: new Set(["type", "text"]),
  tool_call: new Set(["type", "id", "name", "input"]),
};

function isPlain(block: ContentBlock): boolean {
  const keys = PLAIN[block.type];
  return keys !== undefined && Object.keys(block).every((key) => keys.has(key));
}

/** Returns the calls of an answer: those of its blocks are without the vendor's own fields. */
function callsOf({ content, tool_calls }: Pick<ChatResponse, "content" | "tool_calls">): ToolCall[] {
  return tool_calls ?? content.filter(({ type }) => type === "tool_call")
    .map(({ id, name, input }) => parseToolCall({ id, name, arguments: input }));
}

/**
 * Returns an answer with the `finish_reason` of one that was cut off, when it ends in a call that cannot be
 * read after all the tokens that it could have: some gateways state another reason.
 */
function withCutReason(answer: BackendAnswer, { max_output_tokens }: CallSettings): BackendAnswer {
  const last = (answer.tool_calls ?? callsOf(answer)).at(-1);
  const is_cut = last?.invalid_arguments !== undefined &&
    Number(answer.usage?.output_tokens) >= max_output_tokens;
  return is_cut ? { ...answer, finish_reason: "length" } : answer;
}

/**
 * Returns the calls of an answer. A call without arguments at the end of an answer that was cut off counts as
 * unreadable: its arguments did not arrive, and it must not run without them.
 */
function withoutCutCall({ content, finish_reason, tool_calls }: BackendAnswer): ToolCall[] {
  const calls = tool_calls ?? callsOf({ content });
  const last = calls.at(-1);
  const end = content.findLast(({ type }) => type === "text" || type === "tool_call"); // others may be added after it
  const is_cut = finish_reason === "length" && last !== undefined && last.id === end?.id &&
    last.invalid_arguments === undefined && Object.keys(last.arguments).length === 0;
  return is_cut ? [...calls.slice(0, -1), parseToolCall({ ...last, invalid_arguments: "" })] : calls;
}

function withoutUndefined<T extends object>(fields: T): Partial<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Partial<T>;
}
