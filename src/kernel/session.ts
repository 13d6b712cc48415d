/**
 * One session: initialise → execute → cleanup. Creates the parts of the session and calls them in order; each
 * part has a file of its own. Modules, time and storage come from the host (`host.ts`).
 */
import { CancellationToken } from "../sdk/cancellation.ts";
import { errorCode, errorMessage, errorName, PreampError } from "../sdk/errors.ts";
import { isObject, type JsonObject, toPlain } from "../sdk/json.ts";
import { methodOf } from "../sdk/snake_case_aliases.ts";
import type { ErrorDetail, Message, MountPlan, Orchestrator, Prompt } from "../sdk/types.ts";
import type { ContextGuard } from "./guard_context.ts";
import type { Host } from "./host.ts";
import { mountingOrder, mountModule, type SessionModule } from "./mounting.ts";
import { describeMounted, type MountedDescriptors, type Mounts } from "./mounts.ts";
import type { RunLimitGuard } from "./run_limits.ts";
import { withDeadline } from "./timeouts.ts";
import { assistantMessage } from "../sdk/loop/assistant_message.ts";
import { textOf } from "../sdk/messages.ts";
import { Turn } from "./turn.ts";
import type { InterruptedTurn } from "./interrupted_turn.ts";
import { type Outcome, outcomeOf, type Returned } from "./outcome.ts";
import { type KernelLimits, SessionContext } from "./session_context.ts";
import { endGuests, type PartsOptions, runCleanups, SessionParts } from "./session_parts.ts";
import { SessionState } from "./session_state.ts";

const STOPPED_NOTE = "[This answer was stopped here.]";
const BROKEN_OFF_NOTE = "[This answer broke off here.]";

/** Options of {@link Session.execute}. */
export interface TurnOptions {
  /** Continues a turn that was interrupted. */
  resume?: boolean;
  /** Answered iterations of the interrupted turn. */
  iteration?: number;
  /**
   * State of the interrupted turn from its log, when this is the same run; takes precedence over `iteration`.
   */
  recovered?: InterruptedTurn;
}

/** Options of {@link Session}. */
export interface SessionOptions extends PartsOptions {
  plan: MountPlan;
  host: Host;
  run_limits: RunLimitGuard;
  limits: KernelLimits;
  session_id: string;
  parent_id?: string | null;
  /** Saved `session_state` of a continued session. */
  session_state?: JsonObject;
  /** Messages of a continued session. */
  history?: readonly Message[];
  /**
   * Whether the session has run before: `session:resume` instead of `session:start`, and no first system
   * message.
   */
  continued?: boolean;
  /** Cancellation token of the session; a sub-agent's follows its parent's. */
  cancellation?: CancellationToken;
}

export class Session {
  readonly cancellation: CancellationToken;
  readonly #options: SessionOptions;
  readonly #session: SessionContext;
  #parts: SessionParts;
  #modules: SessionModule[] = [];
  /** The context manager that has the history. */
  #loaded: ContextGuard | null = null;
  #initialized: Promise<void> | null = null;
  #executing = false;
  #executed = false;
  #cleaned = false;

  constructor(options: SessionOptions) {
    const { plan, host } = options;
    this.#options = options;
    this.cancellation = options.cancellation ?? new CancellationToken();
    this.#session = new SessionContext(
      host,
      plan,
      options.session_id,
      options.parent_id ?? null,
      new SessionState(options.session_state ?? {}, options.limits.max_session_state_bytes),
      options.run_limits,
      this.cancellation,
      options.limits,
    );
    this.#parts = new SessionParts(this.#session, options);
  }

  get session_id(): string {
    return this.#session.session_id;
  }

  /** A copy of the state that modules keep between runs. */
  get session_state(): JsonObject {
    return this.#session.state.snapshot();
  }

  /** Takes over the shared keys of a sub-agent's state that this session lacks. */
  addSharedState(state: JsonObject): void {
    this.#session.state.addShared(state);
  }

  /** Whether the orchestrator supports `resume`. */
  get resumable(): boolean {
    return this.#parts.mounts.orchestrator?.resumable === true;
  }

  /** Id and iteration of the running turn, as an entry has them. */
  get turn_fields(): { turn_id?: string; iteration?: number } {
    return this.#session.turn?.fields ?? {};
  }

  /**
   * Tokens and budget of the last request, as the provider's guard estimated them; for contexts that report
   * none.
   */
  get context_usage(): { tokens: number; budget: number; level: number; compactions: number } {
    return { ...this.#session.request_size, level: 0, compactions: 0 };
  }

  /** Descriptions of the mounted tools and providers, from which a replay creates stubs. */
  get descriptors(): MountedDescriptors {
    return describeMounted(this.#parts.mounts);
  }

  /** Returns a capability that a module published, or null. */
  getCapability(name: string): unknown {
    return this.#parts.capabilities.get(name) ?? null;
  }

  /** Event and module of each handler that was never called. */
  get unheard_handlers(): { event: string; module_id: string | undefined }[] {
    return this.#parts.hooks.handlers.unheard();
  }

  /**
   * Resolves to the contributions of the modules to a channel.
   * @throws {Error} after `cleanup_timeout_s`.
   */
  async contributionsTo(channel: string): Promise<unknown[]> {
    const { host, limits } = this.#session;
    const [first] = this.#modules;
    if (!first) return [];
    return await withDeadline(
      first.coordinator.collectContributions(channel),
      limits.cleanup_timeout_s * 1000,
      host.clock,
      () => new Error(`Cannot collect ${channel}: not finished within ${limits.cleanup_timeout_s} s`),
    ) as unknown[];
  }

  /** Emits an event on behalf of the runtime. */
  async emit(event: string, data: JsonObject): Promise<void> {
    await this.#session.hooks.emit(event, data);
  }

  /** Registers a contributor on behalf of the runtime, replacing an earlier one with the same name. */
  contribute(channel: string, name: string, callback: () => unknown): void {
    const parts = this.#parts;
    const others = parts.contributors.filter((entry) => entry.channel !== channel || entry.name !== name);
    parts.contributors = [...others, { channel, name, callback }];
  }

  /**
   * Pauses the deadline of a running tool call while its sub-agent runs, until `release`. Does nothing if
   * there is no such call. `event_fields`: `tool_call_id` and `parallel_group_id` of the call, for events.
   */
  pauseCall(tool_call_id: string | undefined): { event_fields: JsonObject; release(): void } {
    const call = this.#session.turn?.calls.find(({ id, deadline }) =>
      id === tool_call_id && deadline !== null
    );
    if (!call) return { event_fields: {}, release: () => {} };
    return {
      event_fields: { tool_call_id: call.id, ...call.facts },
      release: call.deadline!.pause(true), // the search above requires it
    };
  }

  /** Returns the model ids of the first provider mounted under one of these names; empty if it lists none. */
  async modelsOf(names: readonly string[]): Promise<string[]> {
    const { providers } = this.#parts.mounts;
    const provider = names.map((name) => providers.get(name)).find((mounted) => mounted !== undefined);
    const models = await provider?.listModels() ?? [];
    return models.flatMap((model) => isObject(model) && typeof model.id === "string" ? [model.id] : []);
  }

  /** Largest context window of the mounted providers, in tokens; null when no provider states one. */
  get context_window(): number | null {
    const windows = this.#parts.mounts.providers.entries
      .map(([, provider]) => provider.getInfo().defaults.context_window)
      .filter((tokens) => typeof tokens === "number");
    return windows.length === 0 ? null : Math.max(...windows);
  }

  /**
   * Mounts all modules of the plan, once. Runs the cleanups and unmounts everything when it fails.
   * @throws {PreampError} `module_load_failed`, or an error of fetching a module's code.
   */
  initialize(): Promise<void> {
    return this.#initialized ??= this.#initialize();
  }

  async #initialize(): Promise<void> {
    const { plan, parent_id, continued } = this.#options;
    const skipped: ErrorDetail[] = [];
    try {
      for (const spec of mountingOrder(plan)) {
        const mounted = await mountModule(this.#parts, spec);
        if ("coordinator" in mounted) this.#modules.push(mounted);
        else skipped.push(mounted);
      }
      if (this.#parts.mounts.providers.names.length === 0) throw noProvider(skipped);
      for (const { spec, opened, coordinator } of this.#modules) {
        try {
          await methodOf(opened.module, "onSessionReady")?.(coordinator);
        } catch (error) {
          const failure = { module_id: spec.module, error: errorMessage(error) };
          await this.#session.hooks.emit("module:on_session_ready_failed", failure);
        }
      }
      const context = this.#requireMounts();
      await this.#loadHistory(context);
      if (parent_id && !continued) {
        await this.#session.hooks.emit("session:fork", {
          parent: parent_id,
          session_id: this.session_id,
          ...this.#metadata(),
        });
      }
      await this.#session.host.accept();
    } catch (error) {
      this.#initialized = null;
      await runCleanups(this.#parts);
      await endGuests(this.#parts);
      this.#parts = new SessionParts(this.#session, this.#options);
      this.#modules = [];
      throw error;
    }
  }

  /**
   * Runs one turn to its end. Resolves even if modules throw.
   * @throws {PreampError} `session_busy` while another turn runs; an error of {@link initialize}; an error of
   * the log.
   */
  async execute(prompt: Prompt, options: TurnOptions = {}): Promise<Outcome> {
    if (this.#executing) {
      throw new PreampError("session_busy", "Cannot run a turn: another one has not ended");
    }
    this.#executing = true;
    try {
      await this.initialize();
      return await this.#execute(prompt, options);
    } finally {
      this.#executing = false;
    }
  }

  async #execute(prompt: Prompt, options: TurnOptions): Promise<Outcome> {
    const session = this.#session;
    const is_first = !this.#executed;
    this.#executed = true;
    if (!is_first) this.cancellation.reset();
    if (!this.cancellation.is_cancelled) session.cancel_emission = null;
    this.#parts.steps.resetTurn();
    session.armStep();
    session.run_limits.start();
    try {
      if (is_first) await this.#announce();
      const turn = session.turn = this.#createTurn(prompt, options);
      session.has_begun_turn = true;
      this.mounts.turn_context = this.#requireMounts();
      return await this.#endTurn(turn, await this.#runTurn(turn, options));
    } finally {
      session.turn = null;
      this.mounts.turn_context = null;
      session.disarmStep();
      session.run_limits.stop();
    }
  }

  #createTurn(prompt: Prompt, { recovered, resume, iteration = 0 }: TurnOptions): Turn {
    if (recovered) return recovered.continued(prompt);
    const turn = new Turn(this.#session.host.newId("turn"), prompt);
    if (resume) turn.iteration = turn.answered = iteration;
    return turn;
  }

  /** Runs a turn, new or interrupted, until its loop returns. */
  async #runTurn(turn: Turn, { resume = false, recovered }: TurnOptions): Promise<Returned> {
    const orchestrator = this.mounts.orchestrator!; // the turn keeps the one that it begins with
    const returned = recovered ? await this.#restore(turn, recovered) : null;
    if (returned) return returned;
    if (recovered?.prompted ?? resume) return await this.#callLoop(orchestrator, turn, turn.prompt, true);
    try {
      const prompt = await this.#parts.steps.begin(turn);
      if (prompt === null) return { text: `Operation denied: ${turn.denied}` };
      return await this.#callLoop(orchestrator, turn, prompt, false);
    } catch (error) {
      return { error, text: "" };
    }
  }

  /** Restores an interrupted turn; resolves to its result if its loop had ended or cannot be resumed. */
  async #restore(turn: Turn, recovered: InterruptedTurn): Promise<Returned | null> {
    const { prompted, response_is_unstored, cancelled, ended_with } = recovered;
    const { response, provider_error } = turn;
    if (cancelled !== null) {
      this.#session.cancel_emission = Promise.resolve();
      if (cancelled === "immediate") this.cancellation.requestImmediate();
      else this.cancellation.requestGraceful();
    }
    if (response && response_is_unstored) {
      await this.mounts.turn_context!.addMessage(assistantMessage(response)); // set for the turn
    }
    if (ended_with !== null) {
      const failed = turn.stated.status === "error" || turn.seen.has("execution:end");
      return failed && provider_error ? { error: provider_error, text: ended_with } : { text: ended_with };
    }
    if (!prompted || this.resumable) return null;
    const fact = "its process ended, and its orchestrator does not declare resumable: true";
    return { error: new PreampError("interrupted", `Cannot continue the run: ${fact}`), text: "" };
  }

  async #callLoop(
    orchestrator: Orchestrator,
    turn: Turn,
    prompt: Prompt,
    resume: boolean,
  ): Promise<Returned> {
    const session = this.#session;
    const { mounts } = this;
    try {
      // a session without an orchestrator is not initialised
      const { coordinator } = this.#modules.find((module) => module.spec.type === "orchestrator")!;
      const pending = orchestrator.execute(
        typeof prompt === "string" ? prompt : toPlain(prompt) as unknown as Prompt,
        mounts.turn_context!.loop_handle,
        mounts.loop_providers.view,
        mounts.tools.view,
        coordinator.hooks,
        resume ? { coordinator, resume, iteration: turn.answered } : { coordinator },
      );
      // a loop that ignores its abort signal is abandoned; limits and cancellation still apply to its calls
      const grace_ms = session.limits.cleanup_timeout_s * 1000;
      const returned: unknown = await session.step.raceWithGrace(pending, grace_ms, session.host.clock);
      const { text, ...stated } = isObject(returned) && "text" in returned ? returned : { text: returned };
      turn.stated = { ...turn.stated, ...stated };
      return { text: typeof text === "string" ? text : textOf(text) };
    } catch (error) {
      if (errorCode(error) === "denied" && turn.denied !== null) {
        return { text: `Operation denied: ${turn.denied}` };
      }
      await this.#keepBrokenOff(turn, error);
      if (turn.limit === null && turn.denied === null && !session.cancellation.is_cancelled) {
        session.host.warn("execution_failed", errorMessage(error), {
          error,
          ...session.errorLocation(error),
        });
      }
      return { error, text: turn.broken_off_text };
    }
  }

  /** Stores what arrived of an answer that broke off, marked as such: a person has read it. */
  async #keepBrokenOff({ broken_off_text: text, provider_error }: Turn, error: unknown): Promise<void> {
    if (text.trim() === "") return;
    const is_aborted = errorName(error) === "AbortError" &&
      (this.cancellation.is_cancelled || error === provider_error);
    const note = errorCode(error) === "cancelled" || is_aborted ? STOPPED_NOTE : BROKEN_OFF_NOTE;
    const content = [{ type: "text", text }, { type: "text", text: note }];
    const message = { role: "assistant", content, metadata: { broken_off: true } } as const;
    await this.mounts.turn_context?.addMessage(message).catch((failure) =>
      this.#session.host.warn("context_failed", errorMessage(failure))
    );
  }

  /** Adds missing tool results, decides the outcome and emits the end events. */
  async #endTurn(turn: Turn, returned: Returned): Promise<Outcome> {
    const { steps } = this.#parts;
    const session = this.#session;
    if (session.step.is_waited_for) await session.endCalls(turn);
    await this.mounts.turn_context?.closeCalls();
    const outcome = outcomeOf(session, turn, returned);
    await steps.end(turn, outcome, returned.text);
    return outcome;
  }

  async #announce(): Promise<void> {
    const { continued, parent_id, plan } = this.#options;
    await this.#session.hooks.emit(continued ? "session:resume" : "session:start", {
      session_id: this.session_id,
      parent_id: parent_id ?? null,
      ...this.#metadata(),
    });
    const context = this.#requireMounts();
    if (context !== this.#loaded) await this.#loadHistory(context); // a handler mounted it
    if (!continued) {
      if (plan.system !== undefined) await context.addMessage(systemMessage(plan.system));
    } else await this.#replaceSystem(context, plan.system);
  }

  async #loadHistory(context: ContextGuard): Promise<void> {
    const { history = [] } = this.#options;
    this.#loaded = context;
    if (history.length > 0) await context.load(history);
  }

  #metadata(): JsonObject {
    const { metadata, raw } = this.#options.plan.session;
    return {
      ...(metadata && Object.keys(metadata).length > 0 ? { metadata } : {}),
      ...(raw ? { raw: this.#parts.config } : {}),
    };
  }

  /**
   * Replaces the system message of the session's earlier plan by that of this plan; keeps all other system
   * messages.
   */
  async #replaceSystem(context: ContextGuard, system: string | undefined): Promise<void> {
    const history = this.#options.history ?? [];
    const index = history.findIndex((message) =>
      message.role === "system" && message.metadata?.source === "plan"
    );
    const before = index < 0 ? undefined : history[index]!.content;
    if (before === system) return;
    const rest = history.filter((_, at) => at !== index);
    await context.setMessages(system === undefined ? rest : [systemMessage(system), ...rest]);
  }

  /** Cancels the turn; emits `cancel:requested` at the first request only. */
  cancel(mode: "graceful" | "immediate"): Promise<void> {
    return this.#session.cancel(mode);
  }

  /** Emits `cancel:requested` of a session whose parent was cancelled. */
  emitCancelRequested(): Promise<void> {
    return this.#session.emitCancelRequested();
  }

  /** Emits `session:end`, runs the cleanups in reverse order, emits `session:cleanup`. Once. */
  async cleanup(status: string): Promise<void> {
    if (this.#cleaned) return;
    this.#cleaned = true;
    if (this.#initialized === null) return; // never initialised
    const { hooks } = this.#session;
    try {
      let report: JsonObject;
      try {
        await hooks.emit("session:end", { session_id: this.session_id, status });
      } finally {
        report = await runCleanups(this.#parts); // also when the entry cannot be stored
      }
      await hooks.emit("session:cleanup", report);
    } finally {
      await endGuests(this.#parts); // handlers of both events may be in guests
    }
    await this.#session.writeState();
  }

  /** Stops the guests of a session without running its cleanups, for example after a replay. */
  async abandon(): Promise<void> {
    await endGuests(this.#parts);
  }

  /**
   * Returns the context manager.
   * @throws {PreampError} when a module unmounted it, or the orchestrator.
   */
  #requireMounts(): ContextGuard {
    const { context, orchestrator } = this.#parts.mounts;
    if (context && orchestrator) return context;
    const label = context ? "orchestrator" : "context manager";
    throw new PreampError("module_load_failed", `Cannot run without ${label}: a module unmounted it`);
  }

  get mounts(): Mounts {
    return this.#parts.mounts;
  }
}

function systemMessage(text: string): Message {
  return { role: "system", content: text, metadata: { source: "plan" } };
}

/** Creates the error for a session without a mounted provider; the run is refused before it starts. */
function noProvider(skipped: readonly ErrorDetail[]): PreampError {
  const failed = skipped.filter(({ path }) => path.startsWith("providers["));
  const [first] = failed;
  const fact = first
    ? `none of the plan's providers could be mounted: ${first.message}`
    : "No providers mounted: the plan has none";
  return new PreampError("module_load_failed", `Cannot initialize without provider: ${fact}`, {
    details: first ? failed : [{
      path: "providers",
      message: "Cannot answer without provider: the plan must have at least one",
      hint: "add one, such as providers: [provider-mock]",
    }],
  });
}
