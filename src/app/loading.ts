/**
 * The loader of modules by URL, imported when a plan first names one: a server that never loads any pays nothing for it, in
 * time or memory. One loader for runs, `explain` and `lock`, so that they see the same bytes and share one cache.
 */
import type { Loader, LoaderOptions } from "../loader/loader.ts";
import { hostTiers } from "../sandbox/tiers.ts";

/** How the loader is made. */
export interface LoadingOptions {
  /** Folder for bundles, as a URL that ends in a slash; null: memory alone. */
  cache_dir: URL | null;
  /** Default: the loader's own file. */
  load?: () => Promise<{ createLoader(options: LoaderOptions): Loader }>;
}

/** What a bundler may take: a graph of 20 MiB needs about half of it. */
const BUNDLER_LIMITS = { memory_mb: 1_024, cpu_s: 30 };

/** The one loader of a composition. */
export class Loading {
  readonly #options: LoadingOptions;
  #loader: Promise<Loader> | undefined;

  constructor(options: LoadingOptions) {
    this.#options = options;
  }

  /** Resolves to the loader; the first call imports it. */
  loader(): Promise<Loader> {
    return this.#loader ??= this.#make();
  }

  async #make(): Promise<Loader> {
    const { cache_dir, load = () => import("../loader/loader.ts") } = this.#options;
    const { createLoader } = await load();
    if (!hostTiers().process.available) return createLoader({ cache_dir });
    const { bundlerCommand, createBundlerProcess } = await import("../loader/bundler_process.ts");
    const { withLimits } = await import("../sandbox/child_command.ts");
    // a stranger's files can make a bundler take any memory there is (threats T36)
    const command = () => ({ ...bundlerCommand(), ...withLimits(bundlerCommand(), BUNDLER_LIMITS) });
    return createLoader({ cache_dir, bundler: createBundlerProcess({ command }) });
  }

  /** Ends what is being loaded, and the bundler, if there ever was one. */
  async close(): Promise<void> {
    await (await this.#loader)?.close();
  }
}
