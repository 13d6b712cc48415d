/** Idempotency keys: the same key and body give the same run; another body is a conflict. */
import { PreampError } from "../../sdk/errors.ts";
import { type Change, ConflictError, type Store } from "../../store/store.ts";
import type { Caller, CreateOptions } from "../types.ts";

/** Kind of the records of idempotency keys. */
export const IDEMPOTENCY_KIND = "idempotency";

type IdempotencyKey = NonNullable<CreateOptions["idempotency"]>;

/** Tracks the keys of requests in progress and of existing runs. */
export class Idempotency {
  readonly #store: Store;
  /** Key → the latest request with it; `settled` when that has its run, or has failed. */
  readonly #pending = new Map<string, { body_hash: string; settled: Promise<void> }>();

  constructor(store: Store) {
    this.#store = store;
  }

  /**
   * Returns the result of `create`, or of `find` when the key has a run already. Concurrent requests with the
   * same key wait for each other; if the first fails, the next one creates the run.
   * @throws {PreampError} `idempotency_conflict` when the key was used with another body.
   */
  async once<T>(
    caller: Caller,
    sent: IdempotencyKey,
    create: () => Promise<T>,
    find: (run_id: string) => Promise<T>,
  ): Promise<T> {
    const record_key = recordKeyOf(caller, sent.key);
    const before = this.#pending.get(record_key);
    if (before) checkBody(before.body_hash, sent);
    const turn = before?.settled ?? Promise.resolve();
    const result = turn.then(async () => {
      const known = await this.#findRunId(record_key, sent);
      if (known !== null) return await find(known);
      try {
        return await create();
      } catch (error) {
        if (!(error instanceof ConflictError)) throw error;
        // another process created the run at the same time
        const other = await this.#findRunId(record_key, sent);
        if (other === null) throw error;
        return await find(other);
      }
    });
    const settled = result.then(() => {}, () => {}); // its own caller gets the error
    const pending = { body_hash: sent.body_hash, settled };
    this.#pending.set(record_key, pending);
    try {
      return await result;
    } finally {
      if (this.#pending.get(record_key) === pending) this.#pending.delete(record_key);
    }
  }

  async #findRunId(record_key: string, sent: IdempotencyKey): Promise<string | null> {
    const record = await this.#store.get(IDEMPOTENCY_KIND, record_key);
    if (!record) return null;
    checkBody(String(record.value.body_hash), sent);
    return String(record.value.run_id);
  }

  /** Returns the change that stores a key with its run. */
  put(caller: Caller, sent: IdempotencyKey, run_id: string, expires_ms: number): Change {
    return {
      put: {
        kind: IDEMPOTENCY_KIND,
        key: recordKeyOf(caller, sent.key),
        namespace: caller.namespace,
        value: { run_id, body_hash: sent.body_hash },
        expires_ms,
      },
      expect: 0,
    };
  }
}

/** Returns the record's key. A slash of the namespace is escaped: "a" with "b/c" is not "a/b" with "c". */
function recordKeyOf({ namespace }: Caller, key: string): string {
  return `${namespace.replace(/[%/]/g, encodeURIComponent)}/${key}`;
}

function checkBody(body_hash: string, sent: IdempotencyKey): void {
  if (body_hash === sent.body_hash) return;
  throw new PreampError(
    "idempotency_conflict",
    "Cannot use this Idempotency-Key: it was used with another request body",
  );
}
