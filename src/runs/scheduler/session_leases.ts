/**
 * Leases of sessions: at most one run per session, in this process by a map and among processes by a lease in
 * the store.
 */
import { PreampError } from "../../sdk/errors.ts";
import type { JsonObject } from "../../sdk/types.ts";
import type { Fence, Store } from "../../store/store.ts";
import { ReleasingMap } from "./releasing_map.ts";
import type { ActiveRun } from "../run/run.ts";

/** Milliseconds until a lease expires when it is not renewed. */
const LEASE_MS = 5_000;
const RENEW_MS = 1_500;

interface Lease {
  readonly run: ActiveRun;
  /** Created by the first waiter. */
  released: PromiseWithResolvers<void> | null;
  fence: Fence | undefined;
}

/** The leases of this process's runs. */
export class SessionLeases {
  readonly #store: Store;
  readonly #owner: string;
  readonly #log: (level: "error", event: string, facts: JsonObject) => void;
  readonly #leases = new ReleasingMap<Lease>();
  #renewing: ReturnType<typeof setInterval> | null = null;

  /** @param owner Name of this process among those that share the store. */
  constructor(store: Store, owner: string, log: (level: "error", event: string, facts: JsonObject) => void) {
    this.#store = store;
    this.#owner = owner;
    this.#log = log;
  }

  /** Returns the run that has a session's lease. */
  runIn(session_id: string): ActiveRun | undefined {
    return this.#leases.get(session_id)?.run;
  }

  /** The runs that have a lease. */
  get runs(): ActiveRun[] {
    return this.#leases.items.map((lease) => lease.run);
  }

  /** Returns the fence of a session's lease; undefined when this process does not have it. */
  fence(session_id: string): Fence | undefined {
    return this.#leases.get(session_id)?.fence;
  }

  /** Resolves once the current lease of a session is released. Another run may have acquired it since. */
  async whenReleased(session_id: string): Promise<void> {
    const lease = this.#leases.get(session_id);
    if (lease) await (lease.released ??= Promise.withResolvers()).promise;
  }

  /**
   * Acquires the lease of a session for a run. Within this process the first call wins, synchronously.
   * @throws {PreampError} `session_busy` while another run, in this process or another, has the lease.
   */
  async acquire(session_id: string, run: ActiveRun): Promise<void> {
    if (this.#leases.has(session_id)) throw busy(session_id, "another run has not ended");
    const lease: Lease = { run, released: null, fence: undefined };
    this.#leases.set(session_id, lease);
    const name = `session/${session_id}`;
    try {
      const token = await this.#store.acquire(name, this.#owner, LEASE_MS);
      if (token === null) throw busy(session_id, "another server has an active run");
      lease.fence = { lease: name, token };
      this.#renewing ??= setInterval(() => void this.#renewAll(), RENEW_MS);
    } catch (error) {
      this.#remove(session_id, lease);
      throw error;
    }
  }

  /** Releases a session's lease, even if the store fails: a lease that is not released expires. */
  async release(session_id: string): Promise<void> {
    const lease = this.#leases.get(session_id);
    if (!lease) return;
    const { fence } = lease;
    lease.fence = undefined; // stops renewal, and a renewal in progress is not missed
    try {
      if (fence) await this.#store.release(fence.lease, this.#owner);
    } catch (error) {
      this.#log("error", "lease_not_released", { lease: fence?.lease ?? null, message: String(error) });
    }
    this.#remove(session_id, lease);
  }

  #remove(session_id: string, lease: Lease): void {
    this.#leases.delete(session_id);
    lease.released?.resolve();
    if (this.#leases.size === 0) this.close();
  }

  /** Renews all leases at once: a store may answer them together. */
  async #renewAll(): Promise<void> {
    await Promise.all(this.#leases.items.map((lease) => this.#renew(lease)));
  }

  async #renew(held: Lease): Promise<void> {
    const { fence } = held;
    if (!fence) return;
    const { lease } = fence;
    try {
      const renewed = await this.#store.renew(lease, this.#owner, LEASE_MS);
      if (!renewed && held.fence === fence) this.#log("error", "lease_lost", { lease });
    } catch (error) {
      this.#log("error", "lease_not_renewed", { lease, message: String(error) });
    }
  }

  /** Stops renewing leases. */
  close(): void {
    if (this.#renewing !== null) clearInterval(this.#renewing);
    this.#renewing = null;
  }
}

function busy(session_id: string, fact: string): PreampError {
  return new PreampError("session_busy", `Cannot start a run in session "${session_id}": ${fact}`);
}
