/**
 * A store in one SQLite file: lasts beyond the process, and several processes of one machine may share it. A
 * commit is durable when it resolves (write-ahead log, `synchronous=FULL`). Leases are `observed_leases.ts`.
 */
import { setImmediate } from "node:timers";
import { errorMessage, PreampError } from "../../sdk/errors.ts";
import { type LeaseAttempt, ObservedLeases, type StoredLease } from "./observed_leases.ts";
import { decodeCursor, decodeRecord, encodeChange, pageOf, type StoredRow } from "../rows.ts";
import {
  type Change,
  ConflictError,
  type Fence,
  type ListOptions,
  type LogEntry,
  type Page,
  type Store,
  type VersionedRecord,
} from "../store.ts";
import { Waiters } from "../waiters.ts";
import type { Operation } from "./database.ts";
import { OwnerLocks } from "./owner_locks.ts";
import type { Failure, FromWorker, ToWorker } from "./worker.ts";

/** Options of {@link openSqliteStore}. */
interface SqliteStoreOptions {
  /** Milliseconds since the epoch; default `Date.now`. */
  now?: () => number;
  /** Milliseconds that never go backwards, for leases; default `performance.now`. */
  monotonic?: () => number;
  /**
   * Whether to look for damage, which reads the whole file: before the file is used, or meanwhile if it is
   * large; then every operation fails once damage was found.
   */
  check?: boolean;
  /** Bytes of a large file. Default: 64 MiB, which take about 0.1 s. */
  large_bytes?: number;
}

const LARGE_BYTES = 64 * 1024 * 1024;

/** Path of the worker's first file in the compiled program, relative to its main file. */
const COMPILED = "src/store/sqlite/worker.js";
/** Maximum operations of one transaction. */
const MAX_BATCH = 1_000;

interface Call {
  readonly operation: Operation;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

/**
 * Opens the store in a file, which is created with its folder if it does not exist. Only this user may read
 * it.
 *
 * @throws {Error} when the file cannot be opened: no permission, damaged, of another program or of a newer
 * version.
 */
export async function openSqliteStore(path: string, options: SqliteStoreOptions = {}): Promise<Store> {
  // first the store, because its worker starts while the file is created
  const monotonic = options.monotonic ?? (() => performance.now());
  const store = new SqliteStore(options.now ?? Date.now, monotonic, new OwnerLocks(`${path}-owners`));
  await store.open(path, options.check ? options.large_bytes ?? LARGE_BYTES : null);
  return store;
}

class SqliteStore implements Store {
  readonly kind = "sqlite";
  readonly #now: () => number;
  readonly #worker: Worker;
  #waiting: Call[] = [];
  #running: readonly Call[] | null = null;
  #is_gathering = false;
  /** Looks for damage; null when it has ended. */
  #checking: Worker | null = null;
  /** Why the worker ended; null while it works. */
  #failure: string | null = null;
  #opened: PromiseWithResolvers<void> = Promise.withResolvers();
  #closed: PromiseWithResolvers<void> | null = null;
  readonly #waiters = new Waiters();
  readonly #owners: OwnerLocks;
  readonly #observed: ObservedLeases;

  constructor(now: () => number, monotonic: () => number, owners: OwnerLocks) {
    this.#now = now;
    this.#owners = owners;
    this.#observed = new ObservedLeases(monotonic, (owner) => owners.isGone(owner));
    this.#worker = createWorker();
    this.#worker.onmessage = ({ data }: MessageEvent<FromWorker>) => this.#receive(data);
    this.#worker.onerror = (event) => {
      event.preventDefault();
      this.#end(`its worker failed: ${event.message}`);
    };
  }

  /** @param check_below Bytes of a file that is checked for damage first; null: it is not checked. */
  async open(path: string, check_below: number | null): Promise<void> {
    try {
      await createPrivateFile(path);
      const is_large = check_below !== null && (await Deno.stat(path)).size >= check_below;
      this.#post({ open: path, check: check_below !== null && !is_large });
      await this.#opened.promise;
      if (is_large) this.#checkMeanwhile(path);
    } catch (error) {
      this.#worker.terminate();
      throw error;
    }
  }

  /** Looks for damage in a worker of its own; ends the store if there is any. */
  #checkMeanwhile(path: string): void {
    const checking = this.#checking = createWorker();
    const ended = (problem: string | null) => {
      checking.terminate();
      this.#checking = null;
      if (problem === null) return;
      this.#worker.terminate();
      this.#end(`its file is damaged: ${problem}`);
    };
    checking.onmessage = ({ data }: MessageEvent<FromWorker>) => {
      // a file that is busy or a disk that is full is no damage
      ended("failed" in data && data.code === "internal" ? data.failed : null);
    };
    checking.onerror = (event) => {
      event.preventDefault();
      ended(null);
    };
    checking.postMessage({ check: path } satisfies ToWorker);
  }

  commit(changes: readonly Change[], fence?: Fence): Promise<void> {
    return this.#call({ method: "commit", args: [changes.map(encodeChange), fence] });
  }

  async entries(
    ...args: [log: string, after: number, limit: number, max_bytes?: number]
  ): Promise<readonly LogEntry[] | null> {
    const texts = await this.#call<string[] | null>({ method: "entries", args });
    return texts && texts.map((text) => JSON.parse(text) as LogEntry);
  }

  async get(kind: string, key: string): Promise<VersionedRecord | null> {
    const row = await this.#call<StoredRow | null>({ method: "get", args: [kind, key] });
    return row && decodeRecord(row);
  }

  async list(kind: string, { cursor, ...options }: ListOptions): Promise<Page> {
    const after = cursor === undefined ? null : decodeCursor(cursor);
    const rows = await this.#call<StoredRow[]>({ method: "list", args: [kind, options, after] });
    return pageOf(rows, options.limit);
  }

  async acquire(lease: string, owner: string, ttl_ms: number, wait?: boolean): Promise<number | null> {
    await this.#owners.hold(owner);
    return await this.#observed.acquire(
      lease,
      { ttl_ms, wait },
      (expired) => this.#call<LeaseAttempt>({ method: "acquire", args: [lease, owner, ttl_ms, expired] }),
    );
  }

  async renew(lease: string, owner: string, ttl_ms: number): Promise<boolean> {
    const renewed = await this.#call<StoredLease | null>({ method: "renew", args: [lease, owner, ttl_ms] });
    if (renewed) this.#observed.see(lease, renewed);
    return renewed !== null;
  }

  async release(lease: string, owner: string): Promise<void> {
    this.#observed.forget(lease);
    await this.#call({ method: "release", args: [lease, owner] });
  }

  async ready(): Promise<{ ok: boolean; reason?: string }> {
    try {
      await this.#call({ method: "ready", args: [] });
      return { ok: true };
    } catch (error) {
      return { ok: false, reason: `store not usable: ${errorMessage(error)}` };
    }
  }

  async changed(signal: AbortSignal): Promise<void> {
    if (signal.aborted || this.#closed) return;
    if (this.#waiters.size === 0) this.#post({ watch: true });
    await this.#waiters.wait(signal);
    if (this.#waiters.size === 0 && !this.#closed) this.#post({ watch: false });
  }

  async close(): Promise<void> {
    if (!this.#closed) {
      this.#checking?.terminate();
      this.#closed = Promise.withResolvers();
      if (this.#failure !== null) this.#closed.resolve();
      else if (this.#running === null && !this.#is_gathering) this.#post({ close: true });
    }
    await this.#closed.promise;
    await this.#owners.close();
  }

  #post(message: ToWorker): void {
    this.#worker.postMessage(message);
  }

  /** Resolves to the result of an operation, which is that of its method. */
  #call<Result = void>(operation: Operation): Promise<Result> {
    if (this.#closed) return Promise.reject(new Error("Cannot use the store: it is closed"));
    if (this.#failure !== null) return Promise.reject(failed({ failed: this.#failure, code: "internal" }));
    return new Promise<Result>((resolve, reject) => {
      this.#waiting.push({ operation, resolve: resolve as (value: unknown) => void, reject });
      if (this.#running === null && !this.#is_gathering) this.#send();
    });
  }

  /** Sends the waiting operations as one batch. */
  #send(): void {
    this.#running = this.#waiting.splice(0, MAX_BATCH);
    this.#post({ run: this.#running.map(({ operation }) => operation), now_ms: this.#now() });
  }

  #receive(message: FromWorker): void {
    if ("opened" in message) this.#opened.resolve();
    else if ("outcomes" in message) {
      this.#finishBatch((call, index) => {
        const outcome = message.outcomes[index]!; // one for each operation
        if ("conflict" in outcome) call.reject(new ConflictError(outcome.conflict));
        else if ("failed" in outcome) call.reject(failed(outcome));
        else call.resolve(outcome.value);
      });
    } else if ("failed" in message) this.#opened.reject(new Error(message.failed));
    else if ("changed" in message) this.#waiters.wakeAll();
    else {
      this.#worker.terminate();
      this.#closed?.resolve();
    }
  }

  /** Rejects all calls, also later ones: there is no worker any more. */
  #end(failure: string): void {
    this.#failure = failure;
    const error = failed({ failed: failure, code: "internal" });
    for (const call of [...this.#running ?? [], ...this.#waiting.splice(0)]) call.reject(error);
    this.#running = null;
    this.#opened.reject(error);
    this.#closed?.resolve();
  }

  #finishBatch(finish: (call: Call, index: number) => void): void {
    const calls = this.#running ?? [];
    this.#running = null;
    calls.forEach(finish);
    if (calls.length === 1) return this.#next();
    // the runs that continue now send their next operations together, in one transaction
    this.#is_gathering = true;
    setImmediate(() => {
      this.#is_gathering = false;
      this.#next();
    });
  }

  #next(): void {
    if (this.#waiting.length > 0) this.#send();
    else if (this.#closed && this.#failure === null) this.#post({ close: true });
  }
}

/** Starts a worker. Its first file is named twice: the compile task and the checker of types look for it. */
function createWorker(): Worker {
  return Deno.build.standalone
    ? new Worker(new URL(COMPILED, Deno.mainModule), { type: "module", name: "store" })
    : new Worker(new URL("./worker.ts", import.meta.url), { type: "module", name: "store" });
}

function failed({ failed, code }: Failure): PreampError {
  return new PreampError(code, `Cannot ${code === "storage_full" ? "write to" : "use"} the store: ${failed}`);
}

/** The name at the end of a path. `node:path` would take longer to load than the rest of this file needs. */
const NAME = Deno.build.os === "windows" ? /[^\\/]*$/ : /[^/]*$/;

/**
 * Creates the file and its folder if they do not exist. Only this user can read them; SQLite gives the files
 * beside it the same mode.
 */
export async function createPrivateFile(path: string): Promise<void> {
  const folder = path.replace(NAME, "");
  if (folder !== "") await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
  const file = await Deno.open(path, { create: true, write: true, mode: 0o600 });
  file.close();
}
