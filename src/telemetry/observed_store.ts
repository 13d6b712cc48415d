/**
 * A store that measures its commits and reports when it is away: one line of the log and a gauge for all
 * runs, requests and searches that wait for it.
 */
import { errorMessage, hasCode } from "../sdk/errors.ts";
import type { JsonObject } from "../sdk/json.ts";
import { type Awaitable, ConflictError, type Store } from "../store/store.ts";
import type { Metrics } from "./metrics.ts";

/** Receivers of what {@link observedStore} sees. */
export interface StoreObserverDeps {
  readonly metrics: Metrics | null;
  log(level: "info" | "warning", event: string, facts: JsonObject): void;
  /** Monotonic milliseconds. Default: those of the process. */
  now?(): number;
}

/**
 * Returns a store that behaves like `store`, and records each commit's duration and outcome. Logs
 * `store_away` when an operation finds the store away or full, and `store_back` when one that began later
 * succeeds; after `storage_full` only a commit shows that.
 */
export function observedStore(
  store: Store,
  { metrics, log, now = () => performance.now() }: StoreObserverDeps,
): Store {
  const { kind } = store;
  let away: { readonly since_ms: number; last_ms: number; full: boolean } | null = null;
  metrics?.watch("preamp_store_up", () => [{ labels: { store: kind }, value: away ? 0 : 1 }]);

  function succeeded(began_ms: number, is_commit: boolean): void {
    if (!away || began_ms < away.last_ms || away.full && !is_commit) return;
    log("info", "store_back", { store: kind, away_s: Math.round((now() - away.since_ms) / 1000) });
    away = null;
  }

  function failed(error: unknown): void {
    const full = hasCode(error, "storage_full");
    if (!full && !hasCode(error, "overloaded")) return;
    const last_ms = now();
    if (away) return void (away.last_ms = last_ms, away.full ||= full);
    away = { since_ms: last_ms, last_ms, full };
    log("warning", "store_away", { store: kind, message: errorMessage(error) });
  }

  function observed<T>(operation: () => Awaitable<T>, commit?: (began_ms: number, error?: unknown) => void) {
    const began_ms = now();
    const done = (value: T) => {
      commit?.(began_ms);
      succeeded(began_ms, commit !== undefined);
      return value;
    };
    const broken = (error: unknown) => {
      commit?.(began_ms, error);
      failed(error);
      throw error;
    };
    let result: Awaitable<T>;
    try {
      result = operation();
    } catch (error) {
      return broken(error);
    }
    return result instanceof Promise ? result.then(done, broken) : done(result);
  }

  function committed(began_ms: number, error?: unknown): void {
    const outcome = error === undefined ? "ok" : error instanceof ConflictError ? "conflict" : "error";
    const labels = { store: kind, outcome };
    metrics?.record("preamp_store_commit_duration_seconds", labels, (now() - began_ms) / 1000);
  }

  return {
    kind,
    commit: (...args) => observed(() => store.commit(...args), committed),
    entries: (...args) => observed(() => store.entries(...args)),
    get: (...args) => observed(() => store.get(...args)),
    list: (...args) => observed(() => store.list(...args)),
    acquire: (...args) => observed(() => store.acquire(...args)),
    free: (...args) => observed(() => store.free(...args)),
    heartbeat: (...args) => observed(() => store.heartbeat(...args)),
    release: (...args) => observed(() => store.release(...args)),
    ...(store.changed && { changed: (...args) => store.changed!(...args) }),
    ready: () => store.ready(),
    close: () => store.close(),
  };
}
