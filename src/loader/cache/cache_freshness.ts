/**
 * Tracks how long an unpinned graph is fresh: remote files as long as their servers allow (RFC 9111), local files while they are
 * unchanged.
 */
import { createHash } from "node:crypto";
import type { FetchedFile, GraphFile } from "../types.ts";

/** Most entries. */
const MAX_ENTRIES = 4096;
/** Milliseconds after a change in which a file may change again with the same modification time. */
const RACY_MS = 2_000;
/** Longest freshness: one day, even if servers allow more. */
const MAX_MS = 24 * 3600 * 1000;

interface Entry {
  key: string;
  until: number;
  files: readonly { url: string; mtime_ms: number | undefined; bytes: number }[];
  /** Local files that did not exist and would change the graph. */
  absent: readonly string[];
}

/** Tracks the fresh bundle of each URL. */
export class Freshness {
  readonly #fresh_ms: number;
  readonly #monotonic: () => number;
  readonly #entries = new Map<string, Entry>();

  /** `fresh_ms`: freshness if servers send no `Cache-Control`. */
  constructor(fresh_ms: number, monotonic: () => number) {
    this.#fresh_ms = fresh_ms;
    this.#monotonic = monotonic;
  }

  /** Resolves to the key of a URL if it is fresh. */
  async get(name: string): Promise<string | undefined> {
    const entry = this.#entries.get(name);
    if (!entry) return undefined;
    if (this.#monotonic() < entry.until && await isUnchanged(entry)) return entry.key;
    entry.until = -Infinity;
    return undefined;
  }

  /** Returns the latest key of a URL, fresh or not. */
  last(name: string): string | undefined {
    return this.#entries.get(name)?.key;
  }

  /** Stores a key with its files and the URLs of files that did not exist. */
  set(name: string, key: string, files: readonly FetchedFile[], absent: readonly string[] = []): void {
    const local = files.filter(({ url }) => url.startsWith("file:"));
    const racy_ms = Date.now() - RACY_MS;
    const is_racy = local.some(({ mtime_ms }) => mtime_ms === undefined || mtime_ms > racy_ms);
    const spans = files.filter(({ url }) => url.startsWith("http")).map(({ max_age_s }) =>
      max_age_s === undefined ? this.#fresh_ms : max_age_s * 1000
    );
    this.#entries.set(name, {
      key,
      until: is_racy ? -Infinity : this.#monotonic() + Math.min(MAX_MS, ...spans),
      files: local.map(({ url, mtime_ms, bytes }) => ({ url, mtime_ms, bytes: bytes.length })),
      absent: absent.filter((url) => url.startsWith("file:")),
    });
    const [oldest] = this.#entries.keys();
    if (this.#entries.size > MAX_ENTRIES && oldest !== undefined) this.#entries.delete(oldest);
  }
}

async function isUnchanged({ files, absent }: Entry): Promise<boolean> {
  try {
    const appeared = absent.map((url) => Deno.stat(new URL(url)).then(() => true, () => false));
    if ((await Promise.all(appeared)).includes(true)) return false;
    const found = await Promise.all(files.map(({ url }) => Deno.stat(new URL(url))));
    return found.every(({ mtime, size }, index) =>
      mtime?.getTime() === files[index]?.mtime_ms && size === files[index]?.bytes
    );
  } catch {
    return false; // a file is missing
  }
}

/** Resolves to whether all local files have the same bytes as before. Remote files are not checked. */
export async function areUnchangedOnDisk(files: readonly GraphFile[]): Promise<boolean> {
  const local = files.filter(({ url }) => url.startsWith("file:"));
  const same = await Promise.all(local.map(async ({ url, sha256, bytes }) => {
    try {
      const found = await Deno.readFile(new URL(url));
      return found.length === bytes && createHash("sha256").update(found).digest("hex") === sha256;
    } catch {
      return false; // missing or unreadable: fetching it reports which
    }
  }));
  return !same.includes(false);
}
