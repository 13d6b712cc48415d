/**
 * The modules of one plan that come from URLs: fetched and bundled side by side before the run exists, linked when the session
 * opens them. Nothing of a module runs before every module of the plan is verified (trace.md, section 4, A and B).
 */
import type { OpenedModule } from "../kernel/host.ts";
import type { LoadContext, ModuleBundle } from "../loader/types.ts";
import type { Module, ModuleSpec } from "../sdk/types.ts";
import type { Loading } from "./loading.ts";

/** Returns the specs that a loader is needed for. */
export function urlSpecs(specs: readonly ModuleSpec[]): ModuleSpec[] {
  return specs.filter(({ source }) => source.kind !== "builtin");
}

/** What a plan's modules are made of, as far as they are not compiled in. */
export class UrlModules {
  readonly #specs: readonly ModuleSpec[];
  readonly #context: LoadContext;
  readonly #loading: Loading;
  #bundles: Promise<ReadonlyMap<string, ModuleBundle>> | undefined;

  /** @param specs Of the whole plan. */
  constructor(specs: readonly ModuleSpec[], context: LoadContext, loading: Loading) {
    this.#specs = urlSpecs(specs);
    this.#context = context;
    this.#loading = loading;
  }

  /**
   * Resolves when every module is there, verified and bundled; executes nothing.
   * @throws {PreampError} The first failure, as `Loader.prepare` tells it; nobody waits for the others then.
   */
  async load(): Promise<void> {
    await this.#load();
  }

  /** Links a module: its top level runs. @throws {PreampError} `module_load_failed` when that throws. */
  async open(spec: ModuleSpec): Promise<Omit<OpenedModule, "config">> {
    const bundles = await this.#load();
    const loader = await this.#loading.loader();
    const bundle = bundles.get(spec.path) ?? await loader.prepare(spec, this.#context); // a spec that the plan did not list
    const { module, isolation, integrity, placeOf } = await loader.link(bundle, spec, this.#context);
    const { load_timeout_s } = this.#context.policy.isolation;
    // the mount checks what the module is
    return { module: module as unknown as Module, isolation, integrity, placeOf, load_timeout_s };
  }

  #load(): Promise<ReadonlyMap<string, ModuleBundle>> {
    return this.#bundles ??= this.#prepare();
  }

  async #prepare(): Promise<ReadonlyMap<string, ModuleBundle>> {
    if (this.#specs.length === 0) return new Map();
    const loader = await this.#loading.loader();
    const stop = new AbortController();
    const context = { ...this.#context, signal: stop.signal };
    try {
      const prepared = this.#specs.map(async (spec) =>
        [spec.path, await loader.prepare(spec, context)] as const
      );
      return new Map(await Promise.all(prepared));
    } catch (error) {
      stop.abort(error);
      throw error;
    }
  }
}
