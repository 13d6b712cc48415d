/**
 * Executes one run: makes its session, keeps its log, and ends exactly once. `scheduler/scheduler.ts` decides
 * when it starts; `run/session_host.ts` connects its sessions to the log.
 */
import { draftEntry, type Entry, type LimitQuestion } from "../../kernel/host.ts";
import { RunLimitGuard } from "../../kernel/run_limits.ts";
import { failedOutcome, type Outcome } from "../../kernel/outcome.ts";
import type { InterruptedTurn } from "../../kernel/interrupted_turn.ts";
import { Session, type TurnOptions } from "../../kernel/session.ts";
import { errorCode, errorMessage, hasCode, PreampError } from "../../sdk/errors.ts";
import type { JsonObject } from "../../sdk/json.ts";
import { textOf } from "../../sdk/messages.ts";
import { warnOfUnheardHandlers } from "../unheard_handlers.ts";
import { onAbort } from "../../sdk/abortable.ts";
import { timestamp } from "../../sdk/timestamp.ts";
import type { Prompt, RaisableLimit } from "../../sdk/types.ts";
import type { Change } from "../../store/store.ts";
import { ApprovalQueue } from "./approval_queue.ts";
import type { RunObserver, SecretSink, ServiceLimits } from "../ports.ts";
import { Spawner } from "../subagents/spawner.ts";
import type { Lease } from "./lease.ts";
import { checkRaised, raisedLimit, type RaisedLimits } from "./raised_limits.ts";
import { RunLog } from "./run_log.ts";
import { announceRecovery, hasStarted, restoreRun, stateAfter, waitingTexts } from "./restored_run.ts";
import type { RunOptions } from "./run_options.ts";
import { RunProjection } from "./run_projection.ts";
import { DAY_MS, RunRecords } from "./run_records.ts";
import { RunStore } from "./run_store.ts";
import { RunWaiters } from "./run_waiters.ts";
import { SessionHost } from "./session_host.ts";
import { FileChanges } from "../storage/file_changes.ts";
import { type EndedChild, initialState, lastRunOf } from "../storage/session_store.ts";
import type { AgentInput, LastRun, Run, RunHandle, RunStatus, SavedSession } from "../types.ts";
import type { OrphanedRun } from "../storage/run_input.ts";

/** Characters of a prompt that make the title of its run. */
const MAX_TITLE = 200;

/** A run that is active or has ended in this process. */
export class ActiveRun implements RunHandle {
  readonly id: string;
  readonly session_id: string;
  readonly created_at: string;
  readonly options: RunOptions;
  readonly limits: ServiceLimits;
  readonly secrets: SecretSink;
  readonly projection: RunProjection;
  readonly limitGuard: RunLimitGuard;
  readonly store: RunStore;
  readonly log: RunLog;
  readonly records: RunRecords;
  /** Clients that wait for a status of the run or for an answer. */
  readonly waiters: RunWaiters;
  readonly #observer: RunObserver | undefined;
  readonly #spawner: Spawner;
  readonly #closed = Promise.withResolvers<void>();
  /** Resolves when this process has ended the run, or has lost it to another one. */
  readonly closed = this.#closed.promise;
  #host: SessionHost;
  #session: Session;
  #approvals: ApprovalQueue | null = null;
  #files: FileChanges | null = null;
  /** Whether the session was initialised; only then it is stored at the end. */
  #has_begun = false;
  /** Cancellation requested before the session was initialised. */
  #requested_stop: "graceful" | "immediate" | null = null;
  /** Whether the outcome is decided; entries of the clean-up still follow. */
  #ending = false;
  #outcome: Outcome | null = null;
  /** Resolves when a refused end, or what is handed over, is stored or left to others; null: no such. */
  late_commit: Promise<void> | null = null;
  /** Whether another process continues the run. */
  #is_suspended = false;
  lease: Lease | null = null;
  /** Whether the run is stored. */
  is_accepted = false;
  /** State of the turn that a crashed process left. */
  #recovered: InterruptedTurn | null = null;

  /** Registers the secrets of the plan. */
  constructor(options: RunOptions) {
    const { deps, ready, run_id, session_id, saved, caller, orphan } = options;
    const { clock } = deps;
    this.options = options;
    this.id = run_id;
    this.session_id = session_id;
    this.created_at = orphan?.input.created_at ?? timestamp(clock.now());
    this.limits = deps.limitsOf(caller);
    this.secrets = deps.secrets();
    ready.registerSecrets(this.secrets);
    this.projection = new RunProjection(
      {
        id: run_id,
        session_id,
        created_at: this.created_at,
        events_url: `${deps.basePath ?? ""}/v1/runs/${run_id}/events`,
        warnings: ready.warnings,
      },
      orphan ? { ...orphan.input, counters: saved?.counters } : saved ?? undefined,
    );
    this.#observer = deps.observe?.({ id: run_id, session_id, earlier: orphan?.entries ?? [] });
    const cost_limit_is_set = ready.cost_is_asked_for;
    this.limitGuard = new RunLimitGuard({ limits: ready.limits, cost_limit_is_set, clock });
    this.store = new RunStore(this);
    this.log = new RunLog(this);
    this.waiters = new RunWaiters(this.projection);
    this.records = new RunRecords(this, orphan && orphan.input.surface !== null ? orphan.input : null);
    this.#spawner = new Spawner(this);
    if (orphan) {
      this.is_accepted = true;
      this.#recovered = restoreRun(orphan, this);
    }
    this.#host = new SessionHost(this, ready, session_id);
    this.#session = this.#createSession(saved, this.projection.status === "queued" ? undefined : orphan);
  }

  /** @param orphan The interrupted run whose session is restored. */
  #createSession(saved: SavedSession | null, orphan?: OrphanedRun): Session {
    const { ready, session_id } = this.options;
    const { projection, limitGuard } = this;
    const { session_state, history, usages, continued } = !orphan ? initialState(saved) : {
      session_state: stateAfter(orphan.input.session_state, orphan.entries, session_id),
      history: [...projection.of(session_id).history],
      usages: projection.of(session_id).usages,
      continued: hasStarted(orphan.entries, session_id) || orphan.input.continued,
    };
    return new Session({
      plan: ready.compiled.plan,
      written: ready.compiled.written,
      host: this.#host,
      run_limits: limitGuard,
      capabilities: this.#spawner.capabilities(() => this.#session, ready, limitGuard),
      limits: this.limits,
      session_id,
      session_state,
      history,
      usages,
      continued,
    });
  }

  /** The run's own session, which may be replaced before it begins. */
  get session(): Session {
    return this.#session;
  }

  /** Questions of the run that wait for an answer. */
  get approvalQueue(): ApprovalQueue {
    return this.#approvals ??= new ApprovalQueue(this, (limit, by) => this.#raiseAsAllowed(limit, by));
  }

  /** What the run keeps of the files that it changes. */
  get files(): FileChanges {
    return this.#files ??= new FileChanges(this);
  }

  /** Writes with this lease from now on. Leaves the run once another process has taken the lease. */
  hold(lease: Lease): void {
    this.lease = lease;
    if (this.options.deps.store.changed === undefined) return; // no other process
    onAbort(lease.lost, () => {
      if (this.lease !== lease || !this.is_accepted || this.#ending) return; // its next commit is refused
      if (this.projection.status === "queued") this.handOver();
      else void this.leave();
    });
  }

  /** Receives entries after they are stored. */
  stored(entries: readonly Entry[]): void {
    this.records.stored();
    this.#notifyObserver((observer) => observer.stored(entries));
  }

  /** Calls the observer. Its failure does not change the run. */
  #notifyObserver(notify: (observer: RunObserver) => void): void {
    try {
      if (this.#observer) notify(this.#observer);
    } catch (error) {
      this.#report("run_not_observed", error);
    }
  }

  #report(event: string, error: unknown): void {
    this.options.deps.log("error", event, { run_id: this.id, message: errorMessage(error) });
  }

  /** Stores a sub-agent's session; if that fails, it has answered but cannot be resumed. */
  async saveSession(child: EndedChild): Promise<void> {
    if (this.#is_suspended) return;
    try {
      await this.records.storeChild(child);
    } catch (error) {
      this.#host.warn("agent_not_kept", errorMessage(error), { session_id: child.session_id });
    }
  }

  /** Replaces the session by the one that the previous run of the queue left. */
  continueFrom(saved: SavedSession): void {
    this.options.saved = saved;
    this.projection.continueFrom(this.session_id, saved);
    this.#host = new SessionHost(this, this.options.ready, this.session_id);
    this.#session = this.#createSession(saved);
  }

  /**
   * Records that the run waits for its session at this place of its queue. From then on the run exists.
   * `replaces`: whether a run of the same caller has the session, and is cancelled for this one.
   */
  async queue(place: string, replaces: boolean): Promise<void> {
    this.#start("queued");
    await this.accept(place, replaces);
  }

  /** Leaves a waiting or suspended run to other processes: records nothing more. */
  handOver(): void {
    this.#ending = true;
    this.log.stop();
    this.#close();
  }

  /** Initialises the session. Resolves once the run exists; on rejection nothing is stored. */
  begin(): Promise<void> {
    return this.#execute(() => this.#begin());
  }

  /** Executes modules of the run: in its trace context, and logs their console output with the run's ids. */
  #execute<T>(body: () => Promise<T>): Promise<T> {
    const captured = () => this.#host.withConsole(body);
    return this.#observer?.within?.(captured) ?? captured();
  }

  async #begin(): Promise<void> {
    const { orphan, ready } = this.options;
    try {
      if (orphan) await announceRecovery(orphan, this, this.#host);
      else if (this.is_accepted) await this.#host.status({ status: "running" });
      else this.#start("running");
      await ready.load?.();
      await this.#session.initialize();
      this.#has_begun = true;
      const steer = this.#session.getCapability("session.steer");
      for (const text of waitingTexts(orphan?.entries ?? [])) {
        if (typeof steer === "function") await steer(text);
      }
      // a queued run was accepted before its session was initialised
      await this.records.storeBegun((changes) => this.log.storeWith(changes));
      if (this.#requested_stop !== null) await this.#session.cancel(this.#requested_stop);
    } catch (error) {
      throw this.secrets.redactError(error);
    }
  }

  /** The beginning of the prompt; cut after its secrets were redacted, of which no part may stay. */
  #title(): string {
    const { prompt } = this.options.request;
    const typed = typeof prompt === "string" ? prompt : prompt.find(({ type }) => type === "text")?.text;
    const text = this.secrets.redactValues(textOf(typed ?? prompt)); // further texts are attached files
    return [...text.slice(0, 2 * MAX_TITLE).replace(/\s+/g, " ").trim()].slice(0, MAX_TITLE).join("");
  }

  /** Records the first entry, which is stored when the run is accepted. */
  #start(status: "queued" | "running"): void {
    const { ready, request, forked_from } = this.options;
    const { traceparent } = this.#observer ?? {};
    void this.log.record(draftEntry("run:start", this.session_id, {
      status,
      plan_hash: ready.compiled.plan_hash,
      lock_hash: ready.lock_hash,
      limits: this.limitGuard.limits,
      metadata: request.metadata ?? {},
      title: this.#title(),
      ...(ready.instructions ? { instructions: ready.instructions.map((file) => ({ ...file })) } : {}),
      ...(forked_from ? { forked_from } : {}),
      ...(traceparent === undefined ? {} : { traceparent }),
    }));
  }

  /** Stores the run. @param place Place in the queue of its session. Default: it has the session. */
  async accept(place?: string, replaces = false): Promise<void> {
    if (this.is_accepted) return;
    if (this.options.resume && !this.#session.resumable) {
      throw new PreampError(
        "not_replayable",
        "Cannot continue from this entry: the plan's orchestrator does not declare resumable: true",
      );
    }
    const { with_run, createOptions: { admit } } = this.options;
    admit?.(this.current());
    const records = place === undefined ? this.records.begun() : this.records.queued(place);
    this.is_accepted = true;
    try {
      await this.log.accept(records.concat(with_run, this.records.counted(replaces)));
    } catch (error) {
      this.is_accepted = false;
      throw error;
    }
  }

  /** Runs the turn and ends the run. Resolves when everything is stored; never rejects. */
  async run(prompt: Prompt): Promise<void> {
    const { resume } = this.options;
    const options: TurnOptions = resume ? { resume: true, ...resume } : {};
    if (this.#recovered) options.recovered = this.#recovered;
    let outcome: Outcome;
    try {
      outcome = await this.#execute(() => this.#session.execute(prompt, options));
    } catch (error) {
      outcome = failedOutcome(error);
    }
    await this.finish(outcome);
  }

  /**
   * Ends the run, also one that cannot start, once: `session:end`, cleanups, stored session, `run:end`. If
   * the store fails, the run has not ended and keeps its session, and `late_commit` is set. Never rejects.
   */
  async finish(outcome: Outcome): Promise<void> {
    if (this.#ending) return;
    this.#ending = true;
    try {
      await this.#spawner.stop();
      await this.#cleanUp(outcome.status);
      await this.#storeEnd(outcome);
    } catch (error) { // of the run itself, not of the store: it would come again
      this.#report("run_end_failed", error);
      await this.#storeEnd(failedOutcome(error)).catch((again) => this.#report("run_lost", again));
    } finally {
      if (this.late_commit === null) this.#close();
    }
  }

  async #cleanUp(status: Outcome["status"]): Promise<void> {
    try {
      if (this.#has_begun) await warnOfUnheardHandlers(this.#session, this.#host);
      await this.#execute(() => this.#session.cleanup(status));
    } catch (error) {
      this.#host.warn("cleanup_failed", errorMessage(error));
    }
  }

  /** Records and stores `run:end`. If the store fails, sets `late_commit`. */
  async #storeEnd(outcome: Outcome): Promise<void> {
    this.log.stop();
    await this.#host.context_recorded;
    const now_ms = this.options.deps.clock.now();
    this.#outcome = this.secrets.redactValues({ outcome }).outcome;
    const { run } = this.secrets.redactValues({
      run: this.projection.end(this.#outcome, timestamp(now_ms)),
    });
    const expires_ms = now_ms + this.limits.retention_days * DAY_MS;
    const { lease } = this;
    const changes = this.records.ended(run, expires_ms, this.#has_begun, lease); // first: it may fail
    this.log.end(draftEntry("run:end", this.session_id, { run: run as unknown as JsonObject }));
    const store = async () => {
      await this.log.storeWith(() => changes);
      lease?.released();
    };
    try {
      await store();
    } catch (error) {
      const retried = this.store.retryEnd(run, store, error);
      this.late_commit = retried.then((is_done) => is_done ? this.#close() : this.#leave());
    }
  }

  #close(): void {
    if (this.log.closed) return;
    this.log.close();
    this.#notifyObserver((observer) => observer.ended());
    this.options.scheduler.ended(this);
    this.#closed.resolve();
    this.waiters.close();
  }

  /** Leaves the run to another process. Its readers follow the stored log. */
  #leave(): void {
    this.log.stop();
    this.#notifyObserver((observer) => observer.ended());
    this.log.wake();
    this.options.deps.log("info", "run_handed_over", { run_id: this.id });
  }

  /** Raises a limit by as much again, as the answer to a question allows, unless it was raised since. */
  async #raiseAsAllowed({ name, value }: LimitQuestion, raised_by: string | null): Promise<void> {
    const raised = this.limitGuard.limits[name] === value ? this.raised(name) : null;
    if (raised !== null) await this.#recordLimits({ [name]: raised }, raised_by);
  }

  raised(limit: RaisableLimit): number | string | null {
    return raisedLimit(
      limit,
      this.options.ready.limits[limit],
      this.limitGuard.limits[limit],
      this.limits[limit],
    );
  }

  /**
   * Raises limits, and answers the questions about them; resolves to the ids of these. `change`: stored in
   * the same commit.
   * @throws {PreampError} `run_ended`, `request_invalid`, `policy_refused`
   */
  async raiseLimits(limits: RaisedLimits, raised_by: string, change?: Change): Promise<string[]> {
    if (this.#ending) {
      throw new PreampError("run_ended", "Cannot raise limits: the run is ending or has ended");
    }
    checkRaised(limits, this.limitGuard, this.limits);
    await this.#recordLimits(limits, raised_by, change);
    const answer = { decision: "allow", reason: null, decided_by: raised_by };
    const answered = this.projection.approvals.filter(({ status, limit }) =>
      status === "pending" && limit !== undefined && limits[limit.name] !== undefined
    ).map(({ id }) => id);
    for (const id of answered) {
      await this.approvalQueue.decide(id, answer).catch((error) => {
        if (!hasCode(error, "approval_already_resolved")) throw error; // answered meanwhile; the limit is raised
      });
    }
    return answered;
  }

  async #recordLimits(raised: RaisedLimits, raised_by: string | null, change?: Change): Promise<void> {
    const limits = { ...this.limitGuard.limits, ...raised };
    const { session_id, session } = this;
    const draft = draftEntry(
      "run:limits",
      session_id,
      { limits: { ...limits }, raised_by },
      session.turn_fields,
    );
    await this.log.record(draft, change);
    this.limitGuard.raise(raised);
  }

  /**
   * Sends a text to the loop; resolves once it is stored. `change`: stored in the same commit.
   * @throws {PreampError} `run_ended`, `not_steerable`, and the errors of the loop.
   */
  async steer(text: string, change?: Change): Promise<void> {
    const { session, projection } = this;
    if (this.#ending) throw new PreampError("run_ended", "Cannot steer the run: it is ending or has ended");
    const send = session.getCapability("session.steer");
    if (projection.status === "queued" || typeof send !== "function") throw notSteerable(projection.status);
    await send(text); // a promise if the loop is sandboxed
    await this.log.record(draftEntry("run:steered", this.session_id, { text }, session.turn_fields), change);
  }

  /** Whether the run takes the commands of other servers: it waits, or its session is initialised. */
  get takes_commands(): boolean {
    return !this.#ending && (this.#has_begun || this.projection.status === "queued");
  }

  /** Says in the run that a command of another server was stored and could not be carried out. */
  refuse(error: unknown): void {
    this.#host.warn("command_refused", errorMessage(error));
  }

  current(): Run {
    return this.projection.run;
  }

  /** Inputs of the sub-agents' turns that run now. */
  get running_agents(): AgentInput[] {
    return this.#spawner.inputs;
  }

  /** Whether the outcome of the run is decided; its end may not be stored yet. */
  get ended(): boolean {
    return this.#ending;
  }

  /** Outcome of the run for its session; null while the run is active. */
  get last_run(): LastRun | null {
    return this.#outcome && lastRunOf(this.#outcome);
  }

  async settled(until: "end" | "attention"): Promise<Run> {
    await (until === "end" ? this.closed : this.waiters.untilAttention());
    const run = this.current();
    const is_lost = this.log.closed && run.ended_at === null;
    return is_lost ? await this.options.scheduler.settledElsewhere(this, until) : run;
  }

  /** Cancels the run and denies its open questions. */
  async cancel(mode: "graceful" | "immediate", reason = "cancelled"): Promise<void> {
    if (this.#ending) return;
    this.approvalQueue.denial_reason = reason;
    if (this.#has_begun) await this.#session.cancel(mode);
    else if (this.#requested_stop !== "immediate") this.#requested_stop = mode; // the session may be replaced
  }

  /**
   * Stops executing the run without ending it: its log and its open questions stay as they are stored, and
   * another process, or the next start of this one, continues it from there.
   */
  async suspend(): Promise<void> {
    if (this.#ending) return;
    if (!this.is_accepted) return await this.cancel("immediate", "the server is stopping");
    this.#ending = this.#is_suspended = true;
    const report = (error: unknown) => {
      if (errorCode(error) !== "draining") this.#report("run_not_suspended", error); // a step that waited for its entry
    };
    this.approvalQueue.handOver();
    this.store.stop();
    this.late_commit = this.log.handOver().catch(report); // what is not stored then is lost
    try {
      await this.#spawner.stop();
      await this.#session.cancel("immediate");
      await this.#execute(() => this.#session.cleanup("interrupted"));
    } catch (error) {
      report(error);
    }
    await this.late_commit;
    this.#leave();
  }

  /**
   * Stops executing the run, which another process, or this one later, continues. `error`: why the store took
   * nothing in time; absent: another process has the run already.
   */
  async leave(error?: unknown): Promise<void> {
    if (this.#ending) return;
    if (error !== undefined) {
      this.#report("run_left", error);
      const ended_at = timestamp(this.options.deps.clock.now());
      this.options.createOptions.endNotStored?.(this.projection.end(failedOutcome(error), ended_at));
    }
    await this.suspend(); // never rejects
    this.handOver();
  }
}

/** Returns the error of a text for a run that takes none. */
export function notSteerable(status: RunStatus): PreampError {
  const fact = status === "queued"
    ? "it waits for its session and has not started"
    : "its orchestrator does not support steering; use loop-streaming";
  return new PreampError("not_steerable", `Cannot steer the run: ${fact}`);
}
