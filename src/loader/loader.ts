/**
 * Loads modules by URL: resolves, fetches, verifies, bundles, caches and links them. Policies and plans are
 * inputs. Never mounts a module, and executes one only in `load` and `link`.
 */
import type { Lock } from "../plan/lock.ts";
import { isPinnedInline, isTrustedInline, sourceProblem, sourceRules } from "../policy/source_rules.ts";
import { later } from "../process/system_clock.ts";
import { untilAborted } from "../sdk/abortable.ts";
import { canonicalHash } from "../sdk/digest.ts";
import { PreampError } from "../sdk/errors.ts";
import type { JsonObject } from "../sdk/json.ts";
import { RecentMap } from "../sdk/recent_map.ts";
import { buildBundle, configUrl, entryOfFolder } from "./build_bundle.ts";
import { createBundlerProcess } from "./bundler/bundler_process.ts";
import { areUnchangedOnDisk, bundleKey, DiskCache, Freshness, pinKey, scopeOf } from "./bundle_cache.ts";
import { type FetchOptions, FileFetcher } from "./fetch/file_fetcher.ts";
import type { ConnectionOptions } from "../sdk/http/pinned_connections.ts";
import { GraphPrefetcher } from "./fetch/prefetch.ts";
import { checkFile, checkGraph, type IntegrityPins, pinsOf } from "./integrity.ts";
import { displayErrorLocation, linkModule } from "./link.ts";
import { canMount, displayUrl, missingMountError, moduleLabel } from "./module_errors.ts";
import type { Bundler, BundlerClient, LoadContext, LoadedModule, LoadSpec, ModuleBundle } from "./types.ts";

/** Options of {@link createLoader}. */
export interface LoaderOptions extends ConnectionOptions {
  /** Folder of the disk cache, as a URL that ends in a slash; null: memory only. Default null. */
  cache_dir?: URL | null;
  /** Milliseconds that an unpinned graph is fresh if its servers send no `Cache-Control`. Default 60 s. */
  fresh_ms?: number;
  /** Default: esbuild in a child process. */
  bundler?: Bundler;
  /** Default: {@link FileFetcher}. */
  fetcher?: (options: FetchOptions) => Fetcher;
  /** Returns monotonic milliseconds. Default `performance.now`. */
  monotonic?: () => number;
}

/** Fetcher of the files of one graph. */
type Fetcher = Pick<FileFetcher, "fetch" | "fetchIfThere"> & Disposable;

/** Timeout of all requests of one graph. Time without an open request, such as that of bundling, is free. */
const GRAPH_TIMEOUT_MS = 60_000;
/** Sizes of the memory cache and of the disk cache. */
const MAX_MEMORY_BYTES = 64e6;
const MAX_DISK_BYTES = 512e6;
/**
 * Most linked modules in the table. Deno never frees a linked module, so this limits the table, not memory.
 */
const MAX_LINKED = 1024;

/** Creates a loader. Nothing is started or fetched before the first call. */
export function createLoader(options: LoaderOptions = {}): Loader {
  return new Loader(options);
}

/** Loads modules by URL. */
export class Loader {
  readonly #options: LoaderOptions;
  readonly #bundler: Bundler;
  readonly #memory = new RecentMap<ModuleBundle>({
    max_size: MAX_MEMORY_BYTES,
    sizeOf: ({ code }) => code.length,
  });
  readonly #disk: DiskCache | undefined;
  readonly #fresh: Freshness;
  readonly #building = new Map<string, Promise<ModuleBundle>>();
  readonly #linked = new Map<string, Promise<JsonObject>>();
  readonly #lockHashes = new WeakMap<Lock, string>();
  readonly #closing = new AbortController();

  constructor(options: LoaderOptions) {
    this.#options = options;
    this.#bundler = options.bundler ?? createBundlerProcess();
    this.#disk = options.cache_dir ? new DiskCache(options.cache_dir, MAX_DISK_BYTES) : undefined;
    const monotonic = options.monotonic ?? (() => performance.now());
    this.#fresh = new Freshness(options.fresh_ms ?? 60_000, monotonic);
  }

  /** Returns {@link bundle} of a module, which must export `mount` or a default. */
  async prepare(spec: LoadSpec, context: LoadContext): Promise<ModuleBundle> {
    const bundle = await this.bundle(spec, context);
    if (canMount(bundle)) return bundle;
    throw missingMountError(bundle, moduleLabel(spec, context), context.base_url);
  }

  /**
   * Links a prepared bundle into this process: runs its top level, but not its `mount`. All sessions of a
   * namespace share the module, as they share a built-in one.
   * @throws {PreampError} `module_load_failed`; `module_source_denied` if a redirect led from a trusted URL
   * to another one.
   */
  async link(bundle: ModuleBundle, spec: LoadSpec, context: LoadContext): Promise<LoadedModule> {
    const { base_url, policy } = context;
    if (isTrustedInline(bundle.requested, policy) && !isTrustedInline(bundle.url, policy)) {
      const fact = `a redirect leads outside of modules.inline, to ${displayUrl(bundle.url, base_url)}`;
      throw new PreampError("module_source_denied", `Cannot load ${moduleLabel(spec, context)}: ${fact}`);
    }
    const instance = scopeOf(context);
    const key = `${instance} ${bundle.integrity} ${bundle.requested}`;
    let linked = this.#linked.get(key);
    if (!linked) {
      linked = linkModule(bundle, {
        instance: instance.slice(0, 16),
        timeout_s: context.policy.isolation.load_timeout_s,
        name: moduleLabel(spec, context),
        module: spec.module ?? moduleLabel(spec, context),
        ...(base_url === undefined ? {} : { base_url }),
      });
      this.#linked.set(key, linked);
      linked.catch(() => this.#linked.delete(key)); // reported to the callers that wait; the next call tries again
      const [oldest] = this.#linked.keys();
      if (this.#linked.size > MAX_LINKED && oldest !== undefined) this.#linked.delete(oldest);
    }
    const { code: _, ...graph } = bundle;
    const placeOf = this.placeOf(bundle, context);
    return { ...graph, module: await linked, isolation: "inline", placeOf };
  }

  /**
   * Returns a function that finds where an error of a bundle was thrown: `<url>:<line>:<column>` in the
   * author's files.
   */
  placeOf({ files }: ModuleBundle, { base_url }: LoadContext): (error: unknown) => string | undefined {
    return (error) => displayErrorLocation(error, files, base_url);
  }

  /**
   * Returns a module as one file. Executes nothing.
   * @throws {PreampError} `module_source_denied`, `module_fetch_failed`, `module_fetch_timeout`,
   * `module_too_large`, `module_integrity_mismatch`, `module_pin_required`, `module_invalid`,
   * `module_load_failed`.
   */
  async bundle(spec: LoadSpec, context: LoadContext): Promise<ModuleBundle> {
    const name = moduleLabel(spec, context);
    const url = await this.#resolve(spec, context, name);
    const pins = pinsOf(spec, context, name);
    const known = await this.#cached(url, context, pins);
    if (known) {
      checkGraph(known, pins, name);
      return known;
    }
    const trusted = context.origin === "operator" && isTrustedInline(url, context.policy) ||
      isPinnedInline(spec, context.origin);
    const client = { name, owner: context.namespace, trusted };
    const build_key = [scopeOf(context), url, ...pins.integrity, trusted, this.#lockHash(pins.lock)].join(
      " ",
    );
    let building = this.#building.get(build_key);
    if (!building) {
      building = this.#build(url, context, pins, client).finally(() => this.#building.delete(build_key));
      this.#building.set(build_key, building);
    }
    return context.signal ? await untilAborted(context.signal, building) : await building; // shared: it continues
  }

  /** Aborts open work and stops the bundler. */
  async close(): Promise<void> {
    this.#closing.abort(new PreampError("module_load_failed", "Cannot load a module: the server is closing"));
    await this.#bundler.close();
    await Promise.allSettled(this.#building.values());
  }

  /** Resolves a source to a URL that the policy allows. The URL of a folder ends in a slash. */
  async #resolve({ source }: LoadSpec, context: LoadContext, name: string): Promise<string> {
    if (source.kind !== "url") {
      throw new PreampError(
        "module_source_denied",
        `Cannot load ${name}: it has no URL, and without a plan file a path cannot be resolved`,
      );
    }
    const url = new URL(source.url);
    const problem = sourceProblem(url, { as: "entry" }, sourceRules(context.origin, context.policy, url));
    if (problem) {
      throw new PreampError("module_source_denied", `Cannot load ${name}: ${problem.fact}: ${problem.hint}`);
    }
    if (source.folder) return new URL(".", url).href;
    return await isFolder(url) ? `${url.href}/` : source.url;
  }

  /** Returns the cached bundle of a pin, or of an unpinned URL that is still fresh. */
  async #cached(url: string, context: LoadContext, pins: IntegrityPins): Promise<ModuleBundle | undefined> {
    const scope = scopeOf(context);
    const [integrity] = pins.integrity;
    if (integrity === undefined) {
      const key = await this.#fresh.get(`${scope} ${url}`);
      return key === undefined ? undefined : this.#memory.get(key);
    }
    const pin = pinKey(scope, url, integrity);
    const remembered = this.#memory.get(pin);
    if (remembered) return await areUnchangedOnDisk(remembered.files) ? remembered : undefined;
    const key = await this.#disk?.getPin(pin);
    const stored = key === undefined ? undefined : await this.#disk?.get(key);
    if (stored?.integrity !== integrity || stored.requested !== url) return undefined;
    if (!await areUnchangedOnDisk(stored.files)) return undefined;
    this.#memory.set(pin, stored);
    return stored;
  }

  /** Returns the last bundle of a URL, fresh or not. */
  async #previous(scope: string, url: string): Promise<ModuleBundle | undefined> {
    const key = this.#fresh.last(`${scope} ${url}`) ?? await this.#disk?.getPin(pinKey(scope, url, ""));
    return key === undefined ? undefined : this.#memory.get(key) ?? await this.#disk?.get(key);
  }

  /** Fetches, verifies and bundles a module, and caches the bundle. Ends when the loader is closed. */
  async #build(
    url: string,
    context: LoadContext,
    pins: IntegrityPins,
    client: BundlerClient,
  ): Promise<ModuleBundle> {
    const { name } = client;
    const timeout = new RequestTimeout(GRAPH_TIMEOUT_MS, `Cannot load ${name}: timed out fetching its files`);
    const signal = AbortSignal.any([this.#closing.signal, timeout.signal]);
    const scope = scopeOf(context);
    const before = await this.#previous(scope, url);
    if (!before) this.#bundler.prepare?.();
    using fetcher = this.#fetcher(url, context, signal, name);
    const { esm_host } = context.policy.modules;
    const graph = new GraphPrefetcher({
      fetcher: { fetch: (...request) => timeout.during(fetcher.fetch(...request)) },
      limits: context.policy.limits,
      check: ({ url, sha256, bytes }) => checkFile({ url, sha256, bytes: bytes.length }, pins),
      imports: (file, max) => this.#bundler.imports(file, { max, esm_host }, client),
      name,
    });
    const { entry, config, decides } = url.endsWith("/")
      ? await timeout.during(entryOfFolder(url, fetcher, context.base_url))
      : { entry: { url }, config: null, decides: false };
    if (config && decides) graph.add(config);
    await graph.fetch([entry, ...before?.requests ?? []], before !== undefined);
    let key = "";
    const { bundle, is_new } = await buildBundle({
      requested: url,
      entry: entry.url,
      graph,
      bundler: this.#bundler,
      client,
      context,
      signal,
      known: async (entry) => {
        key = bundleKey(scope, url, entry, graph);
        return this.#memory.get(key) ?? await this.#disk?.get(key);
      },
    });
    if (is_new) await this.#disk?.set(key, bundle);
    checkGraph(bundle, pins, name);
    this.#memory.set(key, bundle);
    this.#memory.set(pinKey(scope, url, bundle.integrity), bundle);
    const files = bundle.files.flatMap((file) => graph.files.get(file.url) ?? []);
    if (config && !decides) files.push(config);
    const absent = url.endsWith("/") && !config ? [configUrl(url)] : [];
    this.#fresh.set(`${scope} ${url}`, key, files, absent);
    await this.#disk?.setPin(pinKey(scope, url, bundle.integrity), key);
    await this.#disk?.setPin(pinKey(scope, url, ""), key);
    return bundle;
  }

  #fetcher(url: string, context: LoadContext, signal: AbortSignal, name: string): Fetcher {
    const { limits } = context.policy;
    const { lookup, ca_certs, fetcher = (options) => new FileFetcher(options) } = this.#options;
    let total = 0;
    return fetcher({
      rules: sourceRules(context.origin, context.policy, new URL(url)),
      limits,
      signal,
      count(bytes) {
        total += bytes;
        if (total <= limits.max_graph_bytes) return;
        const fact = `its files have more than ${limits.max_graph_bytes} bytes in total`;
        throw new PreampError("module_too_large", `Cannot load ${name}: ${fact}`);
      },
      ...(lookup ? { lookup } : {}),
      ...(ca_certs ? { ca_certs } : {}),
      ...(context.base_url === undefined ? {} : { base_url: context.base_url }),
    });
  }

  #lockHash(lock: Lock | undefined): string {
    if (!lock) return "";
    let hash = this.#lockHashes.get(lock);
    if (hash === undefined) this.#lockHashes.set(lock, hash = canonicalHash(lock));
    return hash;
  }
}

/** A timeout that counts the time in which at least one request is open. */
class RequestTimeout {
  readonly #late = new AbortController();
  readonly #message: string;
  #left_ms: number;
  #open = 0;
  #opened_at = 0;
  #cancel: (() => void) | undefined;

  constructor(ms: number, message: string) {
    this.#left_ms = ms;
    this.#message = message;
  }

  /** Aborts with `module_fetch_timeout` when the time is over. */
  get signal(): AbortSignal {
    return this.#late.signal;
  }

  async during<T>(request: Promise<T>): Promise<T> {
    if (this.#open++ === 0) {
      this.#opened_at = performance.now();
      this.#cancel = later(
        this.#left_ms,
        () => this.#late.abort(new PreampError("module_fetch_timeout", this.#message)),
      );
    }
    try {
      return await request;
    } finally {
      if (--this.#open === 0) {
        this.#cancel?.();
        this.#left_ms -= performance.now() - this.#opened_at;
      }
    }
  }
}

/** Returns whether a local URL is a folder: its name does not show that. */
async function isFolder(url: URL): Promise<boolean> {
  if (url.protocol !== "file:") return false;
  return await Deno.stat(url).then(({ isDirectory }) => isDirectory, () => false); // reading it reports the error
}
