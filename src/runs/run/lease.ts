/** A lease of this process in the store: of a session, of a waiting run, or of a slot of a caller. */
import type { Fence } from "../../store/store.ts";

export class Lease {
  /** Proves the lease: with it a commit is refused once another process has taken the lease. */
  readonly fence: Fence;
  /** Created by the first reader: most leases are neither lost nor observed. */
  #lost: AbortController | null = null;

  constructor(fence: Fence) {
    this.fence = fence;
  }

  /** Aborted when another process has taken the lease, because this one stood still. */
  get lost(): AbortSignal {
    return (this.#lost ??= new AbortController()).signal;
  }

  /** Aborts {@link lost}. */
  lose(): void {
    (this.#lost ??= new AbortController()).abort();
  }
}
