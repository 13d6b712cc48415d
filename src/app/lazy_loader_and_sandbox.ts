/**
 * Imports the module loader when a plan first names a module by URL, and the sandbox when the first module
 * is to run outside of this process, to save time and memory. Runs, `explain` and `lock` share one loader,
 * so that they see the same bytes and use one cache.
 */
import type { Loader, LoaderOptions } from "../loader/loader.ts";
import { bundlerProcess } from "../sandbox/process_support.ts";
import { PreampError } from "../sdk/errors.ts";
import type { Policy } from "../policy/policy.ts";
import type { GuestLimits } from "../sandbox/protocol.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { JsonObject } from "../sdk/types.ts";
import type { Metrics } from "../telemetry/metrics.ts";

interface LazyLoaderOptions {
  /** Folder of bundles, as a URL that ends in a slash; null: in memory only. */
  cache_dir: URL | null;
  /** Imports the loader. Default: the loader's own file. */
  load?: () => Promise<{ createLoader(options: LoaderOptions): Loader }>;
}

/** Entry files of child processes that run from source. */
const CHILDREN = [
  "../loader/bundler/bundler_source.js",
  "../sandbox/guest_child.ts",
  "../sandbox/worker_runtime/main.ts",
  "./validation/validator_child.ts",
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

interface LazySandboxDeps {
  /** The server's policy, which limits the number of guests. */
  policy: Policy;
  /** Receives the numbers of guests. Default: nothing does. */
  metrics?: Metrics | null;
  log: (level: "info" | "warning" | "error", event: string, facts: JsonObject) => void;
  /** Imports the sandbox. Default: the sandbox's own file. */
  load?: () => Promise<{ Sandbox: new (...args: ConstructorParameters<typeof Sandbox>) => Sandbox }>;
}

/** Creates one sandbox on first use. */
export class LazySandbox {
  readonly #options: LazySandboxDeps;
  #sandbox: Promise<Sandbox> | undefined;

  constructor(options: LazySandboxDeps) {
    this.#options = options;
  }

  /** Resolves to the sandbox. The first call imports it. */
  sandbox(): Promise<Sandbox> {
    return this.#sandbox ??= this.#make().catch((error) => {
      this.#sandbox = undefined; // the next call tries again
      throw error;
    });
  }

  async #make(): Promise<Sandbox> {
    const { policy, metrics, log, load = () => import("../sandbox/sandbox.ts") } = this.#options;
    const { Sandbox } = await load();
    const { max_guests } = policy.isolation;
    const made = new Sandbox({
      max_guests,
      usual: guestLimits(policy),
      onExit: (cause) => metrics?.record("preamp_guests_ended_total", { cause }),
      log: (level, event, facts) => log(level, event, facts),
    });
    metrics?.watch("preamp_guests", () => [{ labels: {}, value: made.guests }]);
    return made;
  }

  /** Ends the warm guests, if there are any. */
  async close(): Promise<void> {
    await (await this.#sandbox)?.close();
  }
}

/** Returns the limits of guests under a policy. */
export function guestLimits({ isolation, limits }: Pick<Policy, "isolation" | "limits">): GuestLimits {
  const { memory_mb, cpu_s, load_timeout_s } = isolation;
  const { max_tool_output_bytes, max_tool_image_bytes } = limits;
  const { hook_timeout_s, max_answer_tool_calls, max_answer_blocks } = limits;
  return {
    memory_mb,
    cpu_s,
    load_timeout_s,
    max_tool_output_bytes,
    max_tool_image_bytes,
    call_timeout_s: hook_timeout_s,
    max_answer_tool_calls,
    max_answer_blocks,
  };
}
