/**
 * Executes one run: makes its session, keeps its log, and ends exactly once. `scheduler/scheduler.ts` decides
 * when it starts; `run/session_host.ts` connects its sessions to the log.
 */
import { draftEntry } from "../../kernel/host.ts";
import type { Outcome } from "../../kernel/session/outcome.ts";
import type { RecoveredTurn } from "../../kernel/session/turn_recovery.ts";
import type { TurnOptions } from "../../kernel/session/run_turn.ts";
import { Session } from "../../kernel/session/session.ts";
import type { LoggedUsage } from "../../kernel/session/session_parts.ts";
import { errorCode, errorMessage, PreampError } from "../../sdk/errors.ts";
import type { JsonObject } from "../../sdk/json.ts";
import { warnOfUnheardHandlers } from "../unheard_handlers.ts";
import { timestamp } from "../../sdk/timestamp.ts";
import type { Message, Prompt } from "../../sdk/types.ts";
import { type Change, ConflictError, type Fence } from "../../store/store.ts";
import type { ApprovalQueue } from "./approvals.ts";
import type { RunsDeps } from "../ports.ts";
import { hasStarted, type OrphanedRun, stateAfter } from "../scheduler/crash_state.ts";
import { DAY_MS, recordChange } from "../storage/run_record.ts";
import { failedOutcome } from "./outcomes.ts";
import type { RunLog } from "./run_log.ts";
import { announceRecovery, restoreRun } from "./recovered_run.ts";
import type { NewRun } from "./run_options.ts";
import { createRunParts, type RunParts } from "./run_parts.ts";
import { RunRecords } from "./run_records.ts";
import type { Counters } from "../../sdk/session_status.ts";
import { type LastRun, lastRunOf } from "../session_status.ts";
import type { EndedChild, SavedSession } from "../storage/session_store.ts";
import type { Approval, RememberedApproval, Run, RunHandle } from "../types.ts";

/** The stored sessions of runs. Other processes may use them too. */
export interface RunSessions {
  /** Returns the fence of the run's session, or of its place in a queue. */
  fence(run: ActiveRun): Fence | undefined;
  /** Returns the change that stores the session after the run. */
  change(run: ActiveRun): Change;
  /** Returns the change that stores a sub-agent's session. */
  childChange(run: ActiveRun, child: EndedChild): Change;
  /**
   * Acquires the session of an earlier sub-agent, which only the session that spawned it may continue.
   * @throws {PreampError} `not_found`, `session_busy`.
   */
  acquireChild(run: ActiveRun, session_id: string, parent_id: string): Promise<SavedSession>;
  releaseChild(session_id: string): Promise<void>;
}

/** Options of {@link ActiveRun}. */
export interface ActiveRunOptions extends NewRun {
  deps: RunsDeps;
  sessions: RunSessions;
  /** Changes that are committed with the run's first entry, such as its idempotency key. */
  with_run: readonly Change[];
}

/** A run that is active or has ended in this process. */
export class ActiveRun implements RunHandle {
  readonly id: string;
  readonly session_id: string;
  readonly created_at: string;
  readonly log: RunLog;
  readonly approvalQueue: ApprovalQueue;
  readonly options: ActiveRunOptions;
  readonly #parts: RunParts;
  readonly #ended = Promise.withResolvers<Run>();
  #session: Session;
  /** Whether the session was initialised; only then it is stored at the end. */
  #has_begun = false;
  /** Cancellation requested before the session was initialised. */
  #requested_stop: "graceful" | "immediate" | null = null;
  /** Whether the outcome is decided; entries of the clean-up still follow. */
  #ending = false;
  #outcome: Outcome | null = null;
  /** Whether only this object has the run's outcome, because its end could not be stored. */
  end_is_unstored = false;
  /** Whether another process continues the run. */
  #is_suspended = false;
  /** Whether the run is stored. */
  is_accepted = false;
  /** State of the turn that a crashed process left. */
  #recovered: RecoveredTurn | null = null;
  readonly #records: RunRecords;

  constructor(options: ActiveRunOptions) {
    const { deps, sessions, run_id, session_id, saved, orphan } = options;
    this.options = options;
    this.id = run_id;
    this.session_id = session_id;
    const fence = () => sessions.fence(this);
    this.#parts = createRunParts(options, {
      fence,
      session: () => this.#session,
      accept: () => this.#accept(),
      acquireSession: (id, parent_id) => sessions.acquireChild(this, id, parent_id),
      releaseSession: (id) => sessions.releaseChild(id),
      saveSession: (child) => this.#saveChild(child),
    });
    const { created_at, log, approvalQueue, projection } = this.#parts;
    this.created_at = created_at;
    this.log = log;
    this.approvalQueue = approvalQueue;
    this.#records = new RunRecords({
      run: this,
      store: deps.store,
      fence,
      sessionChange: () => sessions.change(this),
      childChange: (child) => sessions.childChange(this, child),
    });
    if (orphan) {
      this.is_accepted = true;
      this.#recovered = restoreRun(orphan, this.#parts);
      if (orphan.input.surface !== null) this.#records.restoreInput(orphan.input);
    }
    this.#session = this.#createSession(saved, projection.status === "queued" ? undefined : orphan);
  }

  /** @param orphan The interrupted run whose session is restored. */
  #createSession(saved: SavedSession | null, orphan?: OrphanedRun): Session {
    const { ready, session_id } = this.options;
    const { hosts, limitGuard, limits, projection, spawner } = this.#parts;
    return new Session({
      plan: ready.compiled.plan,
      written: ready.compiled.written,
      host: hosts.hostOf(ready, session_id),
      run_limits: limitGuard,
      capabilities: spawner.capabilities(() => this.#session, ready, limitGuard),
      limits,
      session_id,
      session_state: orphan
        ? stateAfter(orphan.input.session_state, orphan.entries, session_id)
        : saved?.session_state ?? {},
      history: orphan ? [...projection.historyOf(session_id)] : saved?.messages ?? [],
      usages: projection.usagesOf(session_id),
      continued: orphan ? hasStarted(orphan.entries, session_id) || orphan.input.continued : saved !== null,
    });
  }

  /**
   * Stores a sub-agent's session. A failure is a warning: the sub-agent has answered, but cannot be resumed.
   */
  async #saveChild(child: EndedChild): Promise<void> {
    if (this.#is_suspended) return;
    try {
      await this.#records.storeChild(child);
    } catch (error) {
      this.#parts.hosts.warn("agent_not_kept", errorMessage(error), { session_id: child.session_id });
    }
  }

  /** Replaces the session by the one that the previous run of the queue left. */
  continueFrom(saved: SavedSession): void {
    this.options.saved = saved;
    this.#parts.projection.continueFrom(this.session_id, saved);
    this.#session = this.#createSession(saved);
  }

  /** Records that the run waits for its session at this place of its queue. From then on the run exists. */
  async queue(place: string): Promise<void> {
    await this.#start("queued");
    await this.#accept(place);
  }

  /** Leaves a waiting run to other processes: records nothing more. */
  handOver(): void {
    this.#ending = true;
    this.#parts.hosts.close();
    this.#close();
  }

  /** Initialises the session. Resolves once the run exists; on rejection nothing is stored. */
  async begin(): Promise<void> {
    try {
      await this.#execute(() => this.#begin());
    } catch (error) {
      throw this.#parts.secrets.redactError(error);
    }
  }

  /** Executes modules of the run: in its trace context, and logs their console output with the run's ids. */
  #execute<T>(body: () => Promise<T>): Promise<T> {
    const { hosts, observer } = this.#parts;
    const { ready, session_id } = this.options;
    const captured = () => ready.withConsole?.(hosts.reporterOf(session_id).console, body) ?? body();
    return observer?.within?.(captured) ?? captured();
  }

  async #begin(): Promise<void> {
    const { orphan } = this.options;
    if (orphan) await announceRecovery(orphan, this.#parts, this.#parts.hosts);
    else if (this.is_accepted) await this.#parts.hosts.status({ status: "running" });
    else await this.#start("running");
    await this.options.ready.load?.();
    await this.#session.initialize();
    this.#has_begun = true;
    // a queued run was accepted before its session was initialised
    await this.#records.storeBegun(this.#session);
    if (this.#requested_stop !== null) await this.#session.cancel(this.#requested_stop);
  }

  async #start(status: "queued" | "running"): Promise<void> {
    const { ready, request } = this.options;
    const { traceparent } = this.#parts.observer ?? {};
    await this.log.record(draftEntry("run:start", this.session_id, {
      status,
      plan_hash: ready.compiled.plan_hash,
      lock_hash: ready.lock_hash,
      limits: { ...ready.limits },
      metadata: request.metadata ?? {},
      ...(traceparent === undefined ? {} : { traceparent }),
    }));
  }

  /** @param place Place in the queue of its session. Default: it has the session. */
  async #accept(place?: string): Promise<void> {
    if (this.is_accepted) return;
    if (this.options.resume && !this.#session.resumable) {
      throw new PreampError(
        "not_replayable",
        "Cannot continue from this entry: the plan's orchestrator does not declare resumable: true",
      );
    }
    this.options.createOptions.admit?.(this.#parts.projection.run);
    this.is_accepted = true;
    const { deps, with_run, sessions } = this.options;
    const records = place === undefined ? this.#records.begun(this.#session) : this.#records.queued(place);
    try {
      await this.log.accept((appended) =>
        deps.store.commit([appended, ...records, ...with_run], sessions.fence(this))
      );
    } catch (error) {
      this.is_accepted = false;
      throw error;
    }
  }

  /** Runs the turn and ends the run. Resolves when everything is stored; never rejects. */
  async run(prompt: Prompt): Promise<void> {
    const { resume } = this.options;
    const options: TurnOptions = {
      ...(resume ? { resume: true, ...resume } : {}),
      ...(this.#recovered ? { recovered: this.#recovered } : {}),
    };
    let outcome: Outcome;
    try {
      outcome = await this.#execute(() => this.#session.execute(prompt, options));
    } catch (error) {
      outcome = failedOutcome(error);
    }
    await this.finish(outcome);
  }

  /** Ends the run, also one that cannot start, exactly once: `session:end`, cleanups, stored session, `run:end`. */
  async finish(outcome: Outcome): Promise<void> {
    if (this.#ending) return;
    this.#ending = true;
    const { deps } = this.options;
    const { spawner, hosts, projection, limits } = this.#parts;
    await spawner.stop();
    try {
      if (this.#has_begun) {
        await warnOfUnheardHandlers(this.#session, (code, message) => hosts.warn(code, message));
      }
      await this.#execute(() => this.#session.cleanup(outcome.status));
    } catch (error) {
      hosts.warn("cleanup_failed", errorMessage(error));
    }
    hosts.close();
    await hosts.contextRecorded;
    const now_ms = deps.clock.now();
    this.#outcome = this.withoutSecrets({ outcome }).outcome;
    const run = projection.end(this.#outcome, timestamp(now_ms));
    const expires_ms = now_ms + limits.log_days * DAY_MS;
    try {
      await this.log.end(
        draftEntry("run:end", this.session_id, { run: run as unknown as JsonObject }),
        () => this.is_accepted ? this.#records.ended(expires_ms, this.#has_begun) : [recordChange(this)],
      );
    } catch (error) {
      this.end_is_unstored = !(error instanceof ConflictError); // otherwise another process continues the run
      deps.log("error", "run_end_not_stored", { run_id: this.id, message: errorMessage(error) });
    }
    this.#close();
  }

  #close(): void {
    this.approvalQueue.close();
    this.log.close();
    this.#parts.observer?.ended();
    this.#ended.resolve(this.current());
    this.#parts.waiters.notify();
  }

  current(): Run {
    return this.#parts.projection.run;
  }

  /** Approvals of the run, pending and decided. */
  get approvals(): Approval[] {
    return this.#parts.projection.approvals;
  }

  /** Whether the outcome of the run is decided. */
  get ended(): boolean {
    return this.#ending;
  }

  /** Returns the messages of a session of this run: its own, or a sub-agent's. */
  messagesOf(session_id: string): readonly Message[] {
    return this.#parts.projection.historyOf(session_id);
  }

  /** Returns the counters of a session of this run over all of the session's runs. */
  countersOf(session_id: string): Counters {
    return { ...this.#parts.projection.countersOf(session_id) };
  }

  /** Outcome of the run for its session; null while the run is active. */
  get last_run(): LastRun | null {
    return this.#outcome && lastRunOf(this.#outcome);
  }

  /** Reported token usage of the session's requests since the last compaction. */
  get usages(): readonly LoggedUsage[] {
    return this.#parts.projection.usagesOf(this.session_id);
  }

  /** Remembered approvals of the session. */
  get remembered(): readonly RememberedApproval[] {
    return this.#parts.projection.rememberedOf(this.session_id);
  }

  get session_state(): JsonObject {
    return this.withoutSecrets(this.#session.session_state);
  }

  /** Returns data without secrets. */
  withoutSecrets<T extends object>(data: T): T {
    return this.#parts.secrets.redactValues(data as JsonObject) as T; // redaction keeps the shape
  }

  settled(until: "end" | "attention"): Promise<Run> {
    return until === "end" ? this.#ended.promise : this.#parts.waiters.untilAttention();
  }

  /** Resolves to an approval once its answer is in the log. */
  decided(approval_id: string): Promise<Approval> {
    return this.#parts.waiters.untilDecided(approval_id);
  }

  /** Cancels the run and denies its open questions. */
  async cancel(mode: "graceful" | "immediate", reason = "cancelled"): Promise<void> {
    if (this.#ending) return;
    await this.approvalQueue.denyAll(reason);
    if (this.#has_begun) await this.#session.cancel(mode);
    else if (this.#requested_stop !== "immediate") this.#requested_stop = mode; // the session may be replaced
  }

  /**
   * Stops executing the run without ending it: its log and its open questions stay as they are stored, and another process, or
   * the next start of this one, continues it from there.
   */
  async suspend(): Promise<void> {
    if (this.#ending) return;
    if (!this.is_accepted) return await this.cancel("immediate", "the server is stopping");
    this.#ending = this.#is_suspended = true;
    const { deps } = this.options;
    this.approvalQueue.handOver();
    try {
      await this.log.handOver();
      await this.#parts.spawner.stop();
      await this.#session.cancel("immediate");
      await this.#execute(() => this.#session.cleanup("interrupted"));
    } catch (error) {
      if (errorCode(error) !== "draining") { // else a step that waited for its entry
        deps.log("error", "run_not_suspended", { run_id: this.id, message: errorMessage(error) });
      }
    }
    this.#parts.hosts.close();
    this.#parts.observer?.ended();
    this.log.wake(); // its readers follow the stored log
    deps.log("info", "run_handed_over", { run_id: this.id });
  }

  /**
   * Sends a steering message to the loop. @throws {PreampError} `run_ended`, `not_steerable`,
   * `request_invalid` for blank text, `overloaded`.
   */
  async steer(text: string): Promise<void> {
    if (this.#ending) throw new PreampError("run_ended", "Cannot steer the run: it has ended");
    const steer = this.#session.getCapability("session.steer");
    const queued = this.#parts.projection.status === "queued";
    if (queued || typeof steer !== "function") {
      const fact = queued
        ? "it waits for its session and has not started"
        : "its orchestrator does not support steering; use loop-streaming";
      throw new PreampError("not_steerable", `Cannot steer the run: ${fact}`);
    }
    await steer(text); // a promise if the loop is sandboxed
  }
}
