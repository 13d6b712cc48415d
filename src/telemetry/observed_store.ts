/** A store that measures its commits. */
import { type Awaitable, type Change, ConflictError, type Fence, type Store } from "../store/store.ts";
import type { Metrics } from "./metrics.ts";

/** Returns a store that behaves like `store` and records each commit's duration and outcome. */
export function observedStore(store: Store, metrics: Metrics): Store {
  const { kind } = store;

  function record(started: number, outcome: "ok" | "conflict" | "error"): void {
    const seconds = (performance.now() - started) / 1000;
    metrics.record("preamp_store_commit_duration_seconds", { store: kind, outcome }, seconds);
  }
  const outcomeOf = (error: unknown) => error instanceof ConflictError ? "conflict" : "error";

  return {
    kind,
    commit(changes: readonly Change[], fence?: Fence): Awaitable<void> {
      const started = performance.now();
      let done: Awaitable<void>;
      try {
        done = store.commit(changes, fence);
      } catch (error) {
        record(started, outcomeOf(error));
        throw error;
      }
      if (!done) return record(started, "ok");
      return done.then(() => record(started, "ok"), (error) => {
        record(started, outcomeOf(error));
        throw error;
      });
    },
    entries: (log, after, limit) => store.entries(log, after, limit),
    get: (kind, key) => store.get(kind, key),
    list: (kind, options) => store.list(kind, options),
    acquire: (lease, owner, ttl_ms) => store.acquire(lease, owner, ttl_ms),
    renew: (lease, owner, ttl_ms) => store.renew(lease, owner, ttl_ms),
    release: (lease, owner) => store.release(lease, owner),
    ...(store.changed ? { changed: (signal: AbortSignal) => store.changed!(signal) } : {}),
    ready: () => store.ready(),
    close: () => store.close(),
  };
}
