/** A lease of this process in the store: of a session, or of a waiting run. */
import { type Fence, leaseLost } from "../../store/store.ts";

/** The process that has leases. */
export interface LeaseOwner {
  /** Whether no other process can have found this one dead until now. */
  readonly is_certain: boolean;
  /** Says that this process lives. If others have found it dead, its leases are lost when this resolves. */
  beat(): Promise<unknown>;
  /** Called when a commit has released a lease. */
  released(lease: Lease): void;
}

export class Lease {
  /** Proves the lease: with it a commit is refused once another process has taken the lease. */
  readonly fence: Fence;
  readonly #owner: LeaseOwner;
  /** Created by the first reader: most leases are neither lost nor observed. */
  #lost: AbortController | null = null;

  constructor(fence: Fence, owner: LeaseOwner) {
    this.fence = fence;
    this.#owner = owner;
  }

  /** Aborted when other processes have found this one dead, because it stood still. */
  get lost(): AbortSignal {
    return (this.#lost ??= new AbortController()).signal;
  }

  /** Forgets the lease, which a commit has released. */
  released(): void {
    this.#owner.released(this);
  }

  /** Aborts {@link lost}. */
  lose(): void {
    (this.#lost ??= new AbortController()).abort();
  }

  /**
   * Makes sure that no other process can have taken the lease until now. Returns a promise when this process
   * may have stood still.
   * @throws {ConflictError} when the lease is lost.
   */
  confirm(): Promise<void> | void {
    this.#require();
    if (this.#owner.is_certain) return;
    return this.#owner.beat().then(() => this.#require());
  }

  #require(): void {
    if (this.#lost?.signal.aborted) throw leaseLost(this.fence);
  }
}
