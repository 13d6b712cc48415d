/** The lock that holds for a plan: the request's, and the one beside the plan's file. Where there are two, both hold. */
import { type Lock, lockFromData, parseLock } from "../plan/lock.ts";
import { canonicalHash } from "../sdk/digest.ts";
import { PreampError } from "../sdk/errors.ts";
import type { JsonObject } from "../sdk/json.ts";
import { LOCK_FILE } from "./lock_file.ts";

/** Lock files that are remembered. */
const MAX_REMEMBERED = 64;

interface Remembered {
  mtime_ms: number;
  bytes: number;
  lock: Lock;
}

/** Finds locks, and remembers those that did not change. */
export class Locks {
  readonly #read = new Map<string, Remembered>();

  /**
   * Resolves to the lock of a plan, or undefined when there is none.
   *
   * @param asked The `lock` of a request.
   * @param base_url The operator's plan file; its folder may hold a lock.
   * @throws {PreampError} `lock_invalid`; `module_integrity_mismatch` when the two contradict each other.
   */
  async find(asked: JsonObject | undefined, base_url: string | undefined): Promise<Lock | undefined> {
    const given = asked === undefined ? undefined : lockFromData(asked);
    const beside = base_url?.startsWith("file:")
      ? await this.#beside(new URL(LOCK_FILE, base_url))
      : undefined;
    return given && beside ? both(beside, given) : beside ?? given;
  }

  async #beside(url: URL): Promise<Lock | undefined> {
    const known = this.#read.get(url.href);
    try {
      const { mtime, size, isFile } = await Deno.stat(url);
      if (!isFile) return undefined;
      const mtime_ms = mtime?.getTime() ?? 0;
      if (known?.mtime_ms === mtime_ms && known.bytes === size) return known.lock;
      const lock = await parseLock(await Deno.readTextFile(url));
      this.#read.delete(url.href);
      this.#read.set(url.href, { mtime_ms, bytes: size, lock });
      const [oldest] = this.#read.keys();
      if (this.#read.size > MAX_REMEMBERED && oldest !== undefined) this.#read.delete(oldest);
      return lock;
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return undefined;
      if (error instanceof PreampError) throw error;
      // there is one, and what it protects must not run without it
      throw new PreampError("lock_invalid", `Cannot read ${LOCK_FILE} beside the plan`, { cause: error });
    }
  }
}

/** Returns the hash of a lock, whatever the order of its entries. */
export function hashLock(lock: Lock): string {
  return canonicalHash(lock);
}

/** The operator's lock cannot be taken away by a request that brings another. */
function both(own: Lock, asked: Lock): Lock {
  for (const [source, { integrity }] of Object.entries(asked.modules)) {
    const theirs = own.modules[source]?.integrity;
    if (theirs !== undefined && theirs !== integrity) throw contradiction(source, theirs, integrity);
  }
  for (const [url, { sha256 }] of Object.entries(asked.files)) {
    const theirs = own.files[url]?.sha256;
    if (theirs !== undefined && theirs !== sha256) throw contradiction(url, theirs, sha256);
  }
  return {
    version: 1,
    modules: merged(asked.modules, own.modules),
    files: merged(asked.files, own.files),
  };
}

/** Without a prototype, as locks are read: a source may be called anything. */
function merged<Value>(...parts: readonly Readonly<Record<string, Value>>[]): Record<string, Value> {
  return Object.assign(Object.create(null), ...parts);
}

function contradiction(name: string, own: string, asked: string): PreampError {
  return new PreampError(
    "module_integrity_mismatch",
    `Cannot load ${
      JSON.stringify(name.slice(0, 500))
    }: the lock beside the plan pins ${own} and the request's lock ${asked}`,
  );
}
