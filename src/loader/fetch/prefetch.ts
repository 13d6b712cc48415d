/**
 * Fetches the files of one graph in parallel: the entry, files that it imported before or appears to import,
 * and files that the bundler requests. Enforces the limits of the graph. An error of a file is stored, and
 * reported only if the bundler needs the file.
 */
import type { SourceUse } from "../../policy/source_rules.ts";
import { PreampError } from "../../sdk/errors.ts";
import type { FileFetcher } from "./file_fetcher.ts";
import { kindOfUrl, mayImport } from "./specifiers.ts";
import type { FetchedFile, GraphRequest, LoaderPolicy } from "../types.ts";

/** Most parallel requests of one graph: as many as a browser sends to one host. */
const PARALLEL = 6;

/** Options of {@link GraphPrefetcher}. */
interface PrefetchOptions {
  fetcher: Pick<FileFetcher, "fetch">;
  limits: Pick<LoaderPolicy["limits"], "max_graph_files">;
  /** Checks each file before it is used; an error stops all requests. */
  check(file: FetchedFile): void;
  /** Resolves to at most `max` URLs that a file appears to import. */
  imports(file: FetchedFile, max: number): Promise<readonly string[]>;
  /** Name of the module in messages. */
  name: string;
}

/** Fetches one graph. */
export class GraphPrefetcher {
  /** Files by URL after redirects. */
  readonly files = new Map<string, FetchedFile>();
  /** Maps requested URLs to URLs after redirects. */
  readonly redirects = new Map<string, string>();
  /** Errors by requested URL. */
  readonly failed = new Map<string, PreampError>();
  /** Files of the graph that no file imports. */
  readonly added: FetchedFile[] = [];
  /** Requests in order. */
  readonly requests: GraphRequest[] = [];
  readonly #options: PrefetchOptions;
  readonly #requested = new Set<string>();
  readonly #queue: (() => Promise<void>)[] = [];
  #running = 0;
  #skip_imports = false;
  #failure: { error: unknown } | undefined;
  #settled = Promise.withResolvers<void>();

  constructor(options: PrefetchOptions) {
    this.#options = options;
  }

  /**
   * Fetches URLs, and the files that they appear to import unless `skip_imports` is true.
   * @throws {PreampError} if a limit of the graph is exceeded or `check` rejects a file.
   */
  async fetch(requests: readonly GraphRequest[], skip_imports: boolean = false): Promise<void> {
    this.#settled = Promise.withResolvers<void>();
    this.#skip_imports = skip_imports;
    for (const request of requests) this.#enqueue(request);
    this.#startQueued();
    await this.#settled.promise;
  }

  /** Adds a file that no file imports: the `deno.json` that names the entry. */
  add(file: FetchedFile): void {
    this.#options.check(file);
    this.files.set(file.url, file);
    this.added.push(file);
  }

  #enqueue(request: GraphRequest): void {
    const { url } = request;
    if (this.#failure || this.#requested.has(url) || this.files.has(url)) return;
    const { name, limits: { max_graph_files } } = this.#options;
    if (this.#requested.size >= max_graph_files) {
      const message = `Cannot load ${name}: it has more than ${max_graph_files} files`;
      return this.#fail(new PreampError("module_too_large", message));
    }
    this.#requested.add(url);
    this.requests.push(request);
    this.#queue.push(() => this.#fetch(request));
  }

  #startQueued(): void {
    while (!this.#failure && this.#running < PARALLEL) {
      const run = this.#queue.shift();
      if (!run) break;
      this.#running++;
      run().catch((error) => this.#fail(error)).finally(() => {
        this.#running--;
        this.#startQueued();
      });
    }
    if (this.#failure) this.#settled.reject(this.#failure.error);
    else if (this.#running === 0) this.#settled.resolve();
  }

  async #fetch({ url, from }: GraphRequest): Promise<void> {
    const use: SourceUse = from === undefined ? { as: "entry" } : { as: "import", from: new URL(from) };
    let file: FetchedFile;
    try {
      file = await this.#options.fetcher.fetch(url, use, use.as === "entry" || mayImport(kindOfUrl(url)));
    } catch (error) {
      if (!(error instanceof PreampError) || error.code === "module_too_large") throw error;
      this.failed.set(url, error);
      return;
    }
    if (file.url !== url) this.redirects.set(url, file.url);
    if (this.files.has(file.url)) return;
    this.#options.check(file);
    this.files.set(file.url, file);
    if (this.#skip_imports || !mayImport(kindOfUrl(file.url))) return;
    const { limits, imports } = this.#options;
    for (const imported of await imports(file, limits.max_graph_files + 1)) {
      this.#enqueue({ url: imported, from: file.url });
    }
  }

  #fail(error: unknown): void {
    this.#failure ??= { error };
    this.#queue.length = 0;
    this.#settled.reject(error);
  }
}
