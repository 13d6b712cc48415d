/**
 * Finds the lock of a plan: the request's and the one beside the plan's file. If there are both, both
 * apply.
 */
import { LOCK_FILE } from "./named_plans.ts";
import { type Lock, lockFromData, parseLock } from "../plan/lock.ts";
import { PreampError } from "../sdk/errors.ts";
import type { JsonObject } from "../sdk/json.ts";
import { RecentMap } from "../sdk/recent_map.ts";

/** Maximum number of cached lock files. */
const MAX_REMEMBERED = 64;

interface Remembered {
  mtime_ms: number;
  bytes: number;
  lock: Lock;
}

/** Finds locks, and caches files that did not change. */
export class Locks {
  readonly #read = new RecentMap<Remembered>({ max_entries: MAX_REMEMBERED });

  /**
   * Resolves to the lock of a plan, or undefined if it has no lock.
   *
   * @param requested The `lock` of a request.
   * @param base_url URL of the operator's plan file, whose folder may contain a lock.
   * @throws {PreampError} `lock_invalid`; `module_integrity_mismatch` if the two locks contradict each
   * other.
   */
  async find(requested: JsonObject | undefined, base_url: string | undefined): Promise<Lock | undefined> {
    const own = requested === undefined ? undefined : lockFromData(requested);
    const beside = base_url?.startsWith("file:")
      ? await this.#beside(new URL(LOCK_FILE, base_url))
      : undefined;
    return own && beside ? both(beside, own) : beside ?? own;
  }

  async #beside(url: URL): Promise<Lock | undefined> {
    const known = this.#read.get(url.href);
    try {
      const { mtime, size, isFile } = await Deno.stat(url);
      if (!isFile) return undefined;
      const mtime_ms = mtime?.getTime() ?? 0;
      if (known?.mtime_ms === mtime_ms && known.bytes === size) return known.lock;
      const lock = await parseLock(await Deno.readTextFile(url));
      this.#read.set(url.href, { mtime_ms, bytes: size, lock });
      return lock;
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return undefined;
      if (error instanceof PreampError) throw error;
      // the lock exists, so its plan must not run without it
      throw new PreampError("lock_invalid", `Cannot read ${LOCK_FILE} beside the plan`, { cause: error });
    }
  }
}

/** Combines the operator's lock with the request's, which cannot remove entries of the operator's. */
function both(own: Lock, requested: Lock): Lock {
  for (const [source, { integrity }] of Object.entries(requested.modules)) {
    const theirs = own.modules[source]?.integrity;
    if (theirs !== undefined && theirs !== integrity) throw contradiction(source, theirs, integrity);
  }
  for (const kind of ["files", "texts"] as const) {
    for (const [url, { sha256 }] of Object.entries(requested[kind])) {
      const theirs = own[kind][url]?.sha256;
      if (theirs !== undefined && theirs !== sha256) throw contradiction(url, theirs, sha256);
    }
  }
  return {
    version: 1,
    modules: merged(requested.modules, own.modules),
    files: merged(requested.files, own.files),
    servers: merged(requested.servers, own.servers),
    texts: merged(requested.texts, own.texts),
  };
}

/** Merges records without a prototype, because a source may have any name. */
function merged<Value>(...parts: readonly Readonly<Record<string, Value>>[]): Record<string, Value> {
  return Object.assign(Object.create(null), ...parts);
}

function contradiction(name: string, own: string, requested: string): PreampError {
  return new PreampError(
    "module_integrity_mismatch",
    `Cannot load ${
      JSON.stringify(name.slice(0, 500))
    }: the lock beside the plan pins ${own} and the request's lock ${requested}`,
  );
}
