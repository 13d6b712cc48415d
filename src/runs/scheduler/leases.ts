/**
 * Leases that this process has in the store, renewed until they are released; and those of sessions: at most
 * one run per session, in this process by a map and among processes by a lease.
 */
import { PreampError } from "../../sdk/errors.ts";
import type { JsonObject } from "../../sdk/types.ts";
import type { Store } from "../../store/store.ts";
import { Lease } from "../run/lease.ts";
import type { ActiveRun } from "../run/run.ts";
import { ReleasingMap } from "./releasing_map.ts";

/** Milliseconds until a lease expires when it is not renewed. */
const LEASE_MS = 5_000;
const RENEW_MS = 1_500;

/** A lease with its renewal. */
class HeldLease extends Lease {
  /** Whether the store has not answered the last renewal yet, or another process has the lease. */
  is_renewing = false;
}

/** The leases of this process. */
export class HeldLeases {
  readonly #store: Store;
  readonly #owner: string;
  readonly #log: (level: "error", event: string, facts: JsonObject) => void;
  readonly #held = new ReleasingMap<HeldLease>();
  /** Ends at the first renewal without a lease: a timer for each run would cost more than its lease. */
  #renewing: ReturnType<typeof setInterval> | null = null;
  /** Messages of the renewals that failed since the last report. */
  #failures: string[] = [];

  /** @param owner Name of this process among those that share the store. */
  constructor(store: Store, owner: string, log: (level: "error", event: string, facts: JsonObject) => void) {
    this.#store = store;
    this.#owner = owner;
    this.#log = log;
  }

  /** Acquires a lease; resolves to null while another process has it. `wait`: see {@link Store.acquire}. */
  async acquire(name: string, wait = true): Promise<Lease | null> {
    const token = await this.#store.acquire(name, this.#owner, LEASE_MS, wait);
    if (token === null) return null;
    const lease = new HeldLease({ lease: name, token });
    this.#held.set(name, lease);
    // without other processes, nothing takes an expired lease
    if (this.#store.changed) this.#renewing ??= setInterval(() => this.#renewAll(), RENEW_MS);
    return lease;
  }

  /** Releases a lease, even if the store fails: a lease that is not released expires. */
  async release(name: string): Promise<void> {
    if (!this.#held.has(name)) return;
    this.#held.delete(name); // stops renewal, and a renewal in progress is not missed
    try {
      await this.#store.release(name, this.#owner);
    } catch (error) {
      this.#log("error", "lease_not_released", { lease: name, message: String(error) });
    }
  }

  /**
   * Renews all leases at once: a store may answer them together. Leaves out those whose renewal before is not
   * answered yet, as more of them would only make a slow store slower; the others do not wait for those.
   */
  #renewAll(): void {
    this.#reportFailures();
    if (this.#held.size === 0) return this.close();
    for (const held of this.#held.items) if (!held.is_renewing) void this.#renew(held);
  }

  /** Logs one line for all failures: a server has thousands of leases while its database is away. */
  #reportFailures(): void {
    const [message] = this.#failures;
    if (message === undefined) return;
    this.#log("error", "lease_not_renewed", { leases: this.#failures.length, message });
    this.#failures = [];
  }

  /** Renews a lease; never rejects. */
  async #renew(held: HeldLease): Promise<void> {
    const { lease } = held.fence;
    held.is_renewing = true;
    try {
      const renewed = await this.#store.renew(lease, this.#owner, LEASE_MS);
      if (!renewed) { // its fence stays, with which every commit is refused
        if (this.#held.get(lease) !== held) return;
        this.#log("error", "lease_lost", { lease });
        return held.lose();
      }
    } catch (error) {
      this.#failures.push(String(error));
    }
    held.is_renewing = false;
  }

  /** Stops renewing leases. */
  close(): void {
    this.#reportFailures();
    if (this.#renewing !== null) clearInterval(this.#renewing);
    this.#renewing = null;
  }
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

/** Returns the name of a session's lease. */
export function sessionLease(session_id: string): string {
  return `session/${session_id}`;
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
