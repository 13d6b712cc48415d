/**
 * Runs that wait for their session. A waiting run is stored, with its place: the order holds for all servers
 * that share the store. The server that accepted the run has a lease of it and starts it; when that server
 * dies, another one acquires the lease and waits instead.
 */
import { cancelledOutcome } from "../../kernel/outcome.ts";
import { errorMessage } from "../../sdk/errors.ts";
import { allRecords, type ListedRecord } from "../../store/store.ts";
import type { Lease } from "../run/lease.ts";
import type { ActiveRun } from "../run/run.ts";
import type { Caller } from "../types.ts";
import { SESSION, sessionLease } from "./leases.ts";
import type { SchedulerContext } from "./scheduler_context.ts";

/** The open runs of a session, in all processes. */
export interface OpenRuns {
  /** The run that has the session. */
  readonly active: ListedRecord | undefined;
  /** Waiting runs, in the order in which they start. */
  readonly waiting: readonly ListedRecord[];
}

/** Milliseconds between two looks at the queues after changes of other processes. */
const LOOK_EVERY_MS = 100;
/** Milliseconds after which a run that still has the session is cancelled again: its server may have died. */
const INTERRUPT_EVERY_MS = 5_000;

export class SessionQueue {
  readonly #scheduler: SchedulerContext;
  readonly #start: (run: ActiveRun) => Promise<void>;
  /** Session id → run id → run. */
  readonly #sessions = new Map<string, Map<string, ActiveRun>>();
  /** Ids of the runs that wait, are being stored as waiting, or are claimed. */
  readonly #waiting = new Set<string>();
  /** Session id → number of the last place that this process gave. */
  readonly #last_place = new Map<string, number>();
  /** Session id → whether to check it again after the check in progress. */
  readonly #checking = new Map<string, boolean>();
  /** Ids of runs that were cancelled for a run that takes their session. */
  readonly #interrupted = new Set<string>();
  readonly #stopped = new AbortController();
  #looking = false;
  #look_again = false;

  /** @param start Begins a run whose session was acquired. Resolves when it began or ended; never rejects. */
  constructor(scheduler: SchedulerContext, start: (run: ActiveRun) => Promise<void>) {
    this.#scheduler = scheduler;
    this.#start = start;
  }

  /** Returns whether runs of this process wait for a session. */
  has(session_id: string): boolean {
    return this.#sessions.has(session_id);
  }

  /** Returns whether the release of a lease may let a run of this process start. */
  awaits(lease: string): boolean {
    if (lease.startsWith(WAITING)) return this.#sessions.size > 0; // of a run before it in its queue, maybe
    return lease.startsWith(SESSION) && this.#sessions.has(lease.slice(SESSION.length));
  }

  /** Reads the open runs of a session. */
  async openRuns({ session_id, caller }: { session_id: string; caller: Caller }): Promise<OpenRuns> {
    const options = { namespace: caller.namespace, where: { session_id, open: "true" } };
    const records = await Array.fromAsync(allRecords(this.#scheduler.deps.store, "run", options));
    const is_waiting = ({ index }: ListedRecord) => index?.status === "queued";
    return {
      active: records.findLast((record) => !is_waiting(record)),
      waiting: records.filter(is_waiting).sort(byPlace),
    };
  }

  /**
   * Stores a new run as waiting; it starts when its session is free. `ahead`: it starts before the runs that
   * wait already, and cancels the run that has the session.
   */
  async add(run: ActiveRun, ahead: boolean): Promise<void> {
    const { session_id } = run;
    this.#waiting.add(run.id);
    try {
      const lease = await this.#scheduler.held.acquire(waitingLease(run.id));
      if (lease) run.hold(lease);
      const { active, waiting } = await this.openRuns(run.options);
      const numbers = waiting.map(({ index }) => numberOf(index?.place));
      const number = Math.max(0, this.#last_place.get(session_id) ?? 0, ...numbers) + 1;
      this.#last_place.set(session_id, number);
      const replaces = ahead && active?.index?.caller === run.options.caller.name;
      await run.queue(placeOf(number, ahead), replaces);
    } catch (error) {
      await this.disclaim(run.id);
      throw error;
    }
    this.wait(run);
    if (this.#stopped.signal.aborted) await this.#leave(run); // stopped while the run was stored
  }

  /** Acquires a waiting run of a dead process; resolves to null for any other. */
  async claim(run_id: string): Promise<Lease | null> {
    if (this.#waiting.has(run_id)) return null; // its owner would acquire the lease again
    this.#waiting.add(run_id);
    let lease: Lease | null = null;
    try {
      return lease = await this.#scheduler.held.acquire(waitingLease(run_id));
    } finally {
      if (lease === null) this.#waiting.delete(run_id);
    }
  }

  /** Gives up a run that was claimed. */
  async disclaim(run_id: string): Promise<void> {
    this.#waiting.delete(run_id);
    await this.#scheduler.held.release(waitingLease(run_id));
  }

  /** Waits with a run that was stored, or claimed. */
  wait(run: ActiveRun): void {
    const { id, session_id } = run;
    let runs = this.#sessions.get(session_id);
    if (!runs) this.#sessions.set(session_id, runs = new Map());
    runs.set(id, run);
    run.closed.then(async () => { // never rejects
      this.#remove(run);
      await this.disclaim(id);
      this.check(session_id);
    });
    this.check(session_id);
  }

  #remove({ id, session_id }: ActiveRun): void {
    this.#waiting.delete(id);
    const runs = this.#sessions.get(session_id);
    if (!runs?.delete(id) || runs.size > 0) return;
    this.#sessions.delete(session_id);
    this.#last_place.delete(session_id);
  }

  /** Checks every session with waiting runs, soon: another process has changed the store. */
  async checkAll(): Promise<void> {
    this.#look_again = true;
    if (this.#looking) return;
    this.#looking = true;
    while (this.#look_again && this.#sessions.size > 0) {
      this.#look_again = false;
      for (const session_id of await this.#free()) this.check(session_id);
      await this.#pause(LOOK_EVERY_MS);
    }
    this.#looking = false;
  }

  /** Resolves to the sessions with waiting runs that no process has, with one question for all. */
  async #free(): Promise<string[]> {
    const { deps: { store, log }, leases } = this.#scheduler;
    const sessions = [...this.#sessions.keys()].filter((session_id) => !leases.has(session_id));
    try {
      const free = new Set(await store.free(sessions.map(sessionLease)));
      return sessions.filter((session_id) => free.has(sessionLease(session_id)));
    } catch (error) {
      log("error", "queue_not_read", { message: errorMessage(error) });
      return [];
    }
  }

  /** Starts the first run of a session's queue if it is one of this process and the session is free. */
  check(session_id: string): void {
    if (!this.#sessions.has(session_id) || this.#stopped.signal.aborted) return;
    if (this.#checking.has(session_id)) return void this.#checking.set(session_id, true);
    this.#checking.set(session_id, false);
    this.#check(session_id).catch((error) => {
      this.#scheduler.deps.log("error", "queue_not_read", { session_id, message: errorMessage(error) });
    }).finally(() => {
      const again = this.#checking.get(session_id);
      this.#checking.delete(session_id);
      if (again) this.check(session_id);
    });
  }

  async #check(session_id: string): Promise<void> {
    const { leases } = this.#scheduler;
    const runs = this.#sessions.get(session_id);
    const [any] = runs?.values() ?? [];
    if (!runs || !any) return;
    const { active, waiting } = await this.openRuns(any.options);
    const [first] = waiting;
    const run = first && runs.get(first.key);
    if (!run || run.ended) return; // the turn of another process
    if (active !== undefined || leases.has(session_id)) {
      const blocking = active?.key ?? leases.runIn(session_id)?.id;
      if (isAhead(first.index?.place) && blocking !== undefined) this.#interrupt(blocking, run);
      return;
    }
    if (this.#stopped.signal.aborted || !await leases.acquire(session_id, run)) return;
    this.#remove(run);
    await this.#start(run);
    await this.disclaim(run.id);
  }

  #interrupt(run_id: string, by: ActiveRun): void {
    if (this.#interrupted.has(run_id)) return;
    this.#interrupted.add(run_id);
    this.#scheduler.anywhere.cancel(run_id, `superseded by ${by.id}`).catch((error) => {
      this.#scheduler.deps.log("error", "run_not_cancelled", { run_id, message: errorMessage(error) });
    }).then(() => this.#pause(INTERRUPT_EVERY_MS)).then(() => {
      this.#interrupted.delete(run_id);
      this.check(by.session_id);
    });
  }

  /** Resolves after `ms` milliseconds, or when the queue is stopped. */
  #pause(ms: number): Promise<void> {
    return this.#scheduler.deps.clock.after(ms, this.#stopped.signal).catch(() => {}); // stopped
  }

  /**
   * Stops starting runs. Leaves the waiting ones to the processes that share the store, or to the next start
   * of this one; cancels them if the store ends with this process.
   */
  async stop(): Promise<void> {
    this.#stopped.abort();
    const runs = [...this.#sessions.values()].flatMap((waiting) => [...waiting.values()]);
    await Promise.all(runs.map((run) => this.#leave(run)));
  }

  async #leave(run: ActiveRun): Promise<void> {
    if (this.#scheduler.is_shared) run.handOver();
    else await run.finish(cancelledOutcome());
    await this.disclaim(run.id);
  }
}

/** Begin of the names of these leases. */
const WAITING = "waiting/";

/** Returns the name of the lease of a waiting run. */
export function waitingLease(run_id: string): string {
  return WAITING + run_id;
}

/** Returns a place whose texts sort in the order of the queue. */
function placeOf(number: number, ahead: boolean): string {
  return `${ahead ? "0" : "1"}-${String(number).padStart(12, "0")}`;
}

function isAhead(place: string | undefined): boolean {
  return place?.startsWith("0-") ?? false;
}

function numberOf(place: string | undefined): number {
  return Number(place?.slice(2) ?? 0);
}

/** Orders waiting runs; those that were stored at the same moment by their ids. */
function byPlace(a: ListedRecord, b: ListedRecord): number {
  const [first, second] = [`${a.index?.place ?? ""} ${a.key}`, `${b.index?.place ?? ""} ${b.key}`];
  return first < second ? -1 : first > second ? 1 : 0;
}
