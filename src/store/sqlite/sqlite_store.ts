/**
 * A store in one SQLite file: lasts beyond the process, and several processes of one machine may share it. A
 * commit is durable when it resolves (write-ahead log, `synchronous=FULL`). A file has no clock of its own,
 * and those of two servers may differ by minutes and may jump. So an owner of leases counts as dead when its
 * row has not changed for its time, by the monotonic clock of the server that looks; or at once when its
 * process is known to have ended.
 */
import { setImmediate } from "node:timers";
import { errorMessage, PreampError } from "../../sdk/errors.ts";
import { decodeCursor, decodeRecord, encodeChange, pageOf, type StoredRow } from "../rows.ts";
import {
  type Change,
  ConflictError,
  type Fence,
  type Heartbeat,
  type ListOptions,
  type LogEntry,
  type Page,
  type Store,
  TooManyError,
  type VersionedRecord,
} from "../store.ts";
import { Waiters } from "../waiters.ts";
import type { LeaseAttempt, Operation, SqliteDatabase, StoredOwner } from "./database.ts";
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
/** Attempts to acquire a lease during the time of an owner that may have died. */
const ATTEMPTS = 20;

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
  readonly #monotonic: () => number;
  /** Owner of another process → the end of its time as last seen, and since when that has not changed. */
  #seen = new Map<string, { readonly until_ms: number; readonly since_ms: number }>();
  /** Owner of this process → its time. */
  readonly #times = new Map<string, number>();

  constructor(now: () => number, monotonic: () => number, owners: OwnerLocks) {
    this.#now = now;
    this.#owners = owners;
    this.#monotonic = monotonic;
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

  async heartbeat(owner: string, ttl_ms: number): Promise<Heartbeat> {
    await this.#owners.hold(owner);
    const found = await this.#call<ReturnType<SqliteDatabase["heartbeat"]>>({
      method: "heartbeat",
      args: [owner, ttl_ms, !this.#times.has(owner)],
    });
    this.#times.set(owner, ttl_ms);
    const dead = await this.#deadOf(found.living, owner, ttl_ms);
    const deaths = found.deaths || dead.length > 0;
    if (deaths) await this.#call({ method: "bury", args: [dead] });
    return { lives: found.lives, deaths };
  }

  /** Resolves to the owners that have died; `own` lives. */
  async #deadOf(owners: readonly StoredOwner[], own: string, ttl_ms: number): Promise<StoredOwner[]> {
    const now_ms = this.#monotonic();
    const before = this.#seen;
    this.#seen = new Map(); // without those that are no longer there
    const dead: StoredOwner[] = [];
    for (const { owner, until_ms } of owners) {
      const seen = before.get(owner);
      const since_ms = seen?.until_ms === until_ms ? seen.since_ms : now_ms;
      this.#seen.set(owner, { until_ms, since_ms });
      if (owner === own) continue;
      if (now_ms - since_ms >= ttl_ms || await this.#owners.isGone(owner)) dead.push({ owner, until_ms });
    }
    return dead;
  }

  async acquire(lease: string, owner: string, at_once = true): Promise<number | null> {
    let before: StoredOwner | null = null;
    let gone: string | null = null;
    for (let count = 0;; count++) {
      const found: LeaseAttempt = await this.#call<LeaseAttempt>({
        method: "acquire",
        args: [lease, owner, at_once, gone],
      });
      if ("token" in found) return found.token;
      const { holder, has_row, is_late }: Exclude<LeaseAttempt, { token: number }> = found;
      if (!at_once || count > ATTEMPTS) return null;
      if (!has_row && holder.owner !== gone && await this.#owners.isGone(holder.owner)) {
        gone = holder.owner;
        continue;
      }
      // it may be the lease of a process that has died, or of a living one with another clock
      const has_changed = before !== null && before.until_ms !== holder.until_ms;
      if (!is_late || !has_row || has_changed) return null;
      before = holder;
      const ttl_ms = this.#times.get(owner) ?? 0;
      await new Promise((resolve) => setTimeout(resolve, ttl_ms / ATTEMPTS));
      await this.heartbeat(owner, ttl_ms);
    }
  }

  async free(leases: readonly string[]): Promise<string[]> {
    const found = await this.#call<ReturnType<SqliteDatabase["free"]>>({ method: "free", args: [leases] });
    const isFree = async (owner: string | null) => owner === null || await this.#owners.isGone(owner);
    const free = await Promise.all(found.map(async ({ lease, owner }) => await isFree(owner) ? lease : []));
    return free.flat();
  }

  async release(lease: string, owner: string): Promise<void> {
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
      for (const owner of this.#times.keys()) {
        this.#call({ method: "end", args: [owner] }).catch(() => {}); // its time will be over
      }
      this.#closed = Promise.withResolvers();
      if (this.#failure !== null) this.#closed.resolve();
      else if (this.#running === null && !this.#is_gathering) this.#post({ close: true });
    }
    await this.#closed.promise;
    await this.#owners.close(); // their files show that they have ended
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
        else if ("too_many" in outcome) call.reject(new TooManyError(outcome.too_many));
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
