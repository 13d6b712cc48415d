/**
 * One run from its plan to its end (trace.md, section 4, B-D): makes the host of the session, keeps the log, ends the run
 * exactly once. Who may start it and where its session comes from is `service.ts`.
 */
import { setImmediate } from "node:timers";
import { Ceilings } from "../kernel/ceilings.ts";
import {
  type ApprovalDecision,
  type ApprovalRequest,
  type DraftEntry,
  draftEntry,
  type Entry,
  type Host,
  type KnownApproval,
} from "../kernel/host.ts";
import type { Outcome } from "../kernel/outcome.ts";
import { type RecoveredTurn, recoverTurn } from "../kernel/recovery.ts";
import { type LoggedUsage, Session } from "../kernel/session.ts";
import { REDACTED } from "../policy/redact.ts";
import { errorMessage, PreampError } from "../sdk/errors.ts";
import { isObject, type JsonObject } from "../sdk/json.ts";
import { timestamp } from "../sdk/timestamp.ts";
import type { Message, Prompt } from "../sdk/types.ts";
import type { Change, Fence } from "../store/store.ts";
import { ApprovalDesk } from "./approvals.ts";
import type { ReadyPlan, RunsDeps, SecretSink } from "./deps.ts";
import { contextUsageOf, RunFold } from "./fold.ts";
import { RunLog } from "./log.ts";
import { inputChange, type StoredInput } from "./recording.ts";
import type { SavedSession } from "./sessions.ts";
import { type EndedChild, Spawner } from "./spawn.ts";
import type { Approval, Caller, CreateOptions, Run, RunHandle, RunRequest, RunStatus } from "./types.ts";

/** How a run goes on with a turn that was begun elsewhere: behind an entry of another run, or before a crash. */
export interface ResumeOptions {
  /** Iterations of the turn that were answered. */
  iteration: number;
}

/** A run that another process began and did not end. */
export interface Inherited {
  readonly input: StoredInput;
  /** What the log has of it. */
  readonly entries: readonly Entry[];
}

/** What a run is made with. */
export interface RunnerOptions {
  /** Goes on with a run whose process is gone. */
  inherited?: Inherited;
  /** Goes on with a turn; absent: the prompt is new. */
  resume?: ResumeOptions;
  deps: RunsDeps;
  caller: Caller;
  request: RunRequest;
  create: CreateOptions;
  ready: ReadyPlan;
  run_id: string;
  session_id: string;
  /** The session as it was before this run; null for a new one. */
  saved: SavedSession | null;
  fence: () => Fence | undefined;
  /** Takes the session of a sub-agent that an earlier spawn left. @throws {PreampError} `not_found`, `session_busy`. */
  takeChild(runner: Runner, session_id: string, parent_id: string): Promise<SavedSession>;
  letGoChild(session_id: string): Promise<void>;
  /** Keeps a sub-agent's session. */
  saveChild(runner: Runner, child: EndedChild): Change;
  /** Keeps the session with what the run left of it. */
  saveSession(runner: Runner): Change;
  /** Changes that come into being with the run, such as its idempotency key. */
  with_run: readonly Change[];
}

/** A run that is under way, or has ended in this process. */
export class Runner implements RunHandle {
  readonly id: string;
  readonly session_id: string;
  readonly created_at: string;
  readonly log: RunLog;
  readonly desk: ApprovalDesk;
  readonly options: RunnerOptions;
  readonly #fold: RunFold;
  readonly #secrets: SecretSink;
  readonly #ceilings: Ceilings;
  readonly #spawner: Spawner;
  readonly #ended = Promise.withResolvers<Run>();
  readonly #watchers = new Set<() => void>();
  #session: Session;
  #yielded_ms = 0;
  /** Whether the session was begun: what it leaves is kept. */
  #began = false;
  /** How the run was asked to stop before its session was begun. */
  #stop: "graceful" | "immediate" | null = null;
  /** Whether the end was decided; entries of the clean-up still follow. */
  #ending = false;
  /** Whether no entry follows any more. */
  #terminal = false;
  #end_is_stored = false;
  #accepted = false;
  /** Where the turn stood that a process left behind. */
  #recovered: RecoveredTurn | null = null;
  /** What the run started from, once its session was initialised. */
  #input: StoredInput | null = null;

  constructor(options: RunnerOptions) {
    const { deps, ready, run_id, session_id, saved, caller } = options;
    this.options = options;
    this.id = run_id;
    this.session_id = session_id;
    const { inherited } = options;
    this.created_at = inherited?.input.created_at ?? timestamp(deps.clock.now());
    this.#secrets = deps.secrets();
    ready.registerSecrets(this.#secrets);
    this.#fold = new RunFold({
      id: run_id,
      session_id,
      created_at: this.created_at,
      warnings: ready.warnings,
      history: (inherited?.input ?? { history: saved?.messages }).history ?? [],
      usages: (inherited?.input ?? saved)?.usages ?? [],
    });
    this.log = new RunLog({
      run_id,
      store: deps.store,
      clock: deps.clock,
      fold: this.#fold,
      limits: deps.limits,
      fence: options.fence,
      secrets: this.#secrets,
      onFull: (limit) =>
        this.#ceilings.stopFor(
          limit,
          `the log of the run has ${deps.limits[limit]} ${limit === "max_log_bytes" ? "bytes" : "entries"}`,
        ),
    });
    this.desk = new ApprovalDesk(deps.store, run_id, caller.namespace);
    this.#ceilings = new Ceilings({
      limits: ready.limits,
      cost_is_asked_for: ready.cost_is_asked_for,
      clock: deps.clock,
    });
    this.#spawner = new Spawner({
      deps,
      host: (given, id) => {
        given.registerSecrets(this.#secrets);
        return this.#host(given, id);
      },
      historyOf: (id) => this.#fold.historyOf(id),
      continueHistory: (id, messages) => this.#fold.continueHistory(id, messages),
      take: (id, parent_id) => options.takeChild(this, id, parent_id),
      letGo: (id) => options.letGoChild(id),
      save: (child) => this.#saveChild(child),
    });
    if (inherited) this.#inherit(inherited);
    this.#session = inherited && this.#fold.status !== "queued"
      ? this.#inheritedSession(inherited)
      : this.#newSession(saved);
  }

  /** Takes up the run where its log ends. */
  #inherit({ input, entries }: Inherited): void {
    for (const entry of entries) this.#fold.add(entry);
    this.log.continueBehind(entries);
    this.#accepted = true;
    this.#input = this.#fold.status === "queued" ? null : input;
    this.#recovered = recoverTurn(entries, this.session_id, REDACTED);
    const lost = [...this.#recovered?.calls.values() ?? []].filter((call) => call === "lost").length;
    const used = this.#fold.used;
    this.#ceilings.restore({
      ...used,
      tool_calls: used.tool_calls + lost, // whether they ran is not known: they count as if they had
      duration_ms: workedFor(entries),
    });
    for (const { status, id } of this.#fold.approvals) if (status === "pending") this.desk.expect(id);
  }

  #inheritedSession({ input, entries }: Inherited): Session {
    const { deps, ready, session_id } = this.options;
    const begun = entries.some(({ event, session_id: of }) =>
      of === session_id && (event === "session:start" || event === "session:resume")
    );
    return new Session({
      plan: ready.compiled.plan,
      written: ready.compiled.written,
      host: this.#host(ready, session_id),
      ceilings: this.#ceilings,
      capabilities: this.#spawner.capabilities(() => this.#session, ready, this.#ceilings),
      limits: deps.limits,
      session_id,
      session_state: stateAfter(input.session_state, entries, session_id),
      history: [...this.#fold.historyOf(session_id)],
      usages: this.#fold.usages,
      continued: begun || input.continued,
    });
  }

  /** A child that cannot be kept has answered all the same: it cannot be asked again, and that is said. */
  async #saveChild(child: EndedChild): Promise<void> {
    const { deps, saveChild, fence } = this.options;
    try {
      await deps.store.commit([saveChild(this, child)], fence());
    } catch (error) {
      this.#warn("agent_not_kept", errorMessage(error), { session_id: child.session_id });
    }
  }

  #newSession(saved: SavedSession | null): Session {
    const { deps, ready, session_id } = this.options;
    return new Session({
      plan: ready.compiled.plan,
      written: ready.compiled.written,
      host: this.#host(ready, session_id),
      ceilings: this.#ceilings,
      capabilities: this.#spawner.capabilities(() => this.#session, ready, this.#ceilings),
      limits: deps.limits,
      session_id,
      session_state: saved?.session_state ?? {},
      history: saved?.messages ?? [],
      usages: saved?.usages ?? [],
      continued: saved !== null,
    });
  }

  /** Takes the session as the run before left it: for a queued run, whose turn comes now. */
  continueFrom(saved: SavedSession): void {
    this.options.saved = saved;
    this.#fold.continueFrom(saved.messages, saved.usages ?? []);
    this.#session = this.#newSession(saved);
  }

  /** Says that the run waits for its session; it exists from here on. */
  async queue(): Promise<void> {
    await this.#start("queued");
    await this.#accept();
  }

  /** Initialises the session; resolves once the run exists. Rejects, and nothing is stored, when it cannot. */
  async begin(): Promise<void> {
    if (this.options.inherited) await this.#status({ ...this.#openStatus, resumed: true });
    else if (this.#accepted) await this.#status({ status: "running" });
    else await this.#start("running");
    await this.options.ready.load?.();
    await this.#session.initialize();
    this.#began = true;
    if (this.#input === null) await this.#keepInput(); // a queued run: it was accepted before its session was made
    if (this.#stop !== null) await this.#session.cancel(this.#stop);
  }

  /** Where a run stands that goes on: it waits for a person still, or it runs. */
  get #openStatus(): { status: RunStatus } {
    return { status: this.#fold.status === "awaiting_approval" ? "awaiting_approval" : "running" };
  }

  /** Keeps what the run started from, now that its modules have told what they are. */
  async #keepInput(): Promise<void> {
    this.#input = this.#inputNow(this.#session.surface);
    await this.options.deps.store.commit([inputChange(this.#input, true)], this.options.fence());
  }

  #inputNow(surface: StoredInput["surface"]): StoredInput {
    const { ready, request: { plan, plan_ref, ...request }, caller, saved } = this.options;
    const own_plan = saved === null || plan !== undefined || plan_ref !== undefined;
    const by_operator = plan_ref !== undefined || plan === undefined;
    const plan_lock = own_plan ? request.lock : saved.plan_lock;
    return {
      version: 1,
      run_id: this.id,
      session_id: this.session_id,
      caller,
      request,
      created_at: this.created_at,
      own_plan,
      plan: ready.compiled.written,
      plan_origin: !own_plan ? saved.plan_origin : by_operator ? "operator" : caller.origin,
      plan_base_url: (own_plan ? ready.base_url : saved.plan_base_url) ?? null,
      ...(plan_lock ? { plan_lock } : {}),
      cost_is_asked_for: ready.cost_is_asked_for,
      continued: saved !== null,
      history: saved?.messages ?? [],
      session_state: saved?.session_state ?? {},
      usages: saved?.usages ?? [],
      surface,
    };
  }

  #start(status: "queued" | "running"): Promise<void> | void {
    const { ready, request } = this.options;
    return this.log.record(draftEntry("run:start", this.session_id, {
      status,
      plan_hash: ready.compiled.plan_hash,
      lock_hash: ready.lock_hash,
      limits: { ...ready.limits },
      metadata: request.metadata ?? {},
    }));
  }

  /** All that a session of this run is given: its own, or a sub-agent's. */
  #host(ready: ReadyPlan, session_id: string): Host {
    const { deps } = this.options;
    return {
      clock: deps.clock,
      newId: deps.newId,
      open: (spec) => ready.open(spec, this.#secrets),
      record: (entry) => this.#record(entry),
      ask: (request, signal) => this.#ask(request, signal),
      ...(this.options.inherited
        ? { knownApproval: (asked, session_id) => this.#knownApproval(asked, session_id) }
        : {}),
      accept: () => this.#accept(),
      warn: (code, message, facts) => this.#warn(code, message, { session_id, ...facts }),
    };
  }

  #record(entry: DraftEntry): Promise<void> | void {
    if (this.#terminal) return; // a module's timer that fires after the end changes nothing
    if (entry.event === "approval:required") this.desk.expect(String(entry.data.approval_id));
    const stored = this.log.record(entry) ?? this.#yieldNowAndThen(entry);
    switch (entry.event) {
      case "provider:response":
        if (entry.session_id === this.session_id) this.#noteContext();
        return stored;
      case "approval:granted":
      case "approval:denied":
        return this.#resume(stored);
      default:
        return stored;
    }
  }

  /** A run that never waits for anything outside lets others have the thread now and then. */
  #yieldNowAndThen(entry: DraftEntry): Promise<void> | void {
    if (entry.event !== "provider:response") return;
    const now = this.options.deps.clock.monotonic();
    if (now - this.#yielded_ms < YIELD_AFTER_MS) return;
    return new Promise((resolve) =>
      setImmediate(() => {
        this.#yielded_ms = this.options.deps.clock.monotonic();
        resolve();
      })
    );
  }

  #noteContext(): void {
    const status = this.#session.getCapability("context.status");
    let told: unknown = this.#session.context_usage;
    if (typeof status === "function") {
      try {
        told = status();
      } catch (error) {
        this.#warn("context_status_failed", errorMessage(error));
      }
    }
    if (isObject(told)) this.#fold.context = contextUsageOf(told);
  }

  async #resume(stored: Promise<void> | void): Promise<void> {
    await stored;
    this.#notify();
    const waits = this.#fold.approvals.some((approval) => approval.status === "pending");
    if (!waits && this.#fold.status === "awaiting_approval") await this.#status({ status: "running" });
  }

  async #status(data: JsonObject): Promise<void> {
    await this.log.record(draftEntry("run:status", this.session_id, data, this.#session.moment));
    this.#notify();
  }

  #notify(): void {
    for (const notice of [...this.#watchers]) notice();
  }

  /** A question is the same when it is about the same call with the same arguments. */
  #knownApproval(
    { tool_call_id, args_hash, action }: Pick<ApprovalRequest, "tool_call_id" | "args_hash" | "action">,
    session_id: string,
  ): KnownApproval | null {
    const found = this.#fold.approvals.findLast((one) =>
      one.session_id === session_id && one.tool_call_id === tool_call_id && one.args_hash === args_hash &&
      one.action === action
    );
    if (!found) return null;
    const { id: approval_id, tool_name, tool_input, risk_level, prompt, options, expires_at, hook_name } =
      found;
    return {
      request: {
        approval_id,
        tool_name,
        tool_call_id,
        tool_input,
        args_hash,
        action,
        risk_level,
        prompt,
        options,
        default: found.default,
        expires_at,
        hook_name,
      },
      answer: found.status === "pending" ? null : {
        decision: found.decision ?? "deny",
        reason: found.reason ?? null,
        decided_by: found.decided_by ?? null,
      },
    };
  }

  async #ask(request: ApprovalRequest, signal: AbortSignal): Promise<ApprovalDecision> {
    return await this.desk.ask(request, signal, () => {
      const waiting = this.#fold.status === "awaiting_approval"
        ? Promise.resolve()
        : this.#status({ status: "awaiting_approval" });
      waiting.then(() => this.#askHere(request, signal)).catch((error) =>
        this.#warn("ask_failed", errorMessage(error))
      );
    });
  }

  /** Asks at the terminal, or whoever `create.ask` is; over HTTP the person answers by themselves. */
  async #askHere(request: ApprovalRequest, signal: AbortSignal): Promise<void> {
    const { ask } = this.options.create;
    if (!ask) return;
    const approval = this.#fold.approvals.find((one) => one.id === request.approval_id);
    if (!approval) return;
    const answer = await ask(approval, signal);
    if (answer === null) return await this.desk.expire(request); // nobody there: the default applies at once
    try {
      await this.desk.decide(request.approval_id, {
        decision: answer.decision,
        reason: answer.reason ?? null,
        decided_by: this.options.caller.name,
      });
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  #warn(code: string, message: string, facts: JsonObject = {}): void {
    if (RUN_WARNINGS.has(code)) this.#fold.warn({ code, message });
    this.options.deps.log("warning", code, {
      run_id: this.id,
      session_id: this.session_id,
      message,
      ...facts,
    });
  }

  async #accept(): Promise<void> {
    if (this.#accepted) return;
    if (this.options.resume && !this.#session.resumable) {
      throw new PreampError(
        "not_replayable",
        "Cannot go on from this entry: the plan's orchestrator does not say resumable: true",
      );
    }
    this.#accepted = true;
    const { deps, with_run, saveSession, fence } = this.options;
    // a queued run leaves the session alone: another run is at work in it
    const queued = this.#fold.status === "queued";
    const input = this.#inputNow(queued ? null : this.#session.surface);
    if (!queued) this.#input = input;
    const kept = [inputChange(input, true), ...(queued ? [] : [saveSession(this)])];
    try {
      await this.log.accept((entries) =>
        deps.store.commit(
          [{ append: this.id, after: 0, entries }, this.#recordChange(), ...kept, ...with_run],
          fence(),
        )
      );
    } catch (error) {
      this.#accepted = false;
      throw error;
    }
  }

  /** Returns the change that keeps the run object for lists and for readers in other processes. */
  #recordChange(): Change {
    const run = this.current();
    return {
      put: {
        kind: "run",
        key: this.id,
        namespace: this.options.caller.namespace,
        value: run as unknown as JsonObject,
        index: { session_id: this.session_id, status: run.status, open: String(run.ended_at === null) },
        created_ms: Date.parse(this.created_at),
      },
    };
  }

  /** Runs the turn and ends the run; resolves when everything is stored. Never rejects. */
  async run(prompt: Prompt): Promise<void> {
    let outcome: Outcome;
    this.#yielded_ms = this.options.deps.clock.monotonic();
    try {
      const { resume } = this.options;
      outcome = await this.#session.execute(prompt, {
        ...(resume ? { resume: true, ...resume } : {}),
        ...(this.#recovered ? { recovered: this.#recovered } : {}),
      });
    } catch (error) {
      outcome = failure(error);
    }
    await this.finish(outcome);
  }

  /** Ends a run whose process is gone and that nobody can go on with. */
  async interrupt(error: unknown): Promise<void> {
    const message = `Cannot go on with the run: its process ended: ${errorMessage(error)}`;
    await this.finish({ ...failure(error), error: { code: "interrupted", message } });
  }

  /** Ends a run that could not go on, such as a queued one whose modules cannot be had. */
  async fail(error: unknown): Promise<void> {
    await this.finish(failure(error));
  }

  /** `session:end`, cleanups, the session kept, `run:end`: exactly once. */
  async finish(outcome: Outcome): Promise<void> {
    if (this.#ending) return;
    this.#ending = true;
    const { deps, saveSession } = this.options;
    await this.#spawner.stop();
    try {
      await this.#session.cleanup(outcome.status);
    } catch (error) {
      this.#warn("cleanup_failed", errorMessage(error));
    }
    this.#terminal = true;
    const run = this.#fold.end(this.#redacted(outcome), timestamp(deps.clock.now()));
    try {
      await this.log.end(
        draftEntry("run:end", this.session_id, { run: run as unknown as JsonObject }),
        () => [
          this.#recordChange(),
          ...(this.#accepted ? [inputChange(this.#input ?? this.#inputNow(null), false)] : []),
          ...(this.#began ? [saveSession(this)] : []),
        ],
      );
      this.#end_is_stored = true;
    } catch (error) {
      deps.log("error", "run_end_not_stored", { run_id: this.id, message: errorMessage(error) });
    }
    this.desk.close();
    this.log.close();
    this.#ended.resolve(this.current());
    this.#notify();
  }

  #redacted(outcome: Outcome): Outcome {
    return this.#secrets.redact({ outcome: outcome as unknown as JsonObject }).outcome as unknown as Outcome;
  }

  current(): Run {
    return this.#fold.run;
  }

  /** Approvals of the run, pending and decided. */
  get approvals(): Approval[] {
    return this.#fold.approvals;
  }

  /** Whether the store knows that the run has ended. */
  get end_is_stored(): boolean {
    return this.#end_is_stored;
  }

  /** Whether the end of the run is decided. */
  get ended(): boolean {
    return this.#ending;
  }

  /** The messages of the session, this run's included. */
  get messages(): readonly Message[] {
    return this.#fold.historyOf(this.session_id);
  }

  /** The messages of a session of this run: its own, or a sub-agent's. */
  messagesOf(session_id: string): readonly Message[] {
    return this.#fold.historyOf(session_id);
  }

  /** What the requests of the session took since the last compaction. */
  get usages(): readonly LoggedUsage[] {
    return this.#fold.usages;
  }

  get session_state(): JsonObject {
    return this.#session.session_state;
  }

  settled(until: "end" | "attention"): Promise<Run> {
    if (until === "end") return this.#ended.promise;
    return this.#when(() => this.#fold.status === "awaiting_approval").then(() => this.current());
  }

  /** Resolves when `holds` does, or when the run has ended. */
  #when(holds: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const look = () => {
        if (!holds() && this.current().ended_at === null) return;
        this.#watchers.delete(look);
        resolve();
      };
      this.#watchers.add(look);
      look();
    });
  }

  /** Returns an approval once its answer is in the log. */
  async decided(approval_id: string): Promise<Approval> {
    const find = () => this.#fold.approvals.find((approval) => approval.id === approval_id);
    await this.#when(() => find()?.status !== "pending");
    return { ...find()! };
  }

  /** Stops the run; a question that waits is denied. */
  async cancel(mode: "graceful" | "immediate", reason = "cancelled"): Promise<void> {
    if (this.#ending) return;
    await this.desk.denyAll(reason);
    // until it is begun the session may be made anew, and would forget
    if (!this.#began) this.#stop = this.#stop === "immediate" ? this.#stop : mode;
    else await this.#session.cancel(mode);
  }

  /** @throws {PreampError} `run_ended`, `not_steerable`, `request_invalid` for blank text, `overloaded`. */
  steer(text: string): void {
    if (this.#ending) throw new PreampError("run_ended", "Cannot steer the run: it has ended");
    if (this.#fold.status === "queued") {
      throw new PreampError(
        "not_steerable",
        "Cannot steer the run: it waits for its session and has not started",
      );
    }
    const steer = this.#session.getCapability("session.steer");
    if (typeof steer !== "function") {
      throw new PreampError(
        "not_steerable",
        "Cannot steer the run: its orchestrator takes no steering; loop-streaming does",
      );
    }
    steer(text);
  }
}

/** Milliseconds a run may keep the thread: half of what a health check may be late. */
const YIELD_AFTER_MS = 10;

/** Warnings of the kernel that belong on the run object; the others are for the operator's log. */
const RUN_WARNINGS: ReadonlySet<string> = new Set([
  "module_overwritten",
  "tool_name_mismatch",
  "module_provides_missing",
  "mount_return_unknown",
  "price_unknown",
]);

/**
 * Returns what modules had left of a session's state. It is told right before the step that it belongs to: where the log ends
 * with it, that step is still to come.
 */
function stateAfter(before: JsonObject, entries: readonly Entry[], session_id: string): JsonObject {
  const state = { ...before };
  for (const { event, data, session_id: of } of entries.slice(0, -1)) {
    if (event !== "session:state" || of !== session_id || !isObject(data.set)) continue;
    for (const [key, value] of Object.entries(data.set)) {
      if (value === null) delete state[key]; // deleted
      else state[key] = value;
    }
  }
  return state;
}

/** Milliseconds that a log worked for, as far as it tells: what waited for a person does not count. */
function workedFor(entries: readonly Entry[]): number {
  let worked_ms = 0;
  let works = true;
  let before: number | null = null;
  for (const { event, ts, data } of entries) {
    const now = Date.parse(ts);
    if (works && before !== null) worked_ms += now - before;
    before = now;
    if (event === "run:status" || event === "run:start") works = data.status === "running";
  }
  return worked_ms;
}

function failure(error: unknown): Outcome {
  return {
    status: "failed",
    stop_reason: "error",
    output_text: "",
    output: [],
    error: { code: "internal", message: errorMessage(error) },
  };
}
