/**
 * The files of one graph, fetched side by side: the entry, what it imported before or seems to import, and what the bundler
 * asks for. Keeps the
 * limits of the whole; a file that cannot be had is remembered, not thrown, until it is known that it is needed.
 */
import type { SourceUse } from "../../policy/source_rules.ts";
import { PreampError } from "../../sdk/errors.ts";
import type { FileFetcher } from "./file_fetcher.ts";
import { kindOfUrl, mayImport } from "./media_type.ts";
import type { FetchedFile, GraphRequest, LoaderPolicy } from "../types.ts";

/** Requests of one graph at once. */
const PARALLEL = 16;

/** What a graph is fetched with. */
export interface PrefetchOptions {
  fetcher: Pick<FileFetcher, "fetch">;
  limits: Pick<LoaderPolicy["limits"], "max_graph_files">;
  /** Called with each file before it is used; throws to stop it all. */
  check(file: FetchedFile): void;
  /** Resolves to the URLs that a file seems to import, at most `max`. */
  imports(file: FetchedFile, max: number): Promise<readonly string[]>;
  /** What messages call the module. */
  name: string;
}

/** One graph while it is fetched. */
export class GraphPrefetcher {
  /** By URL after redirects. */
  readonly files = new Map<string, FetchedFile>();
  /** Requested URL → URL after redirects. */
  readonly redirects = new Map<string, string>();
  /** By requested URL. */
  readonly failed = new Map<string, PreampError>();
  /** Files that no other file imports, and that are a part of the graph all the same. */
  readonly added: FetchedFile[] = [];
  /** In the order in which they were asked for. */
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
   * Fetches URLs, and what they seem to import unless `alone` is true.
   * @throws {PreampError} when a limit of the graph is passed, or `check` refuses a file.
   */
  async fetch(wanted: readonly GraphRequest[], alone: boolean = false): Promise<void> {
    this.#settled = Promise.withResolvers<void>();
    this.#skip_imports = alone;
    for (const request of wanted) this.#enqueue(request);
    this.#startQueued();
    await this.#settled.promise;
  }

  /** Adds a file that belongs to the graph and that no file imports: the `deno.json` that says what the entry is. */
  add(file: FetchedFile): void {
    this.#options.check(file);
    this.files.set(file.url, file);
    this.added.push(file);
  }

  #enqueue(request: GraphRequest): void {
    const { url } = request;
    if (this.#failure || this.#requested.has(url) || this.files.has(url)) return;
    if (this.#requested.size >= this.#options.limits.max_graph_files) {
      return this.#fail(
        new PreampError(
          "module_too_large",
          `Cannot load ${this.#options.name}: a module may have ${this.#options.limits.max_graph_files} files: received more`,
        ),
      );
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
