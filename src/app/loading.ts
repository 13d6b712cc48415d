/**
 * The loader of modules by URL, imported when a plan first names one: a server that never loads any pays nothing for it, in
 * time or memory. One loader for runs, `explain` and `lock`, so that they see the same bytes and share one cache.
 */
import type { Loader, LoaderOptions } from "../loader/loader.ts";

/** How the loader is made. */
export interface LoadingOptions {
  /** Folder for bundles, as a URL that ends in a slash; null: memory alone. */
  cache_dir: URL | null;
  /** Default: the loader's own file. */
  load?: () => Promise<{ createLoader(options: LoaderOptions): Loader }>;
}

/** The one loader of a composition. */
export class Loading {
  readonly #options: LoadingOptions;
  #loader: Promise<Loader> | undefined;

  constructor(options: LoadingOptions) {
    this.#options = options;
  }

  /** Resolves to the loader; the first call imports it. */
  loader(): Promise<Loader> {
    const { cache_dir, load = () => import("../loader/loader.ts") } = this.#options;
    return this.#loader ??= load().then(({ createLoader }) => createLoader({ cache_dir }));
  }

  /** Ends what is being loaded, and the bundler, if there ever was one. */
  async close(): Promise<void> {
    await (await this.#loader)?.close();
  }
}
