/** Runs one turn again: orchestrator, context and kernel run, models, tools and hooks answer as recorded. */
import { setImmediate } from "node:timers";
import type { Entry, Host, HostClock } from "../../kernel/host.ts";
import type { MountedDescriptors, ProviderDescriptor, ToolDescriptor } from "../../kernel/mounts.ts";
import { isCallOfLoop } from "../../kernel/guard_provider.ts";
import type { RunLimitGuard } from "../../kernel/run_limits.ts";
import { failedOutcome, type Outcome } from "../../kernel/outcome.ts";
import { errorFromLog, recordedToolResult } from "../../kernel/interrupted_turn.ts";
import { Session } from "../../kernel/session.ts";
import type { KernelLimits } from "../../kernel/session_context.ts";
import { noopEmission } from "../../sdk/hook_chain.ts";
import { newId } from "../../sdk/ids.ts";
import { isObject, jsonEqual, type JsonObject, toFrozenObject } from "../../sdk/json.ts";
import { LLMError, type LLMErrorType } from "../../sdk/llm_errors.ts";
import { messageTokens, toolTokens } from "../../sdk/token_estimate.ts";
import { parseToolCall } from "../../sdk/tools.ts";
import type {
  ChatRequest,
  ChatResponse,
  Clock,
  ContentBlock,
  Coordinator,
  Emission,
  Message,
  ModuleSpec,
  Prompt,
  Provider,
  Tool,
  Usage,
} from "../../sdk/types.ts";
import type { ModuleReporter, RunnablePlan, SecretSink } from "../ports.ts";
import type { InitialState, ModelRequest, RunInput } from "../types.ts";
import type { TurnDone } from "./compare.ts";
import { CallCollector, type RecordedTurn } from "./recorded_turn.ts";
import type { WantedCalls } from "./wanted_calls.ts";

/** What all turns of a replay share. */
export interface ReplayDeps {
  /** The recording's plan, checked: it has the sources of orchestrator and context. */
  readonly ready: RunnablePlan;
  readonly secrets: SecretSink;
  /** The clock of the process. */
  readonly clock: Clock;
  readonly limits: KernelLimits;
}

/** One turn and its state at the start. */
export interface TurnInput {
  readonly recorded: RecordedTurn;
  readonly ready: RunnablePlan;
  readonly surface: MountedDescriptors;
  readonly initial: InitialState;
  readonly limitGuard: RunLimitGuard;
  readonly open_calls: readonly string[];
  readonly resume: RunInput["resume"];
  readonly parent_id: string | null;
}

/** Limits that were applied at recording time and must not be applied again. */
const AS_RECORDED = {
  max_tool_result_bytes: Number.MAX_SAFE_INTEGER,
  max_tool_image_bytes: Number.MAX_SAFE_INTEGER,
  max_answer_tool_calls: Number.MAX_SAFE_INTEGER,
  max_answer_blocks: Number.MAX_SAFE_INTEGER,
  max_answer_bytes: Number.MAX_SAFE_INTEGER,
  max_session_state_bytes: Number.MAX_SAFE_INTEGER,
} as const satisfies Partial<KernelLimits>;

/** Milliseconds after which a turn ends whose recording ended in the middle: parallel calls begin before. */
const SETTLE_MS = 20;

/**
 * Milliseconds after which a turn ends that came to no further entry of its recording: its loop waits for
 * what a replay does not have, or never ends.
 */
const NO_PROGRESS_MS = 10_000;

/** Lets the process do its other work: a replay of many calls waits for nothing. */
function othersFirst(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}

/** A clock whose waits end at once and whose deadlines never pass. */
export class InstantClock implements HostClock {
  #now_ms: number;

  constructor(start_ms: number) {
    this.#now_ms = start_ms;
  }

  now(): number {
    return this.#now_ms;
  }

  monotonic(): number {
    return this.#now_ms;
  }

  async after(ms: number, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    if (!(ms > 0)) return;
    await othersFirst(); // as in any wait
    signal?.throwIfAborted();
    this.#now_ms += ms;
  }

  later(): () => void {
    return () => {};
  }
}

/**
 * Runs a turn again and resolves to what the agent did.
 *
 * @param wanted Receives what models were sent in these calls, also in one that has no answer; the turn ends
 * before the first call after them.
 */
export async function replayTurn(
  input: TurnInput,
  clock: InstantClock,
  deps: ReplayDeps,
  wanted?: WantedCalls,
): Promise<TurnDone> {
  return await new ReplayedTurn(input, clock, deps, wanted).run();
}

/** Ignores console output and warnings of modules: they belong to the recorded run. */
const SILENT: ModuleReporter = { warn() {}, console() {} };

/** The answer to a question that was answered without a person. */
const ALLOWED = { decision: "allow", reason: null, decided_by: null };

const STUBS = { source: { kind: "builtin" }, config: {} } as const;

class ReplayedTurn {
  readonly #input: TurnInput;
  readonly #deps: ReplayDeps;
  readonly #clock: InstantClock;
  readonly #session: Session;
  readonly #collector: CallCollector;
  readonly #wanted: WantedCalls | undefined;
  /** The last request that was noted. */
  #noted: ModelRequest | undefined;
  /** Settles when the turn has come to the end of what is wanted. */
  readonly #enough = Promise.withResolvers<Outcome>();
  /** The recorded `provider:request` of the next call; undefined when the recording has no such call. */
  #requested: Entry | undefined;
  #unanswered: number | null = null;

  constructor(input: TurnInput, clock: InstantClock, deps: ReplayDeps, wanted?: WantedCalls) {
    const { recorded, ready, initial: { session_state, history, usages, continued } } = input;
    const { system: _, ...plan } = ready.compiled.plan;
    const system = recorded.systemAfter(history);
    this.#input = input;
    this.#clock = clock;
    this.#deps = deps;
    this.#wanted = wanted;
    this.#collector = new CallCollector(input.open_calls);
    this.#session = new Session({
      plan: {
        ...plan,
        ...(system === undefined ? {} : { system }),
        providers: [{ ...STUBS, module: "recorded-providers", type: "provider", path: "providers[0]" }],
        tools: [{ ...STUBS, module: "recorded-tools", type: "tool", path: "tools[0]" }],
        hooks: [],
      },
      written: ready.compiled.written,
      host: this.#host(),
      run_limits: input.limitGuard,
      limits: { ...deps.limits, ...AS_RECORDED },
      session_id: recorded.session_id,
      parent_id: input.parent_id,
      session_state,
      history,
      usages,
      continued,
    });
  }

  async run(): Promise<TurnDone> {
    const { recorded, resume } = this.#input;
    const watch = new AbortController();
    const turn = this.#session.execute(
      resume?.prompt ?? recorded.prompt as Prompt, // written by the kernel
      resume ? { resume: true, iteration: resume.iteration } : {},
    ).catch((error) => failedOutcome(error));
    const outcome = await Promise.race([turn, this.#stalled(watch.signal), this.#enough.promise]);
    watch.abort();
    this.#session.cancellation.requestImmediate();
    await this.#session.abandon();
    const error = outcome.error?.message ?? null;
    const { calls } = this.#collector;
    return { calls, end: outcome, error, unanswered: this.#unanswered };
  }

  /** Resolves when the turn makes no progress. */
  async #stalled(signal: AbortSignal): Promise<Outcome> {
    const { recorded } = this.#input;
    for (let entries = -1; entries !== recorded.entries_taken;) {
      entries = recorded.entries_taken;
      await this.#deps.clock.after(NO_PROGRESS_MS, signal).catch(() => new Promise(() => {}));
    }
    const seconds = NO_PROGRESS_MS / 1000;
    return failedOutcome(new Error(`The loop came to nothing that is recorded for ${seconds} seconds`));
  }

  #host(): Host {
    const { secrets } = this.#deps;
    return {
      clock: this.#clock,
      newId,
      open: (spec) => this.#open(spec),
      record: (entry) => {
        this.#collector.add({ event: entry.event, data: secrets.redactEvent(entry.event, entry.data) });
      },
      ask: async ({ action, tool_call_id }) => {
        const { recorded } = this.#input;
        return recorded.takeDecision(action, tool_call_id) ??
          (recorded.was_stopped ? await this.#endAsRecorded() : ALLOWED);
      },
      accept() {}, // the run exists
      recordedResult: (event, data) => this.#emission(event, data),
      recordedAnswers: (_event, data) => this.#input.recorded.decisionsOn(data.tool_call_id),
      redactEvent: (event, data) => secrets.redactEvent(event, data),
      warn() {},
    };
  }

  #emission(event: string, data: JsonObject): Emission {
    const entry = this.#input.recorded.takeEmitted(event, data);
    if (event === "provider:request") this.#requested = entry;
    this.#cancelAsRecorded();
    return entry ? this.#input.recorded.emissionOf(entry, data) : noopEmission(data);
  }

  async #open(spec: ModuleSpec) {
    const { ready, surface } = this.#input;
    if (spec.type === "orchestrator" || spec.type === "context") {
      return await ready.open(spec, this.#deps.secrets, SILENT);
    }
    const { providers, tools } = surface;
    const mount = async (coordinator: Coordinator) => {
      if (spec.type === "provider") {
        for (const one of providers) {
          await coordinator.mount("providers", this.#providerOf(one), { name: one.name });
        }
      } else {
        for (const one of tools) {
          if (one.key in coordinator.tools) continue; // the context's own
          await coordinator.mount("tools", this.#toolOf(one), { name: one.key });
        }
      }
    };
    return { module: { mount }, config: {}, isolation: "inline" as const, integrity: null, stated: {} };
  }

  #toolOf({ key: _, native_specs, ...surface }: ToolDescriptor): Tool {
    return {
      ...surface as Omit<ToolDescriptor, "key" | "native_specs">,
      ...(native_specs ? { native_specs: native_specs as Record<string, JsonObject> } : {}),
      execute: async (_input, call) => {
        const { recorded } = this.#input;
        const outcome = recorded.takeOutcome(call?.id);
        this.#cancelAsRecorded();
        if (outcome?.event === "tool:error") {
          throw errorFromLog(isObject(outcome.data.error) ? outcome.data.error : {});
        }
        if (outcome) return recordedToolResult(outcome.data);
        if (recorded.was_stopped && recorded.is_used_up) return await this.#endAsRecorded();
        return { success: false, error: { message: "The recording has no result of this call" } };
      },
    };
  }

  #providerOf({ name, priority, info, model_info }: ProviderDescriptor): Provider {
    return {
      name,
      priority,
      getInfo: () => info,
      listModels: () => Promise.resolve([]),
      ...(model_info ? { getModelInfo: () => model_info } : {}),
      complete: (request, options) =>
        isCallOfLoop(options?.call) ? this.#answer(name, request) : this.#answerContext(name),
      parseToolCalls: (response) => response.tool_calls ?? [],
    };
  }

  /** Answers a call that the context made, such as one for a summary. */
  async #answerContext(name: string): Promise<ChatResponse> {
    const { recorded } = this.#input;
    const answer = recorded.takeInnerAnswer(name);
    if (answer?.event === "provider:response") return responseOf(answer.data);
    if (answer) throw failureOf(answer);
    if (recorded.is_used_up) {
      if (recorded.was_stopped) return await this.#endAsRecorded();
      this.#requested = undefined; // the loop's call waits for this one
    }
    throw new LLMError("InvalidRequestError", "Cannot answer: the recording has no answer to this call");
  }

  /** Notes what a model is sent in a wanted call; an attempt with the same request is the same call. */
  #noteRequest(
    provider: string,
    { messages, tools = [], ...options }: ChatRequest,
    usage: Usage | null,
  ): void {
    if (this.#requested === undefined || !this.#wanted?.has(this.#requested.seq)) return;
    const { seq, session_id, iteration = 1 } = this.#requested;
    const last = this.#noted;
    const sent = { messages, tools, options };
    if (last?.seq === seq && jsonEqual({ ...last, ...sent }, last)) {
      last.usage = usage ?? last.usage;
      return;
    }
    const tokens = { messages: messages.map(messageTokens), tools: toolTokens(tools), total: 0 };
    tokens.total = tokens.messages.reduce((sum, each) => sum + each, tokens.tools);
    const frozen = messages.map((message) => toFrozenObject(message) as unknown as Message); // the same fields
    const facts = { seq, session_id, provider, iteration };
    this.#noted = { ...facts, messages: frozen, tools, options, tokens, usage };
    this.#wanted.add(this.#noted);
  }

  async #answer(name: string, request: ChatRequest): Promise<ChatResponse> {
    const { recorded } = this.#input;
    if (this.#requested && this.#wanted?.isPast(this.#requested.seq)) return await this.#endHere();
    const answer = recorded.takeAnswer(name);
    const usage = isObject(answer?.data.usage) ? answer.data.usage as unknown as Usage : null; // by the kernel
    this.#noteRequest(name, request, usage);
    this.#cancelAsRecorded();
    if (!answer) {
      if (recorded.was_stopped) return await this.#endAsRecorded();
      this.#unanswered ??= recorded.taken + 1;
      throw new LLMError("InvalidRequestError", `Cannot answer: the recording has ${recorded.taken} answers`);
    }
    const steer = this.#session.getCapability("session.steer");
    if (typeof steer === "function") { for (const text of recorded.steeringOf(answer)) await steer(text); }
    await othersFirst();
    if (answer.event !== "provider:response") throw failureOf(answer);
    return responseOf(answer.data);
  }

  #cancelAsRecorded(): void {
    const { recorded } = this.#input;
    for (let mode = recorded.takeCancellation(); mode; mode = recorded.takeCancellation()) {
      void this.#session.cancel(mode);
    }
  }

  /** Ends the turn: what follows is not wanted. */
  async #endHere(): Promise<never> {
    this.#enough.resolve(failedOutcome(new Error("The rest of the turn is not wanted")));
    return await new Promise(() => {});
  }

  /** Ends the turn in the way in which its recording was ended from outside. */
  async #endAsRecorded(): Promise<never> {
    const { recorded, limitGuard } = this.#input;
    await this.#deps.clock.after(SETTLE_MS);
    if (recorded.limit !== null) limitGuard.stopFor(recorded.limit, "as recorded");
    else if (recorded.was_cut) void this.#session.cancel("immediate");
    else throw new LLMError("InvalidRequestError", "The recorded run failed here");
    return await new Promise(() => {});
  }
}

function responseOf({ response, usage }: JsonObject): ChatResponse {
  const { tool_calls, ...rest } = isObject(response) ? response : {};
  return {
    ...rest,
    content: (rest.content ?? []) as ContentBlock[], // written by the loop
    ...(Array.isArray(tool_calls) ? { tool_calls: tool_calls.map(parseToolCall) } : {}),
    ...(isObject(usage) ? { usage: usage as unknown as NonNullable<ChatResponse["usage"]> } : {}),
  };
}

/** Fields of an event of a failed call that its error has too. */
const ERROR_FIELDS = ["provider", "status_code", "retry_after", "limit_tokens", "requested_tokens"];

function failureOf({ event, data }: Entry): Error {
  const is_retry = event === "provider:retry";
  const { type, msg } = is_retry
    ? { type: data.error_type, msg: data.error_message }
    : isObject(data.error)
    ? data.error
    : {};
  const facts = ERROR_FIELDS.flatMap((name) => (data[name] ?? null) === null ? [] : [[name, data[name]]]);
  // the recorded name may be any string; an LLMError carries it unchanged
  return new LLMError(String(type ?? "Error") as LLMErrorType, String(msg ?? ""), {
    retryable: is_retry || data.retryable === true,
    ...Object.fromEntries(facts),
  });
}
