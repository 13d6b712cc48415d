/**
 * Leases that this process has in the store; and those of sessions: at most one run per session, in this
 * process by a map and among processes by a lease.
 */
import { PreampError } from "../../sdk/errors.ts";
import type { RunsDeps } from "../ports.ts";
import { Lease, type LeaseOwner } from "../run/lease.ts";
import { repeat } from "../run/run_store.ts";
import type { ActiveRun } from "../run/run.ts";
import { ReleasingMap } from "./releasing_map.ts";

/** Milliseconds for which a heartbeat says that this process lives, and between two of them. */
const LIVES_MS = 5_000;
const BEAT_MS = 1_000;
/** Milliseconds after a heartbeat in which no other process can find this one dead, whatever happens. */
const CERTAIN_MS = 1_200;

/**
 * The leases of this process. They last as long as the process lives, which it says each second, however many
 * they are. When the others have found it dead, all are lost, and it has another name from then on.
 */
export class HeldLeases implements LeaseOwner {
  readonly #deps: Pick<RunsDeps, "store" | "clock" | "newId" | "log">;
  /** Name of this process among those that share the store. */
  #owner: string;
  readonly #held = new ReleasingMap<Lease>();
  /** When the last heartbeat was sent that the store has answered; null: none of this name. */
  #beat_at: Instant | null = null;
  #beating: Promise<void> | null = null;
  #timer: ReturnType<typeof setInterval> | null = null;
  /** Messages of the heartbeats that failed since the last report. */
  #failures: string[] = [];
  readonly #closed = new AbortController();
  /** Called after each heartbeat that found that others have died, or ended, in the last seconds. */
  onDeaths: () => void = () => {};

  constructor(deps: Pick<RunsDeps, "store" | "clock" | "newId" | "log">) {
    this.#deps = deps;
    this.#owner = deps.newId("proc");
  }

  /**
   * Acquires a lease; resolves to null while another process has it. `at_once`: see {@link Store.acquire}.
   */
  async acquire(name: string, at_once = true): Promise<Lease | null> {
    while (this.#beat_at === null) await this.beat();
    const owner = this.#owner;
    const { store } = this.#deps;
    const token = await store.acquire(name, owner, at_once);
    if (token === null) return null;
    if (owner !== this.#owner) return await this.acquire(name, at_once); // of a name that was found dead
    const lease = new Lease({ lease: name, token }, this);
    this.#held.set(name, lease);
    return lease;
  }

  /** Releases a lease, once the store does that: it lasts as long as this process. Never rejects. */
  async release(name: string): Promise<void> {
    if (!this.#held.has(name)) return;
    this.#held.delete(name);
    const { store, clock, log } = this.#deps;
    const owner = this.#owner;
    const release = () => store.release(name, owner);
    try {
      await release();
    } catch (error) {
      log("error", "lease_not_released", { lease: name, message: String(error) });
      const { signal } = this.#closed;
      await repeat(release, error, { clock, signal, again: () => true }).catch(() => {}); // this process ends
    }
  }

  released(lease: Lease): void {
    const { fence: { lease: name } } = lease;
    if (this.#held.get(name) === lease) this.#held.delete(name);
  }

  /** Says that this process lives, from now on each second. Concurrent calls share a heartbeat. */
  beat(): Promise<void> {
    if (this.#deps.store.changed && this.#timer === null && !this.#closed.signal.aborted) {
      this.#timer = setInterval(() => this.#beatInTime(), BEAT_MS);
      Deno.unrefTimer(this.#timer);
    }
    return this.#beating ??= this.#beat().finally(() => this.#beating = null);
  }

  async #beat(): Promise<void> {
    const owner = this.#owner;
    const { clock, store } = this.#deps;
    const at = { monotonic_ms: clock.monotonic(), day_ms: clock.now() };
    const { lives, deaths } = await store.heartbeat(owner, LIVES_MS);
    if (lives) this.#beat_at = at;
    else this.#lose();
    if (deaths) this.onDeaths();
  }

  /** Leaves all that this process has to those that have found it dead. */
  #lose(): void {
    const lost = this.#held.items;
    this.#deps.log("error", "leases_lost", { leases: lost.length });
    this.#owner = this.#deps.newId("proc");
    this.#beat_at = null;
    for (const lease of lost) {
      this.#held.delete(lease.fence.lease);
      lease.lose();
    }
  }

  /** Sends a heartbeat, unless one is not answered yet. */
  #beatInTime(): void {
    const message = this.#failures[0];
    if (message !== undefined) this.#deps.log("error", "heartbeat_failed", { message });
    this.#failures = [];
    if (!this.#beating) this.beat().catch((error) => this.#failures.push(String(error)));
  }

  get is_certain(): boolean {
    if (!this.#deps.store.changed) return true; // no other process
    return this.#beat_at !== null && this.#since(this.#beat_at) < CERTAIN_MS;
  }

  /** Returns the milliseconds since a time, by the clock that says more. */
  #since({ monotonic_ms, day_ms }: Instant): number {
    const { clock } = this.#deps;
    return Math.max(clock.monotonic() - monotonic_ms, Math.abs(clock.now() - day_ms));
  }

  /** Stops the heartbeats. */
  close(): void {
    this.#closed.abort();
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }
}

/**
 * A time by the monotonic clock, which stands still while the machine sleeps, and by the clock of the day.
 */
interface Instant {
  readonly monotonic_ms: number;
  readonly day_ms: number;
}

/** Returns the error of a run whose session is in use. `fact`: by what. */
export function busyError(session_id: string, fact: string): PreampError {
  return new PreampError("session_busy", `Cannot start a run in session "${session_id}": ${fact}`);
}

/** Seconds after which the lease of a process on another machine that has died is free at the latest. */
const FREE_AFTER_S = 10;

/** Returns why a session of another process is in use. `run_id`: the run that has it, if it is known. */
export function busyElsewhere(run_id?: string): string {
  const run = run_id === undefined ? "a run" : `run "${run_id}"`;
  return `another process executes ${run}; wait for its end, or cancel it. If that process has died on ` +
    `another machine, the session is free within ${FREE_AFTER_S} s`;
}

/** Begin of the names of these leases. */
export const SESSION = "session/";

/** Returns the name of a session's lease. */
export function sessionLease(session_id: string): string {
  return SESSION + session_id;
}

interface SessionLease {
  /** Null until the run of a crashed process is restored. */
  run: ActiveRun | null;
  /** Created by the first waiter. */
  released: PromiseWithResolvers<void> | null;
}

/** The sessions of this process's runs. */
export class SessionLeases {
  readonly #held: HeldLeases;
  readonly #onReleased: (session_id: string) => void;
  readonly #leases = new ReleasingMap<SessionLease>();

  /** @param onReleased Called when a session is free in this process. */
  constructor(held: HeldLeases, onReleased: (session_id: string) => void) {
    this.#held = held;
    this.#onReleased = onReleased;
  }

  /** Returns the run that has a session's lease. */
  runIn(session_id: string): ActiveRun | undefined {
    return this.#leases.get(session_id)?.run ?? undefined;
  }

  /** Returns whether this process has a session's lease, or is acquiring it. */
  has(session_id: string): boolean {
    return this.#leases.has(session_id);
  }

  /** The runs that have a lease. */
  get runs(): ActiveRun[] {
    return this.#leases.items.flatMap(({ run }) => run ?? []);
  }

  /** Resolves once the current lease of a session is released. Another run may have acquired it since. */
  async whenReleased(session_id: string): Promise<void> {
    const lease = this.#leases.get(session_id);
    if (lease) await (lease.released ??= Promise.withResolvers()).promise;
  }

  /**
   * Acquires the lease of a session for a run; resolves to null while another process has it. Within this
   * process the first call wins, synchronously. `run`: null for recovery, which does not yet know whether
   * there is a run to restore; others wait meanwhile.
   * @throws {PreampError} `session_busy` while another run of this process has the lease.
   */
  async acquire(session_id: string, run: ActiveRun | null): Promise<Lease | null> {
    for (let held = this.#leases.get(session_id); held; held = this.#leases.get(session_id)) {
      if (held.run !== null) throw busyError(session_id, "another run has not ended");
      await this.whenReleased(session_id);
    }
    const entry: SessionLease = { run, released: null };
    this.#leases.set(session_id, entry);
    let lease: Lease | null = null;
    try {
      lease = await this.#held.acquire(sessionLease(session_id));
    } finally {
      if (lease === null) this.#remove(session_id, entry);
    }
    if (lease && run?.session_id === session_id) run.hold(lease); // else a sub-agent's: the run has its own
    return lease;
  }

  /** Gives the lease of a session, which was acquired without a run, to its run. */
  assign(session_id: string, run: ActiveRun): void {
    const lease = this.#leases.get(session_id);
    if (lease) lease.run = run;
  }

  async release(session_id: string): Promise<void> {
    const lease = this.#leases.get(session_id);
    if (!lease) return;
    await this.#held.release(sessionLease(session_id));
    this.#remove(session_id, lease);
  }

  #remove(session_id: string, lease: SessionLease): void {
    if (this.#leases.get(session_id) !== lease) return; // released meanwhile, and maybe acquired again
    this.#leases.delete(session_id);
    lease.released?.resolve();
    this.#onReleased(session_id);
  }
}
