/** Idempotency keys: the same key and body give the same run; another body is a conflict (threats T25). */
import { PreampError } from "../sdk/errors.ts";
import type { Change, Store } from "../store/store.ts";
import type { Caller } from "./types.ts";

const KIND = "idempotency";

/** What a request was sent with. */
export interface IdempotencyKey {
  key: string;
  body_hash: string;
}

/** Keys of requests that are being answered and of runs that exist. */
export class Idempotency {
  readonly #store: Store;
  readonly #under_way = new Map<string, { body_hash: string; run: Promise<string> }>();

  constructor(store: Store) {
    this.#store = store;
  }

  /**
   * Returns the id of the run that this key stands for, or null when it is new.
   * @throws {PreampError} `idempotency_conflict` when the key came with another body.
   */
  async find(caller: Caller, given: IdempotencyKey): Promise<string | null> {
    const name = nameOf(caller, given.key);
    const waiting = this.#under_way.get(name);
    if (waiting) {
      check(waiting.body_hash, given);
      return await waiting.run.catch(() => null); // the first try made no run: this one may
    }
    const record = await this.#store.get(KIND, name);
    if (!record) return null;
    check(String(record.value.body_hash), given);
    return String(record.value.run_id);
  }

  /** Marks a key as being worked on until `run` settles: a second request meanwhile waits for the same run. */
  claim(caller: Caller, given: IdempotencyKey, run: Promise<string>): void {
    const name = nameOf(caller, given.key);
    this.#under_way.set(name, { body_hash: given.body_hash, run });
    run.catch(() => {}).finally(() => this.#under_way.delete(name));
  }

  /** Returns the change that keeps a key with its run. */
  put(caller: Caller, given: IdempotencyKey, run_id: string, expires_ms: number): Change {
    return {
      put: {
        kind: KIND,
        key: nameOf(caller, given.key),
        namespace: caller.namespace,
        value: { run_id, body_hash: given.body_hash },
        expires_ms,
      },
      expect: 0,
    };
  }
}

function nameOf(caller: Caller, key: string): string {
  return `${caller.namespace}/${key}`;
}

function check(body_hash: string, given: IdempotencyKey): void {
  if (body_hash === given.body_hash) return;
  throw new PreampError(
    "idempotency_conflict",
    "Cannot use this Idempotency-Key: it was sent with another body before",
  );
}
