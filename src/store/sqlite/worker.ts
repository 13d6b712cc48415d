/**
 * First file of the worker that owns a SQLite file. SQLite is synchronous: here a slow disk delays no
 * request. The store sends a batch when the last one was answered, so commits that arrive meanwhile share one
 * transaction.
 */
import { errorMessage } from "../../sdk/errors.ts";
import { endedLogs } from "../packing.ts";
import { type Operation, type Outcome, SqliteDatabase, WRITES } from "./database.ts";
import { purgePart } from "./purge.ts";

/** Message to the worker. */
export type ToWorker = Readonly<
  /** `check`: looks for damage first. */
  | { open: string; check: boolean }
  /** Only looks for damage, beside another worker that has the file open. */
  | { check: string }
  | { run: readonly Operation[]; now_ms: number }
  /** Whether the worker looks for changes of other processes. */
  | { watch: boolean }
  | { close: true }
>;

/** Why an operation failed, and the code that says whether it may succeed soon. */
export type Failure = Readonly<{ failed: string; code: "storage_full" | "overloaded" | "internal" }>;

/** Message from the worker. Batches are answered in order. */
export type FromWorker = Readonly<
  | { opened: true }
  | { checked: true }
  | { outcomes: readonly (Outcome | Failure)[] }
  /** The file cannot be opened. */
  | Failure
  /** Another process has changed the file. */
  | { changed: true }
  | { closed: true }
>;

/** Milliseconds between two looks for changes of other processes, while the store watches for them. */
const WATCH_EVERY_MS = 25;
/** Milliseconds between two deletions of expired rows, and between two parts of one. */
const PURGE_EVERY_MS = 60_000;
const PURGE_PAUSE_MS = 20;

/** The part of a worker's global scope that this file uses. */
interface WorkerScope {
  onmessage: ((event: MessageEvent<ToWorker>) => void) | null;
  postMessage(message: FromWorker): void;
  close(): void;
}

const scope = globalThis as unknown as WorkerScope; // this file runs in a worker only
const reply = (message: FromWorker) => scope.postMessage(message);
let path = "";
let database: SqliteDatabase | undefined;
/** Time of the store at its last batch, in milliseconds since the epoch; 0 before the first one. */
let last_ms = 0;
let watching: ReturnType<typeof setInterval> | undefined;
let purging: ReturnType<typeof setTimeout> | undefined;
/** Logs to pack, each after an entry. */
const ended: { readonly log: string; after: number }[] = [];
let packing: ReturnType<typeof setTimeout> | undefined;

scope.onmessage = ({ data: message }) => {
  try {
    receive(message);
  } catch (error) {
    reply(failureOf(error));
  }
};

function receive(message: ToWorker): void {
  if ("open" in message) {
    path = message.open;
    database = openDatabase();
    if (message.check) database.quickCheck();
    purging = setTimeout(purge, PURGE_PAUSE_MS);
    reply({ opened: true });
  } else if ("check" in message) {
    const checked = new SqliteDatabase(message.check);
    checked.quickCheck();
    checked.close();
    reply({ checked: true });
  } else if ("run" in message) {
    last_ms = message.now_ms;
    reply({ outcomes: runBatch(message.run) });
    for (const operation of message.run) {
      if (operation.method !== "commit") continue;
      for (const log of endedLogs(operation.args[0])) ended.push({ log, after: 0 });
    }
    if (ended.length > 0) packing ??= setTimeout(pack);
  } else if ("watch" in message) watch(message.watch);
  else {
    watch(false);
    clearTimeout(purging);
    clearTimeout(packing);
    while (ended.length > 0) packPart();
    database?.close();
    reply({ closed: true });
    scope.close();
  }
}

/** Opens the file; on a full disk for this process alone, so that it can be read. */
function openDatabase(): SqliteDatabase {
  try {
    return new SqliteDatabase(path);
  } catch (error) {
    if (failureOf(error).code === "internal") throw error;
    return new SqliteDatabase(path, true);
  }
}

/** Runs a batch. When its transaction fails, such as on a full disk, nothing is written; reads continue. */
function runBatch(operations: readonly Operation[]): (Outcome | Failure)[] {
  if (!database) throw new Error("the file is not open");
  try {
    const outcomes = database.run(operations, last_ms);
    if (database.is_exclusive && operations.some(({ method }) => WRITES.has(method))) {
      database.close(); // there is room again: other processes may open the file too
      database = openDatabase();
    }
    return outcomes;
  } catch (error) {
    const failure = failureOf(error);
    if (operations.length === 1) return [failure];
    return operations.flatMap((one) => WRITES.has(one.method) ? failure : runBatch([one]));
  }
}

function watch(on: boolean): void {
  clearInterval(watching);
  if (!on || !database) return;
  let version = database.data_version;
  watching = setInterval(() => {
    const now = database?.data_version ?? version;
    if (now === version) return;
    version = now;
    reply({ changed: true });
  }, WATCH_EVERY_MS);
}

/** Packs logs in small parts; half of the time is for commits. */
function pack(): void {
  const began_ms = performance.now();
  packPart();
  packing = ended.length > 0 ? setTimeout(pack, performance.now() - began_ms) : undefined;
}

/** Packs one part. After a failure, such as a full disk, the log stays as it is. */
function packPart(): void {
  const first = ended[0]!;
  let last: number | null = null;
  try {
    last = database?.packPart(first.log, first.after) ?? null;
  } catch {
    // nothing depends on it
  }
  if (last === null) ended.shift();
  else first.after = last;
}

/** Deletes expired rows in small parts. A failure, such as a full disk, is tried again at the next time. */
function purge(): void {
  const began_ms = performance.now();
  let more = false;
  try {
    more = database ? purgePart(database, last_ms) : false;
  } catch {
    // nothing depends on it: expired rows count as deleted
  }
  // half of the time is for commits
  purging = setTimeout(purge, more ? performance.now() - began_ms : PURGE_EVERY_MS);
}

/** Result codes of SQLite for a file that cannot be written: full, read-only. */
const FULL: ReadonlySet<number> = new Set([13, 8]);
/**
 * Those of a failure that may pass: busy, locked, no memory, an error of the disk, a file beside the database
 * that cannot be opened, and another process that opens the file.
 */
const AWAY: ReadonlySet<number> = new Set([5, 6, 7, 10, 14, 15]);

function failureOf(error: unknown): Failure {
  const { errcode } = error as { errcode?: unknown };
  const code = typeof errcode === "number" ? errcode & 0xff : 0;
  return {
    failed: errorMessage(error),
    code: FULL.has(code) ? "storage_full" : AWAY.has(code) ? "overloaded" : "internal",
  };
}
