/**
 * How long an unpinned graph is current: over the network as long as its servers say (RFC 9111), files of this machine as
 * long as they are what they were.
 */
import { createHash } from "node:crypto";
import type { FetchedFile, GraphFile } from "../types.ts";

/** Entries that are kept. */
const MAX_ENTRIES = 4096;
/** A file that was changed this shortly before it was read may have been changed again in the same tick of its clock. */
const RACY_MS = 2_000;
/** Servers may say a year; a server of ours should notice within a day. Our choice. */
const MAX_MS = 24 * 3600 * 1000;

interface Entry {
  key: string;
  until: number;
  files: readonly { url: string; mtime_ms: number; bytes: number }[];
  /** Files of this machine that would change the graph if they were there. */
  absent: readonly string[];
}

/** Remembers which bundle is current for which URL. */
export class Freshness {
  readonly #fresh_ms: number;
  readonly #monotonic: () => number;
  readonly #entries = new Map<string, Entry>();

  /** `fresh_ms`: for servers that say nothing. */
  constructor(fresh_ms: number, monotonic: () => number) {
    this.#fresh_ms = fresh_ms;
    this.#monotonic = monotonic;
  }

  /** Resolves to the key that was set, while it is current. */
  async get(name: string): Promise<string | undefined> {
    const entry = this.#entries.get(name);
    if (!entry) return undefined;
    if (this.#monotonic() < entry.until && await isUnchanged(entry)) return entry.key;
    entry.until = -Infinity;
    return undefined;
  }

  /** Returns the key that was set last, current or not. */
  last(name: string): string | undefined {
    return this.#entries.get(name)?.key;
  }

  /** Remembers a key, what it was made of, and URLs of files that were looked for and not there. */
  set(name: string, key: string, files: readonly FetchedFile[], absent: readonly string[] = []): void {
    const now_ms = Date.now();
    const local = files.flatMap(({ url, mtime_ms, bytes }) =>
      mtime_ms === undefined ? [] : [{ url, mtime_ms, bytes: bytes.length }]
    );
    const isRacy = local.some(({ mtime_ms }) => mtime_ms > now_ms - RACY_MS);
    const unsure = files.some(({ url, mtime_ms }) => url.startsWith("file:") && mtime_ms === undefined);
    const spans = files.filter(({ url }) => url.startsWith("http")).map(({ max_age_s }) =>
      max_age_s === undefined ? this.#fresh_ms : Math.min(max_age_s * 1000, MAX_MS)
    );
    const until = isRacy || unsure ? -Infinity : this.#monotonic() + Math.min(MAX_MS, ...spans);
    this.#entries.set(name, {
      key,
      until,
      files: local,
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
    return false; // one is gone
  }
}

/** Resolves to whether the files that are on this machine still have their bytes; those of servers are not asked for. */
export async function areUnchangedOnDisk(files: readonly GraphFile[]): Promise<boolean> {
  const local = files.filter(({ url }) => url.startsWith("file:"));
  const same = await Promise.all(local.map(async ({ url, sha256, bytes }) => {
    try {
      const found = await Deno.readFile(new URL(url));
      return found.length === bytes && createHash("sha256").update(found).digest("hex") === sha256;
    } catch {
      return false; // gone, or not to be read: fetching it says which
    }
  }));
  return same.every((one) => one);
}
