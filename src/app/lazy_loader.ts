/**
 * The loader of modules by URL, imported when a plan first names one: a server that never loads any pays nothing for it, in
 * time or memory. One loader for runs, `explain` and `lock`, so that they see the same bytes and share one cache.
 */
import type { Loader, LoaderOptions } from "../loader/loader.ts";
import { bundlerProcess, hostTiers } from "../sandbox/tiers/isolation_tiers.ts";
import { PreampError } from "../sdk/errors.ts";

/** How the loader is made. */
export interface LoadingOptions {
  /** Folder for bundles, as a URL that ends in a slash; null: memory alone. */
  cache_dir: URL | null;
  /** Default: the loader's own file. */
  load?: () => Promise<{ createLoader(options: LoaderOptions): Loader }>;
}

/** What a bundler may take: a graph of 20 MiB needs about half of it. */
const BUNDLER_LIMITS = { memory_mb: 1_024, cpu_s: 30 };

/** First files of children that run from source. */
const CHILDREN = [
  "../loader/bundler/bundler_source.js",
  "../sandbox/child/child_main.ts",
  "../sandbox/worker_runtime/main.ts",
];

/**
 * Puts the code of children into Deno's cache when this program came over the network: children may load cached files alone, and
 * Deno has cached only what this process imports.
 */
async function cacheChildren(): Promise<void> {
  const files = CHILDREN.map((file) => new URL(file, import.meta.url).href);
  const args = ["cache", "--quiet", "--no-lock", ...files];
  const { success, stderr } = await new Deno.Command(Deno.execPath(), { args, stdout: "null" }).output();
  if (success) return;
  const reason = new TextDecoder().decode(stderr).slice(0, 1000);
  throw new PreampError(
    "isolation_unavailable",
    "Cannot load modules: deno cache could not fetch the code that sandboxes run: see the log of the process",
    { cause: new Error(reason) },
  );
}

/** The one loader of a composition. */
export class LazyLoader {
  readonly #options: LoadingOptions;
  #loader: Promise<Loader> | undefined;

  constructor(options: LoadingOptions) {
    this.#options = options;
  }

  /** Resolves to the loader; the first call imports it. */
  loader(): Promise<Loader> {
    return this.#loader ??= this.#make().catch((error) => {
      this.#loader = undefined; // it could not be made: the next call tries again
      throw error;
    });
  }

  async #make(): Promise<Loader> {
    const { cache_dir, load = () => import("../loader/loader.ts") } = this.#options;
    const { createLoader } = await load();
    const own = bundlerProcess();
    if (!own.available) {
      const { createInProcessBundler } = await import("../loader/bundler/bundler_in_process.ts");
      return createLoader({ cache_dir, bundler: createInProcessBundler(own.reason) });
    }
    if (!hostTiers().process.available) return createLoader({ cache_dir });
    if (!Deno.build.standalone && !import.meta.url.startsWith("file:")) await cacheChildren();
    const { bundlerCommand, createBundlerProcess } = await import("../loader/bundler/bundler_process.ts");
    const { withLimits } = await import("../sandbox/tiers/child_command.ts");
    // a stranger's files can make a bundler take any memory there is (threats T36)
    const command = () => ({ ...bundlerCommand(), ...withLimits(bundlerCommand(), BUNDLER_LIMITS) });
    return createLoader({ cache_dir, bundler: createBundlerProcess({ command }) });
  }

  /** Ends what is being loaded, and the bundler, if there ever was one. */
  async close(): Promise<void> {
    await (await this.#loader)?.close();
  }
}
