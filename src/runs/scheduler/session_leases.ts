/**
 * Leases of sessions: at most one run per session, in this process by a map and among processes by a lease in
 * the store.
 */
import { PreampError } from "../../sdk/errors.ts";
import type { Fence } from "../../store/store.ts";
import type { HeldLeases } from "./held_leases.ts";
import { ReleasingMap } from "./releasing_map.ts";
import type { ActiveRun } from "../run/run.ts";

interface Lease {
  /** Its name in the store. */
  readonly name: string;
  /** Null until the run of a crashed process is restored. */
  run: ActiveRun | null;
  /** Created by the first waiter. */
  released: PromiseWithResolvers<void> | null;
}

/** The sessions of this process's runs. */
export class SessionLeases {
  readonly #held: HeldLeases;
  readonly #onReleased: (session_id: string) => void;
  readonly #leases = new ReleasingMap<Lease>();

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

  /** Returns the fence of a session's lease; undefined when this process does not have it. */
  fence(session_id: string): Fence | undefined {
    const lease = this.#leases.get(session_id);
    return lease && this.#held.fence(lease.name);
  }

  /** Resolves once the current lease of a session is released. Another run may have acquired it since. */
  async whenReleased(session_id: string): Promise<void> {
    const lease = this.#leases.get(session_id);
    if (lease) await (lease.released ??= Promise.withResolvers()).promise;
  }

  /**
   * Acquires the lease of a session for a run; resolves to false while another process has it. Within this process the
   * first call wins, synchronously. `run`: null for recovery, which does not yet know whether there is a run to restore;
   * others wait meanwhile.
   * @throws {PreampError} `session_busy` while another run of this process has the lease.
   */
  async acquire(session_id: string, run: ActiveRun | null): Promise<boolean> {
    for (let held = this.#leases.get(session_id); held; held = this.#leases.get(session_id)) {
      if (held.run !== null) throw busyError(session_id, "another run has not ended");
      await this.whenReleased(session_id);
    }
    const lease: Lease = { name: `session/${session_id}`, run, released: null };
    this.#leases.set(session_id, lease);
    let acquired = false;
    try {
      const acquiring = this.#held.acquire(lease.name);
      acquired = acquiring instanceof Promise ? await acquiring : acquiring;
    } finally {
      if (!acquired) this.#remove(session_id, lease);
    }
    return acquired;
  }

  /** Gives the lease of a session, which was acquired without a run, to its run. */
  assign(session_id: string, run: ActiveRun): void {
    const lease = this.#leases.get(session_id);
    if (lease) lease.run = run;
  }

  /** Releases a session's lease. */
  release(session_id: string): Promise<void> | void {
    const lease = this.#leases.get(session_id);
    if (!lease) return;
    const releasing = this.#held.release(lease.name);
    if (releasing) return releasing.then(() => this.#remove(session_id, lease));
    this.#remove(session_id, lease);
  }

  #remove(session_id: string, lease: Lease): void {
    this.#leases.delete(session_id);
    lease.released?.resolve();
    this.#onReleased(session_id);
  }
}

/** Returns the error of a run whose session is in use. `fact`: by what. */
export function busyError(session_id: string, fact: string): PreampError {
  return new PreampError("session_busy", `Cannot start a run in session "${session_id}": ${fact}`);
}
