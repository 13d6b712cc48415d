/** Idempotency keys: the same key and body give the same run; another body is a conflict (threats T25). */
import { PreampError } from "../../sdk/errors.ts";
import { type Change, ConflictError, type Store } from "../../store/store.ts";
import type { Caller } from "../types.ts";

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
   * Returns what `create` makes, or, when the key stands for a run already, what `find` finds. Requests that come at the
   * same time wait for the first; when that makes no run, the next one may.
   * @throws {PreampError} `idempotency_conflict` when the key came with another body.
   */
  async once<T extends { readonly id: string }>(
    caller: Caller,
    given: IdempotencyKey,
    create: () => Promise<T>,
    find: (run_id: string) => Promise<T>,
  ): Promise<T> {
    const name = nameOf(caller, given.key);
    const waiting = this.#under_way.get(name);
    if (waiting) {
      check(waiting.body_hash, given);
      const run_id = await waiting.run.catch(() => null); // told to the one who made the first try
      return run_id === null ? await this.once(caller, given, create, find) : await find(run_id);
    }
    const made = this.#make(name, given, create, find);
    this.#under_way.set(name, { body_hash: given.body_hash, run: made.then((one) => one.id) });
    this.#under_way.get(name)!.run.catch(() => {}); // thrown below
    try {
      return await made;
    } finally {
      this.#under_way.delete(name);
    }
  }

  async #make<T>(
    name: string,
    given: IdempotencyKey,
    create: () => Promise<T>,
    find: (run_id: string) => Promise<T>,
  ): Promise<T> {
    const known = await this.#known(name, given);
    if (known !== null) return await find(known);
    try {
      return await create();
    } catch (error) {
      if (!(error instanceof ConflictError)) throw error;
      const other = await this.#known(name, given); // another server was asked the same at the same time
      if (other === null) throw error;
      return await find(other);
    }
  }

  async #known(name: string, given: IdempotencyKey): Promise<string | null> {
    const record = await this.#store.get(KIND, name);
    if (!record) return null;
    check(String(record.value.body_hash), given);
    return String(record.value.run_id);
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
