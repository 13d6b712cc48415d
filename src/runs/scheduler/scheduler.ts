/**
 * Schedules runs: one active run per session, a global and a per-caller limit, deduplication by idempotency
 * key, and a FIFO queue per busy session. `run/run.ts` executes a run.
 */
import { printableId } from "../../sdk/ids.ts";
import { errorCode, PreampError } from "../../sdk/errors.ts";
import { Admission, tooManyRuns } from "./admission.ts";
import type { RunsDeps } from "../ports.ts";
import { RunStarter } from "./run_starter.ts";
import { busyElsewhere, busyError } from "./leases.ts";
import { type RunsAnywhere, SchedulerContext } from "./scheduler_context.ts";
import { SessionQueue } from "./session_queue.ts";
import { Shutdown } from "./shutdown.ts";
import { Idempotency } from "./idempotency.ts";
import { Recovery } from "./orphaned_runs.ts";
import { ActiveRun } from "../run/run.ts";
import type { NewRun, RunOwner } from "../run/run_options.ts";
import { callerOfPlan, type SessionStore, withSessionPlan } from "../storage/session_store.ts";
import { type Awaitable, type Change, TOO_MANY } from "../../store/store.ts";
import type { Caller, CreateOptions, Run, RunHandle, RunRequest, SavedSession } from "../types.ts";

/** Starts the runs of this process and tracks them until they end. */
export class RunScheduler implements RunOwner {
  /** Continues the runs of crashed processes. */
  readonly recovery: Recovery;
  readonly shutdown: Shutdown;
  readonly #idempotency: Idempotency;
  readonly context: SchedulerContext;
  readonly #queue: SessionQueue;
  readonly #starter: RunStarter;
  readonly #admission: Admission;

  constructor(deps: RunsDeps, sessions: SessionStore, anywhere: RunsAnywhere) {
    this.#idempotency = new Idempotency(deps.store);
    const context = new SchedulerContext(deps, sessions, anywhere, (id) => this.#queue.check(id));
    this.context = context;
    this.#queue = new SessionQueue(context, (run) => this.#starter.startWaiting(run));
    this.#starter = new RunStarter(
      context,
      this.#queue,
      (run_id, lease) => this.recovery.endOrphan(run_id, lease, true),
    );
    this.#admission = new Admission((caller) => deps.limitsOf(caller));
    this.recovery = new Recovery(context, this.#queue, (options) => this.#newAdmittedRun(options));
    this.shutdown = new Shutdown(context, this.#queue, this.recovery);
  }

  /** Starts a run. When the idempotency key already has a run, returns that run by `find`. */
  create(
    request: RunRequest,
    caller: Caller,
    options: CreateOptions,
    find: (run_id: string) => Promise<RunHandle>,
  ): Promise<RunHandle> {
    const { idempotency } = options;
    if (!idempotency) return this.#create(request, caller, options);
    return this.#idempotency.once<RunHandle>(
      caller,
      idempotency,
      () => this.#create(request, caller, options),
      find,
    );
  }

  #create(request: RunRequest, caller: Caller, createOptions: CreateOptions): Promise<ActiveRun> {
    const { session_id } = request;
    return this.#start(
      { request, caller, createOptions, session_id: session_id ?? this.context.deps.newId("ses") },
      () => session_id === undefined ? null : this.context.sessions.load(caller, session_id),
      (run) => this.#starter.start(run),
    );
  }

  /** Starts a run in a new session, from an entry of another run. `resume`: continues that run's turn. */
  startIn(
    saved: SavedSession,
    request: RunRequest,
    caller: Caller,
    createOptions: CreateOptions,
    { forked_from, resume }: Pick<NewRun, "forked_from" | "resume">,
  ): Promise<RunHandle> {
    const session_id = saved.object.id;
    return this.#start(
      { request, caller, createOptions, session_id, forked_from, resume },
      () => saved,
      (run) => this.#starter.startNew(run),
    );
  }

  /** Counts a run against the limits of concurrent runs until its end, prepares its plan, and begins it. */
  async #start(
    options: Omit<NewRun, "orphan" | "ready" | "run_id" | "saved" | "slot">,
    load: () => Awaitable<SavedSession | null>,
    begin: (run: ActiveRun) => Promise<void>,
  ): Promise<ActiveRun> {
    if (this.context.is_draining) {
      throw new PreampError("draining", "Cannot start a run: the server is stopping");
    }
    const { request, caller, createOptions, session_id } = options;
    const slot = this.#admission.reserve(caller, session_id, request.if_busy);
    try {
      const saved = await load();
      const { deps } = this.context;
      const ready = await deps.ready(
        withSessionPlan(request, saved),
        callerOfPlan(caller, request, saved),
        createOptions.base_url ?? saved?.plan_base_url ?? undefined,
        createOptions.headers,
      );
      const run_id = deps.newId("run");
      const headers = await this.context.headers.store(run_id, ready.compiled, createOptions.headers);
      const run = new ActiveRun({
        deps,
        scheduler: this,
        ...options,
        saved,
        ready,
        headers,
        run_id,
        slot,
        with_run: this.#keyOf(run_id, caller, createOptions),
      });
      await begin(run);
      return run;
    } catch (error) {
      this.#admission.release(slot);
      if (errorCode(error) !== TOO_MANY) throw error;
      throw tooManyRuns("max_runs_per_key", this.context.deps.limitsOf(caller));
    }
  }

  #newAdmittedRun(options: Omit<NewRun, "slot">): ActiveRun {
    const slot = this.#admission.add(options.caller, options.session_id);
    try {
      return new ActiveRun({ ...options, slot, deps: this.context.deps, scheduler: this, with_run: [] });
    } catch (error) {
      this.#admission.release(slot);
      throw error;
    }
  }

  /** Returns the change that stores the idempotency key of a run, if it has one. */
  #keyOf(run_id: string, caller: Caller, { idempotency }: CreateOptions): Change[] {
    if (!idempotency) return [];
    const { clock, limitsOf } = this.context.deps;
    const expires_ms = clock.now() + limitsOf(caller).idempotency_hours * 3_600_000;
    return [this.#idempotency.put(caller, idempotency, run_id, expires_ms)];
  }

  async acquireChild(run: ActiveRun, session_id: string, parent_id: string): Promise<SavedSession> {
    const { caller } = run.options;
    const found = await this.context.sessions.record(caller, session_id);
    if (found.object.parent_id !== parent_id || found.spawned === undefined) {
      throw new PreampError(
        "not_found",
        `Cannot find session "${printableId(session_id)}" among this session's agents`,
      );
    }
    if (!await this.context.leases.acquire(session_id, run)) {
      throw busyError(session_id, busyElsewhere());
    }
    try {
      // another run may have changed it since it was read
      return await this.context.sessions.load(caller, session_id);
    } catch (error) {
      await this.context.leases.release(session_id);
      throw error;
    }
  }

  async releaseChild(session_id: string): Promise<void> {
    await this.context.leases.release(session_id);
  }

  /**
   * Ends a run whose process has died. Resolves to why it cannot be ended, or null.
   */
  async endOrphan({ id, session_id }: Run): Promise<string | null> {
    const { runs, leases, is_shared } = this.context;
    if (runs.get(id) !== undefined || !is_shared) return "it has not ended; cancel it first";
    const lease = leases.has(session_id) ? null : await leases.acquire(session_id, null);
    if (lease === null) return busyElsewhere(id);
    try {
      await this.recovery.endOrphan(id, lease);
    } finally {
      await leases.release(session_id);
    }
    return null;
  }

  ended(run: ActiveRun): void {
    this.context.runs.delete(run.id);
    this.#admission.release(run.options.slot);
  }

  get stopping(): AbortSignal {
    return this.context.stopping.signal;
  }

  settledElsewhere(run: ActiveRun, until: "end" | "attention"): Promise<Run> {
    return this.context.anywhere.settled(run.options.caller, run.current(), until);
  }

  /** Returns whether the release of a lease may let a waiting run of this process start. */
  isAwaited(lease: string): boolean {
    return this.#queue.awaits(lease);
  }

  /** Starts waiting runs whose session another process has released. */
  checkQueues(): void {
    void this.#queue.checkAll();
  }
}
