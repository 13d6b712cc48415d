/**
 * Imports the module loader when a plan first names a module by URL, to save time and memory. Runs,
 * `explain` and `lock` share one loader, so that they see the same bytes and use one cache.
 */
import type { Loader, LoaderOptions } from "../loader/loader.ts";
import { bundlerProcess } from "../sandbox/tiers/isolation_tiers.ts";
import { PreampError } from "../sdk/errors.ts";

/** Options of `LazyLoader`. */
export interface LazyLoaderOptions {
  /** Folder of bundles, as a URL that ends in a slash; null: in memory only. */
  cache_dir: URL | null;
  /** Imports the loader. Default: the loader's own file. */
  load?: () => Promise<{ createLoader(options: LoaderOptions): Loader }>;
}

/** Entry files of child processes that run from source. */
const CHILDREN = [
  "../loader/bundler/bundler_source.js",
  "../sandbox/child/child_main.ts",
  "../sandbox/worker_runtime/main.ts",
  "./validation/child_main.ts",
];

/**
 * Puts the code of child processes into Deno's cache if this program runs from the network. Child processes
 * may load cached files only, and Deno has cached only this process's imports.
 */
async function cacheChildren(): Promise<void> {
  const files = CHILDREN.map((file) => new URL(file, import.meta.url).href);
  const args = ["cache", "--quiet", "--no-lock", ...files];
  const { success, stderr } = await new Deno.Command(Deno.execPath(), { args, stdout: "null" }).output();
  if (success) return;
  const reason = new TextDecoder().decode(stderr).slice(0, 1000);
  throw new PreampError(
    "isolation_unavailable",
    "Cannot load modules: deno cache could not fetch the code of sandboxes; see the log of the process",
    { cause: new Error(reason) },
  );
}

/** Creates one loader on first use. */
export class LazyLoader {
  readonly #options: LazyLoaderOptions;
  #loader: Promise<Loader> | undefined;

  constructor(options: LazyLoaderOptions) {
    this.#options = options;
  }

  /** Resolves to the loader. The first call imports it. */
  loader(): Promise<Loader> {
    return this.#loader ??= this.#make().catch((error) => {
      this.#loader = undefined; // the next call tries again
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
    if (!Deno.build.standalone && !import.meta.url.startsWith("file:")) await cacheChildren();
    return createLoader({ cache_dir });
  }

  /** Stops loading, and ends the bundler if it was started. */
  async close(): Promise<void> {
    await (await this.#loader)?.close();
  }
}
