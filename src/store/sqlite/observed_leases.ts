/**
 * Leases in a SQLite file, which has no clock of its own. The clocks of two servers may differ by minutes and
 * may jump, so the expiry that one server wrote proves nothing to another. A lease counts as expired when it
 * has not been renewed for its duration, measured by the monotonic clock of the server that wants it; or at
 * once when its owner is known to have died.
 */

/** A stored lease, as far as it decides who has it. */
export interface StoredLease {
  readonly owner: string;
  /** Expiry by the clock of its owner, in milliseconds since the epoch; changes with each renewal. */
  readonly until_ms: number;
}

/** Result of an attempt to acquire a lease. */
export type LeaseAttempt =
  | { readonly acquired: StoredLease; readonly token: number }
  /** Another owner has it. `late`: its expiry is past by the clock of this server, which proves nothing. */
  | { readonly held: StoredLease; readonly late: boolean };

/** Attempts during the duration of a lease that may have expired. */
const ATTEMPTS = 20;
/** Maximum observed leases; beyond it observation begins again, which only delays an acquisition. */
const MAX_OBSERVED = 100_000;

/** What one process has seen of the leases in a store. */
export class ObservedLeases {
  readonly #monotonic: () => number;
  readonly #isGone: (owner: string) => Promise<boolean>;
  readonly #seen = new Map<string, { readonly lease: StoredLease; readonly since_ms: number }>();

  /**
   * @param monotonic Returns milliseconds that never go backwards.
   * @param isGone Resolves to whether the process of an owner is known to have ended.
   */
  constructor(monotonic: () => number, isGone: (owner: string) => Promise<boolean>) {
    this.#monotonic = monotonic;
    this.#isGone = isGone;
  }

  /** Records the current state of a lease; a state that was seen before keeps its age. */
  see(name: string, lease: StoredLease): void {
    if (isSame(this.#seen.get(name)?.lease, lease)) return;
    if (this.#seen.size >= MAX_OBSERVED) this.#seen.clear();
    this.#seen.set(name, { lease, since_ms: this.#monotonic() });
  }

  /** Forgets a lease that was released. */
  forget(name: string): void {
    this.#seen.delete(name);
  }

  /** Returns the state of a lease that was not renewed for `ttl_ms` since it was first seen, or null. */
  expired(name: string, ttl_ms: number): StoredLease | null {
    const seen = this.#seen.get(name);
    return seen && this.#monotonic() - seen.since_ms >= ttl_ms ? seen.lease : null;
  }

  /**
   * Acquires a lease for `ttl_ms`. With `wait` it takes the lease of an owner that has died, and waits up to
   * that long when the lease of another owner looks expired: it may be one of a crashed process, or of a
   * living one with another clock.
   *
   * @param attempt Acquires the lease if it is free, own, or in the state `expired`.
   * @returns The fencing token, or null while another owner has the lease.
   */
  async acquire(
    name: string,
    { ttl_ms, wait = true }: { ttl_ms: number; wait?: boolean | undefined },
    attempt: (expired: StoredLease | null) => Promise<LeaseAttempt>,
  ): Promise<number | null> {
    let before: StoredLease | undefined;
    let orphaned: StoredLease | null = null;
    for (let count = 0;; count++) {
      const found: LeaseAttempt = await attempt(orphaned ?? this.expired(name, ttl_ms));
      this.see(name, "held" in found ? found.held : found.acquired);
      if (!("held" in found)) return found.token;
      const is_orphaned = wait && count < ATTEMPTS && await this.#isGone(found.held.owner);
      orphaned = is_orphaned ? found.held : null;
      if (orphaned !== null) continue;
      const renewed = before !== undefined && !isSame(before, found.held);
      if (!wait || !found.late || renewed || count > ATTEMPTS) return null;
      before = found.held;
      await new Promise((resolve) => setTimeout(resolve, ttl_ms / ATTEMPTS));
    }
  }
}

/** Returns whether a lease is in the same state as before. */
export function isSame(before: StoredLease | null | undefined, now: StoredLease): boolean {
  return before?.owner === now.owner && before.until_ms === now.until_ms;
}
