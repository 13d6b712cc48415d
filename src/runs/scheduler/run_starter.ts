/**
 * Begins runs in their sessions: supersedes or cancels the run that has the session, lets the new one wait, or refuses it.
 */
import { cancelledOutcome, failedOutcome } from "../../kernel/session/outcome.ts";
import type { JsonObject } from "../../sdk/types.ts";
import type { ActiveRun } from "../run/run.ts";
import type { SessionStore } from "../storage/session_store.ts";
import { busyError, type SessionLeases } from "./session_leases.ts";
import type { SessionQueue } from "./session_queue.ts";

/** The runs of other processes that share the store. */
export interface RunsElsewhere {
  /** Resolves to whether a stored run, which has not ended, waits for an approval. */
  awaitsApproval(stored: JsonObject): Promise<boolean>;
  /** Cancels a run in any process. Resolves when the cancellation was requested, or the run has ended. */
  cancel(run_id: string, reason: string): Promise<void>;
}

/** Collaborators of {@link RunStarter}. */
export interface RunStarterDeps {
  readonly sessions: SessionStore;
  readonly leases: SessionLeases;
  readonly queue: SessionQueue;
  readonly elsewhere: RunsElsewhere;
  /** Whether other processes may share the store. */
  readonly is_shared: boolean;
  /** Whether a run of this process has ended, although its end may not be stored. */
  hasEnded(run_id: string): boolean;
  /** Whether no run may start any more. */
  isDraining(): boolean;
  /** Executes a run that has begun, in the background, and releases its session; one that has ended is only released. */
  execute(run: ActiveRun): void;
  /** Resolves after `ms` milliseconds. */
  pause(ms: number): Promise<void>;
  /** Keeps a run that waits for its session. */
  wait(run: ActiveRun): void;
}

/** Attempts to acquire a session that another server has without a run that has not ended. */
const TRIES = 20;
const TRY_EVERY_MS = 50;

/** Starts runs of this process. */
export class RunStarter {
  readonly #deps: RunStarterDeps;

  constructor(deps: RunStarterDeps) {
    this.#deps = deps;
  }

  /**
   * Begins a run, or lets it wait for a session that is busy.
   * @throws {PreampError} `session_busy`.
   */
  async start(run: ActiveRun): Promise<void> {
    const { session_id, options: { request: { if_busy }, saved } } = run;
    if (if_busy === "queue" && await this.#mustQueue(run)) return await this.#wait(run, false);
    if (await this.#beginInSession(run)) return;
    let { active } = await this.#deps.queue.openRuns(run.options);
    const is_agent = active === undefined && saved?.spawned !== undefined; // an agent of another server's run
    const is_decided = if_busy === "queue" || if_busy === "cancel" || is_agent;
    for (let tries = 1; active === undefined && !is_decided && tries < TRIES; tries++) {
      await this.#deps.pause(TRY_EVERY_MS); // the run of another server has ended, and releases the session now
      if (await this.#beginInSession(run)) return;
      ({ active } = await this.#deps.queue.openRuns(run.options));
    }
    // such a run is superseded, whatever `if_busy` says
    const supersedes = active !== undefined && await this.#deps.elsewhere.awaitsApproval(active.value);
    const cancels = supersedes || if_busy === "cancel" && !is_agent;
    if (!cancels && if_busy !== "queue") throw busyError(session_id, "another server has an active run");
    await this.#wait(run, cancels);
  }

  async #mustQueue(run: ActiveRun): Promise<boolean> {
    const { session_id, options: { saved } } = run;
    const active = this.#deps.leases.runIn(session_id);
    // such a run is superseded, whatever `if_busy` says
    if (active) return active.current().status !== "awaiting_approval";
    if (this.#deps.queue.has(session_id)) return true;
    if (!this.#deps.is_shared || saved === null) return false;
    return (await this.#deps.queue.openRuns(run.options)).waiting.length > 0;
  }

  /** Resolves when the session may be free. Supersedes a run that awaits approval; cancels or rejects for any other. */
  async #whenFree({ id, session_id, options: { request } }: ActiveRun): Promise<void> {
    const active = this.#deps.leases.runIn(session_id);
    if (active && active.session_id !== session_id) {
      throw busyError(session_id, `run "${active.id}" uses it as a sub-agent`);
    }
    if (active && !active.ended) {
      const awaits_approval = active.current().status === "awaiting_approval";
      if (!awaits_approval && request.if_busy !== "cancel") {
        throw busyError(session_id, `run "${active.id}" has not ended`);
      }
      await active.cancel("graceful", awaits_approval ? `superseded by ${id}` : "cancelled");
    }
    await this.#deps.leases.whenReleased(session_id);
  }

  /**
   * Acquires the session and begins the run; resolves to false while a run of another process has the session. `is_new`:
   * the session is created with the run and need not be reloaded.
   */
  async #beginInSession(run: ActiveRun, is_new = false): Promise<boolean> {
    const { leases } = this.#deps;
    const { session_id, options: { caller, request, saved } } = run;
    while (leases.has(session_id)) await this.#whenFree(run);
    // no await since the check: other waiting runs will find this one
    if (!await leases.acquire(session_id, run)) return false;
    try {
      if (saved !== null && !is_new) {
        if (await this.#hasOrphan(run)) {
          await leases.release(session_id);
          return false;
        }
        const now = await this.#deps.sessions.reload(caller, request, saved);
        if (now !== saved) run.continueFrom(now);
      }
      await run.begin();
    } catch (error) {
      if (!run.is_accepted) {
        await leases.release(session_id);
        throw error;
      }
      await run.finish(failedOutcome(error));
    }
    this.#deps.execute(run);
    return true;
  }

  /** Resolves to whether a crashed process has left a run in the session, which is to be recovered first. */
  async #hasOrphan(run: ActiveRun): Promise<boolean> {
    if (!this.#deps.is_shared) return false;
    const { active } = await this.#deps.queue.openRuns(run.options);
    return active !== undefined && !this.#deps.hasEnded(active.key);
  }

  /** Begins a run in a new session. `run.options.saved` is its first state. */
  async startNew(run: ActiveRun): Promise<void> {
    if (!await this.#beginInSession(run, true)) throw busyError(run.session_id, "it is not new");
  }

  async #wait(run: ActiveRun, ahead: boolean): Promise<void> {
    await this.#deps.queue.add(run, ahead);
    this.#deps.wait(run);
  }

  /** Begins a run that has waited; its session was acquired. */
  async startWaiting(run: ActiveRun): Promise<void> {
    const { session_id } = run;
    if (this.#deps.isDraining()) {
      if (this.#deps.is_shared) run.handOver();
      else await run.finish(cancelledOutcome());
      return await this.#deps.leases.release(session_id);
    }
    try {
      run.continueFrom(await this.#deps.sessions.load(run.options.caller, session_id));
      if (!run.ended) await run.begin();
    } catch (error) {
      await run.finish(failedOutcome(error));
    }
    this.#deps.execute(run);
  }
}
