/**
 * Keys of cached bundles, which contain the namespace and the policy, and their cache on disk. Tracks how
 * long an unpinned graph is fresh: remote files as long as their servers allow (RFC 9111), local files while
 * they are unchanged.
 */
import { createHash } from "node:crypto";
import { canonicalJson } from "../sdk/json.ts";
import { RecentMap } from "../sdk/recent_map.ts";
import type { GraphPrefetcher } from "./fetch/prefetch.ts";
import type { FetchedFile, GraphFile, LoadContext, ModuleBundle } from "./types.ts";

const scopes = new WeakMap<object, Map<string, string>>();

/**
 * Returns the hash of everything that separates caches: namespace, origin of the plan, and the policy's rules
 * for loading.
 */
export function scopeOf({ namespace, origin, policy }: LoadContext): string {
  const owner = `${origin} ${namespace}`;
  let known = scopes.get(policy);
  if (!known) scopes.set(policy, known = new Map());
  let scope = known.get(owner);
  if (scope === undefined) {
    const { allow, private_hosts, esm_host } = policy.modules;
    const { max_module_bytes, max_graph_bytes, max_graph_files } = policy.limits;
    const rules = { allow, private_hosts, esm_host, max_module_bytes, max_graph_bytes, max_graph_files };
    known.set(owner, scope = hashHex({ namespace, origin, rules }));
  }
  return scope;
}

/** Returns the key of a bundle: the hash of all its inputs. */
export function bundleKey(
  scope: string,
  requested: string,
  entry: string,
  { files, redirects }: Pick<GraphPrefetcher, "files" | "redirects">,
): string {
  const hashes = [...files.values()].map(({ url, sha256 }) => [url, sha256]).sort();
  return hashHex({ scope, requested, entry, files: hashes, redirects: [...redirects].sort() });
}

/** Returns the key of a pin: a URL with a digest. */
export function pinKey(scope: string, url: string, integrity: string): string {
  return hashHex({ scope, url, integrity });
}

function hashHex(value: unknown): string {
  return createHash("sha256").update(canonicalJson(value)).digest("hex");
}

/** Version of the file format and of bundles. */
const FORMAT = "3";

/** Separator in a bundle's file: a line with the hash of the rest, a line of JSON, the code. */
const NEWLINE = 0x0a;

/**
 * Disk cache, a folder of limited size: one file for each bundle, named by the hash of its inputs, and one
 * for each pin that names its bundle. Damaged files and files of other versions are ignored. Disk errors only
 * cost time: nothing here throws.
 */
export class DiskCache {
  readonly #folder: URL;
  readonly #max_bytes: number;
  #folder_created: Promise<unknown> | undefined;
  #written = 0;

  /** `folder` ends in a slash; it is created by the first write. */
  constructor(folder: URL, max_bytes: number) {
    this.#folder = new URL(`bundles-${FORMAT}/`, folder);
    this.#max_bytes = max_bytes;
  }

  /** Resolves to the bundle of a key (hex). */
  async get(key: string): Promise<ModuleBundle | undefined> {
    const bytes = await this.#read(`${key}.bundle`);
    if (bytes === undefined) return undefined;
    const start = bytes.indexOf(NEWLINE) + 1;
    const content = bytes.subarray(start);
    if (new TextDecoder().decode(bytes.subarray(0, start)) !== await hashLine(content)) return undefined;
    const end = content.indexOf(NEWLINE);
    const facts = JSON.parse(new TextDecoder().decode(content.subarray(0, end))); // the hash proves that this program wrote it
    return { ...facts, code: new TextDecoder().decode(content.subarray(end + 1)) };
  }

  /** Stores a bundle. */
  async set(key: string, bundle: ModuleBundle): Promise<void> {
    const { code, ...facts } = bundle;
    const content = new TextEncoder().encode(`${JSON.stringify(facts)}\n${code}`);
    await this.#write(`${key}.bundle`, [new TextEncoder().encode(await hashLine(content)), content]);
  }

  /** Resolves to the key of the bundle for a pin (hex). */
  async getPin(pin: string): Promise<string | undefined> {
    const key = new TextDecoder().decode(await this.#read(`${pin}.pin`));
    return /^[0-9a-f]{64}$/.test(key) ? key : undefined;
  }

  /** Stores the bundle's key for a pin. */
  async setPin(pin: string, key: string): Promise<void> {
    await this.#write(`${pin}.pin`, [new TextEncoder().encode(key)]);
  }

  async #read(name: string): Promise<Uint8Array<ArrayBuffer> | undefined> {
    try {
      return await Deno.readFile(new URL(name, this.#folder));
    } catch {
      return undefined; // missing or unreadable: a cache miss
    }
  }

  async #write(name: string, parts: readonly Uint8Array[]): Promise<void> {
    const temporary = new URL(`${name}.${crypto.randomUUID()}`, this.#folder);
    try {
      await (this.#folder_created ??= Deno.mkdir(this.#folder, { recursive: true, mode: 0o700 }));
      await Deno.writeFile(temporary, ReadableStream.from(parts), { mode: 0o600, createNew: true });
      await Deno.rename(temporary, new URL(name, this.#folder)); // atomic
      this.#written += parts.reduce((sum, { length }) => sum + length, 0);
      if (this.#written > this.#max_bytes / 8) await this.#prune();
    } catch {
      this.#folder_created = undefined;
      await Deno.remove(temporary).catch(() => {}); // it may not exist
    }
  }

  /** Removes the oldest files until the folder is within its limit. */
  async #prune(): Promise<void> {
    this.#written = 0;
    const files: { url: URL; size: number; age: number }[] = [];
    for await (const { name, isFile } of Deno.readDir(this.#folder)) {
      if (!isFile) continue;
      const url = new URL(name, this.#folder);
      const { size, mtime } = await Deno.stat(url);
      files.push({ url, size, age: mtime?.getTime() ?? 0 });
    }
    let total = files.reduce((sum, { size }) => sum + size, 0);
    for (const { url, size } of files.sort((a, b) => a.age - b.age)) {
      if (total <= this.#max_bytes) break;
      await Deno.remove(url);
      total -= size;
    }
  }
}

/** Returns the hash as a line. perf: computed off the main thread, since a bundle may have many megabytes. */
async function hashLine(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  return `${new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)).toHex()}\n`;
}

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
  readonly #entries = new RecentMap<Entry>({ max_entries: MAX_ENTRIES });

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
