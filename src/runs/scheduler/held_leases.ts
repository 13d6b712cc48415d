/** Leases that this process has in the store. They are renewed until they are released. */
import type { JsonObject } from "../../sdk/types.ts";
import type { Awaitable, Fence, Store } from "../../store/store.ts";
import { ReleasingMap } from "./releasing_map.ts";

/** Milliseconds until a lease expires when it is not renewed. */
const LEASE_MS = 5_000;
const RENEW_MS = 1_500;

/** The leases of this process. */
export class HeldLeases {
  readonly #store: Store;
  readonly #owner: string;
  readonly #log: (level: "error", event: string, facts: JsonObject) => void;
  readonly #held = new ReleasingMap<Fence>();
  /** Ends at the first renewal without a lease: a timer for each run would cost more than its lease. */
  #renewing: ReturnType<typeof setInterval> | null = null;

  /** @param owner Name of this process among those that share the store. */
  constructor(store: Store, owner: string, log: (level: "error", event: string, facts: JsonObject) => void) {
    this.#store = store;
    this.#owner = owner;
    this.#log = log;
  }

  /** Returns the fence of a lease; undefined when this process does not have it. */
  fence(name: string): Fence | undefined {
    return this.#held.get(name);
  }

  /** Acquires a lease; returns false while another process has it. `wait`: see {@link Store.acquire}. */
  acquire(name: string, wait = true): Awaitable<boolean> {
    const token = this.#store.acquire(name, this.#owner, LEASE_MS, wait);
    return token instanceof Promise ? token.then((it) => this.#hold(name, it)) : this.#hold(name, token);
  }

  #hold(name: string, token: number | null): boolean {
    if (token === null) return false;
    this.#held.set(name, { lease: name, token });
    // without other processes, nothing takes an expired lease
    if (this.#store.changed) this.#renewing ??= setInterval(() => void this.#renewAll(), RENEW_MS);
    return true;
  }

  /** Releases a lease, even if the store fails: a lease that is not released expires. */
  release(name: string): Promise<void> | void {
    if (!this.#held.has(name)) return;
    this.#held.delete(name); // stops renewal, and a renewal in progress is not missed
    const fail = (error: unknown) =>
      this.#log("error", "lease_not_released", { lease: name, message: String(error) });
    try {
      return this.#store.release(name, this.#owner)?.catch(fail);
    } catch (error) {
      fail(error);
    }
  }

  /** Renews all leases at once: a store may answer them together. */
  async #renewAll(): Promise<void> {
    if (this.#held.size === 0) return this.close();
    await Promise.all(this.#held.items.map((fence) => this.#renew(fence)));
  }

  async #renew(fence: Fence): Promise<void> {
    const { lease } = fence;
    try {
      const renewed = await this.#store.renew(lease, this.#owner, LEASE_MS);
      if (!renewed && this.#held.get(lease) === fence) this.#log("error", "lease_lost", { lease });
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
