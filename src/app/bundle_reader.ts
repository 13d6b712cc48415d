/**
 * Reads the files of bundles for an import: on this machine below their root, with links followed; on the web
 * by the rules of modules: addresses, redirects, limits, lock.
 */
import type { FileReader } from "../bundle/files.ts";
import type { Root } from "../bundle/places.ts";
import type { FileFetcher } from "../loader/fetch/file_fetcher.ts";
import { displayUrl } from "../loader/module_errors.ts";
import { type Lock, LockLookup } from "../plan/lock.ts";
import type { Policy } from "../policy/policy.ts";
import { sourceRules } from "../policy/source_rules.ts";
import { PreampError } from "../sdk/errors.ts";
import { isWithinFolder } from "../sdk/paths.ts";
import type { ConnectionOptions } from "../sdk/http/pinned_connections.ts";

/** A file of another host, as a lock has it. */
export interface FetchedFileFacts {
  readonly url: string;
  readonly sha256: string;
  readonly bytes: number;
}

/** Options of {@link BundleReader}. */
export interface BundleReaderOptions extends ConnectionOptions {
  readonly policy: Policy;
  /** URL of the imported bundle: an operator names its host by it. */
  readonly entry: string;
  /** Lock that fetched files must agree with. Default: none. */
  readonly lock?: Lock | undefined;
  /** Whether a fetched file must be in the lock. */
  readonly frozen: boolean;
  /** URL of the plan's file, for messages. */
  readonly base_url?: string | undefined;
}

/** Longest time of one import's requests. */
const FETCH_TIMEOUT_MS = 60_000;

/** Reads local and fetched files. */
export class BundleReader implements FileReader, AsyncDisposable {
  readonly #options: BundleReaderOptions;
  readonly #real_roots = new Map<string, Promise<string>>();
  readonly #fetched: FetchedFileFacts[] = [];
  #fetcher: Promise<FileFetcher> | undefined;
  #bytes = 0;

  constructor(options: BundleReaderOptions) {
    this.#options = options;
  }

  /** Files of other hosts that were read. */
  get fetched(): readonly FetchedFileFacts[] {
    return this.#fetched;
  }

  async read(url: string, root: Root, max_bytes: number): Promise<Uint8Array | null> {
    return url.startsWith("file:")
      ? await this.#readLocal(url, root, max_bytes)
      : await this.#fetch(url, max_bytes);
  }

  async list(url: string, root: Root): Promise<string[] | null> {
    if (!url.startsWith("file:")) return null;
    const path = await this.#realPath(url, root);
    if (path === null) return null;
    try {
      const names: string[] = [];
      for await (const { name, isDirectory } of Deno.readDir(path)) {
        names.push(isDirectory ? `${name}/` : name);
      }
      return names;
    } catch (error) {
      if (error instanceof Deno.errors.NotADirectory || error instanceof Deno.errors.NotFound) return null;
      throw unreadable(url, error);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    (await this.#fetcher)?.[Symbol.dispose]();
  }

  async #readLocal(url: string, root: Root, max_bytes: number): Promise<Uint8Array | null> {
    const path = await this.#realPath(url, root);
    if (path === null) return null;
    try {
      const { isDirectory, isFile, size } = await Deno.stat(path);
      if (isDirectory) return null;
      if (!isFile) {
        throw new PreampError("plan_invalid", `Cannot import ${nameOf(url)}: it is not a regular file`);
      }
      if (size > max_bytes) throw tooLarge(nameOf(url), max_bytes);
      return await Deno.readFile(path);
    } catch (error) {
      throw error instanceof PreampError ? error : unreadable(url, error);
    }
  }

  /** Resolves to the path of a file with its links followed; null if it does not exist. */
  async #realPath(url: string, root: Root): Promise<string | null> {
    let path: string;
    try {
      path = await Deno.realPath(new URL(url));
    } catch (error) {
      const { NotFound, NotADirectory } = Deno.errors;
      if (error instanceof NotFound || error instanceof NotADirectory) return null;
      throw unreadable(url, error);
    }
    const real_root = await this.#realRoot(root);
    if (isWithinFolder(real_root, path)) return path;
    throw new PreampError(
      "plan_invalid",
      `Cannot import ${
        nameOf(url)
      }: it is a link out of the bundle's folder, which is not followed: copy the file into it`,
    );
  }

  #realRoot({ url }: Root): Promise<string> {
    let real = this.#real_roots.get(url);
    if (!real) this.#real_roots.set(url, real = Deno.realPath(new URL(url)));
    return real;
  }

  async #fetch(url: string, max_bytes: number): Promise<Uint8Array | null> {
    this.#fetcher ??= this.#createFetcher(max_bytes);
    const file = await (await this.#fetcher).fetchText(url, {
      as: url === this.#options.entry ? "entry" : "import",
    });
    if (file === null) return null;
    const facts = {
      url: file.url,
      sha256: file.sha256,
      bytes: file.bytes.length,
    };
    this.#checkLock(facts);
    this.#fetched.push(facts);
    return file.bytes;
  }

  async #createFetcher(max_bytes: number): Promise<FileFetcher> {
    const { FileFetcher } = await import("../loader/fetch/file_fetcher.ts");
    const { policy, entry, lookup, ca_certs, base_url } = this.#options;
    const { limits } = policy;
    return new FileFetcher({
      rules: sourceRules("operator", policy, new URL(entry)),
      limits: { ...limits, max_module_bytes: Math.min(limits.max_module_bytes, max_bytes) },
      signal: AbortSignal.timeout(FETCH_TIMEOUT_MS),
      count: (bytes) => {
        this.#bytes += bytes;
        if (this.#bytes > limits.max_graph_bytes) {
          throw new PreampError(
            "module_too_large",
            `Cannot import a bundle: its fetched files have more than ${limits.max_graph_bytes} bytes`,
          );
        }
      },
      ...(lookup ? { lookup } : {}),
      ...(ca_certs ? { ca_certs } : {}),
      ...(base_url === undefined ? {} : { base_url }),
    });
  }

  #checkLock({ url, sha256 }: FetchedFileFacts): void {
    const { lock, frozen, base_url } = this.#options;
    const locked = lock ? LockLookup.of(lock, base_url).filesAt(url) : [];
    const other = locked.find((file) => file.sha256 !== sha256);
    if (other) {
      throw new PreampError(
        "module_integrity_mismatch",
        `Cannot import ${
          displayUrl(url, base_url)
        }: its bytes are not those of the lock: expected sha256 ${other.sha256}: received ${sha256}; if you accept the change, add --update`,
      );
    }
    if (frozen && locked.length === 0) {
      throw new PreampError(
        "module_pin_required",
        `Cannot import ${
          displayUrl(url, base_url)
        }: every fetched file must be in the lock, and it is not: import it once without --frozen`,
      );
    }
  }
}

function nameOf(url: string): string {
  return JSON.stringify(decodeURIComponent(new URL(url).pathname));
}

function tooLarge(name: string, max_bytes: number): PreampError {
  return new PreampError("plan_limit_exceeded", `Cannot import ${name}: it has more than ${max_bytes} bytes`);
}

function unreadable(url: string, cause: unknown): PreampError {
  return new PreampError("plan_invalid", `Cannot import ${nameOf(url)}: this process may not read it`, {
    cause,
  });
}
