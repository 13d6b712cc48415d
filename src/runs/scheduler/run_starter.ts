/** Begins runs: supersedes or cancels the run that has the session, lets the new one wait, or refuses it. */
import { AWAITING, type RunStatus } from "../types.ts";
import { cancelledOutcome, failedOutcome } from "../../kernel/outcome.ts";
import type { Lease } from "../run/lease.ts";
import type { ActiveRun } from "../run/run.ts";
import type { RunRequest } from "../types.ts";
import { busyElsewhere, busyError } from "./leases.ts";
import type { SchedulerContext } from "./scheduler_context.ts";
import type { SessionQueue } from "./session_queue.ts";

/**
 * Attempts to acquire a session that another server has without an open run: it is about to begin one, or
 * looks whether a dead server has left one.
 */
const TRIES = 20;
const TRY_EVERY_MS = 50;

/**
 * Returns whether a new run cancels the run that has its session. Otherwise it waits with `if_busy: queue`,
 * and is refused with `reject`. A run that waits for a person is always cancelled.
 */
function cancelsActive(if_busy: RunRequest["if_busy"], awaits_person: boolean): boolean {
  return awaits_person || if_busy === "cancel";
}

export class RunStarter {
  readonly #scheduler: SchedulerContext;
  readonly #queue: SessionQueue;
  readonly #endOrphan: (run_id: string, lease: Lease) => Promise<void>;

  /** @param endOrphan Ends the run of a crashed process in the session of a lease, which it keeps. */
  constructor(
    scheduler: SchedulerContext,
    queue: SessionQueue,
    endOrphan: (run_id: string, lease: Lease) => Promise<void>,
  ) {
    this.#scheduler = scheduler;
    this.#queue = queue;
    this.#endOrphan = endOrphan;
  }

  /**
   * Begins a run, or lets it wait for a session that is busy.
   * @throws {PreampError} `session_busy`.
   */
  async start(run: ActiveRun): Promise<void> {
    const { session_id, options: { request: { if_busy }, saved } } = run;
    if (await this.#mustQueue(run)) return await this.#wait(run, false);
    if (await this.#beginInSession(run)) return;
    let { active } = await this.#queue.openRuns(run.options);
    const is_agent = active === undefined && saved?.spawned !== undefined; // an agent of another server's run
    const is_decided = if_busy === "queue" || if_busy === "cancel" || is_agent;
    for (let tries = 1; active === undefined && !is_decided && tries < TRIES; tries++) {
      await this.#scheduler.deps.clock.after(TRY_EVERY_MS);
      if (await this.#beginInSession(run)) return;
      ({ active } = await this.#queue.openRuns(run.options));
    }
    const awaits_person = AWAITING.has(active?.index?.status as RunStatus);
    const cancels = !is_agent && cancelsActive(if_busy, awaits_person);
    if (!cancels && if_busy !== "queue") throw busyError(session_id, busyElsewhere(active?.key));
    await this.#wait(run, cancels);
  }

  /** Resolves to whether a run waits behind another one of its session, as it asks for. */
  async #mustQueue(run: ActiveRun): Promise<boolean> {
    const { session_id, options: { request, saved } } = run;
    if (request.if_busy !== "queue") return false;
    const active = this.#scheduler.leases.runIn(session_id);
    if (active) return !cancelsActive("queue", AWAITING.has(active.current().status));
    if (this.#queue.has(session_id)) return true;
    if (!this.#scheduler.is_shared || saved === null) return false;
    return (await this.#queue.openRuns(run.options)).waiting.length > 0;
  }

  /** Resolves when the session may be free. Cancels the run that has it, or fails. */
  async #whenFree({ id, session_id, options: { request } }: ActiveRun): Promise<void> {
    const active = this.#scheduler.leases.runIn(session_id);
    if (active && active.session_id !== session_id) {
      throw busyError(session_id, `run "${active.id}" uses it as a sub-agent`);
    }
    if (active?.late_commit) throw busyError(session_id, `the end of run "${active.id}" is not stored yet`);
    if (active && !active.ended) {
      const awaits_person = AWAITING.has(active.current().status);
      if (!cancelsActive(request.if_busy, awaits_person)) {
        throw busyError(session_id, `run "${active.id}" has not ended; if_busy can be queue or cancel`);
      }
      await active.cancel("graceful", awaits_person ? `superseded by ${id}` : "cancelled");
    }
    await this.#scheduler.leases.whenReleased(session_id);
  }

  /**
   * Acquires the session and begins the run; resolves to false while a run has the session that is one of
   * another process, or one that this run waits for. `is_new`: the session is created with the run and need
   * not be reloaded.
   */
  async #beginInSession(run: ActiveRun, is_new = false): Promise<boolean> {
    const { leases } = this.#scheduler;
    const { session_id, options: { caller, request, saved } } = run;
    while (leases.has(session_id)) {
      if (await this.#mustQueue(run)) return false; // another request was faster
      await this.#whenFree(run);
    }
    // no await since the check: other waiting runs will find this one
    const lease = await leases.acquire(session_id, run);
    if (lease === null) return false;
    try {
      if (saved !== null && !is_new) {
        const orphan = await this.#orphanIn(run);
        if (orphan !== undefined) {
          if (this.#scheduler.deps.recovers !== false) {
            await leases.release(session_id);
            return false;
          }
          await this.#endOrphan(orphan, lease);
        }
        const now = await this.#scheduler.sessions.reload(caller, request, saved);
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
    this.#scheduler.execute(run);
    return true;
  }

  /** Resolves to the id of the run that a crashed process has left in the session, if any. */
  async #orphanIn(run: ActiveRun): Promise<string | undefined> {
    if (!this.#scheduler.is_shared) return undefined;
    return (await this.#queue.openRuns(run.options)).active?.key;
  }

  /** Begins a run in a new session. `run.options.saved` is its first state. */
  async startNew(run: ActiveRun): Promise<void> {
    if (!await this.#beginInSession(run, true)) throw busyError(run.session_id, "it is not new");
  }

  async #wait(run: ActiveRun, ahead: boolean): Promise<void> {
    await this.#queue.add(run, ahead);
    this.#scheduler.register(run);
  }

  /** Begins a run that has waited; its session was acquired. */
  async startWaiting(run: ActiveRun): Promise<void> {
    const { session_id } = run;
    if (this.#scheduler.is_draining) {
      if (this.#scheduler.is_shared) run.handOver();
      else await run.finish(cancelledOutcome());
      return await this.#scheduler.leases.release(session_id);
    }
    try {
      const load = () => this.#scheduler.sessions.load(run.options.caller, session_id);
      run.continueFrom(await run.store.wait(load));
      if (!run.ended) await run.begin();
    } catch (error) {
      await run.finish(failedOutcome(error));
    }
    this.#scheduler.execute(run);
  }
}
