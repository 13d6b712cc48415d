/**
 * The modules of one plan that come from URLs: fetched and bundled side by side before the run exists, linked when the session
 * opens them. Nothing of a module runs before every module of the plan is verified (trace.md, section 4, A and B).
 */
import type { OpenedModule } from "../kernel/host.ts";
import type { Loader } from "../loader/loader.ts";
import type { LoadContext, ModuleBundle } from "../loader/types.ts";
import { errorCode, errorMessage, errorName, PreampError } from "../sdk/errors.ts";
import type { Module, ModuleSpec } from "../sdk/types.ts";
import type { ModuleReporter } from "../runs/ports.ts";
import type { GuestGrant } from "../sandbox/tiers/worker_permissions.ts";
import type { OpenedGuest } from "../sandbox/guest/guest_module.ts";
import type { GuestSlots } from "../sandbox/tiers/guest_semaphore.ts";
import type { Policy } from "../policy/policy.ts";
import type { LazyLoader } from "./lazy_loader.ts";
import { guestRequest, type LazySandbox } from "./lazy_sandbox.ts";

/** Returns the specs that a loader is needed for. */
export function urlSpecs(specs: readonly ModuleSpec[]): ModuleSpec[] {
  return specs.filter(isOfUrl);
}

/** Whether a module is not compiled in. */
export function isOfUrl({ source }: ModuleSpec): boolean {
  return source.kind !== "builtin";
}

/** What the modules of a plan are made ready with. */
export interface UrlModulesOptions {
  /** Of the whole plan. */
  specs: readonly ModuleSpec[];
  context: LoadContext;
  /** The policy that holds for whoever asks. */
  policy: Policy;
  loading: LazyLoader;
  sandboxing: LazySandbox;
  /** Where a module runs. */
  tierOf(spec: ModuleSpec): "inline" | "worker" | "process";
  /** What a module may do where it runs, as files and permissions are now. */
  grantOf(spec: ModuleSpec): Readonly<Partial<GuestGrant>>;
}

/** What a plan's modules are made of, as far as they are not compiled in. One per session: its guests are counted together. */
export class UrlModules {
  readonly #specs: readonly ModuleSpec[];
  readonly #options: UrlModulesOptions;
  #bundles: Promise<ReadonlyMap<string, ModuleBundle>> | undefined;
  #slots: GuestSlots | undefined;
  /** Guests that start, or wait to be opened, by their places in the plan. */
  readonly #ahead = new Map<string, Promise<OpenedGuest>>();
  #others_started = false;
  #patience: ReturnType<typeof setTimeout> | undefined;

  constructor(options: UrlModulesOptions) {
    this.#specs = urlSpecs(options.specs);
    this.#options = options;
  }

  /**
   * Resolves when every module is there, verified and bundled; executes nothing.
   * @throws {PreampError} The first failure, as `Loader.prepare` tells it; nobody waits for the others then.
   */
  async load(): Promise<void> {
    await this.#load();
  }

  /**
   * Links a module where it is to run: its top level runs there.
   * @param run What the run is told of the module.
   * @throws {PreampError} `module_load_failed` when that throws; `overloaded`, `isolation_unavailable`.
   */
  async open(
    spec: ModuleSpec,
    run: ModuleReporter,
  ): Promise<Omit<OpenedModule, "config">> {
    const { context, loading } = this.#options;
    const bundles = await this.#load();
    const loader = await loading.loader();
    const bundle = bundles.get(spec.path) ?? await loader.prepare(spec, context); // a spec that the plan did not list
    try {
      return await this.#openBundle(spec, bundle, bundles, run, loader);
    } catch (error) {
      throw spec.type === "hook" && saysItGates(bundle) ? gateFailure(error) : error;
    }
  }

  async #openBundle(
    spec: ModuleSpec,
    bundle: ModuleBundle,
    bundles: ReadonlyMap<string, ModuleBundle>,
    run: ModuleReporter,
    loader: Loader,
  ): Promise<Omit<OpenedModule, "config">> {
    const { context, policy, tierOf } = this.#options;
    const { load_timeout_s } = policy.isolation;
    const tier = tierOf(spec);
    if (tier === "inline") {
      const { module, isolation, integrity, placeOf } = await loader.link(bundle, spec, context);
      // the mount checks what the module is
      return { module: module as unknown as Module, isolation, integrity, placeOf, load_timeout_s };
    }
    const placeOf = loader.placeOf(bundle, context);
    try {
      const opening = this.#start(spec, bundle, tier, run);
      this.#startOthers(bundles, run);
      const { module, close } = await opening;
      const end = async () => {
        await Promise.all([close(), this.#dropAhead()]);
      };
      return { module, isolation: tier, integrity: bundle.integrity, placeOf, close: end };
    } catch (error) {
      if (spec.type === "orchestrator" || spec.type === "context") await this.#dropAhead(); // there will be no session
      throw loadFailure(error, spec, placeOf(error));
    } finally {
      this.#ahead.delete(spec.path);
    }
  }

  /** Guests start side by side, with the first that is asked for. */
  #startOthers(bundles: ReadonlyMap<string, ModuleBundle>, run: ModuleReporter): void {
    if (this.#others_started) return;
    this.#others_started = true;
    const { tierOf, policy } = this.#options;
    for (const spec of this.#specs) {
      const tier = tierOf(spec);
      const bundle = bundles.get(spec.path);
      if (tier === "inline" || !bundle) continue;
      this.#start(spec, bundle, tier, run).catch(() => {}); // told when it is opened
    }
    // a session that ends before it has opened any of its guests ends none of them
    const patience_ms = policy.isolation.load_timeout_s * 1000 * (this.#specs.length + 1);
    this.#patience = setTimeout(() => void this.#dropAhead(), patience_ms);
    Deno.unrefTimer(this.#patience);
  }

  #start(
    spec: ModuleSpec,
    bundle: ModuleBundle,
    tier: "worker" | "process",
    run: ModuleReporter,
  ): Promise<OpenedGuest> {
    const { policy, sandboxing, grantOf } = this.#options;
    let opening = this.#ahead.get(spec.path);
    if (opening) return opening;
    opening = sandboxing.sandbox().then((sandbox) => {
      const session = this.#slots ??= sandbox.session(policy.isolation.max_guests_per_session);
      return sandbox.open(guestRequest({ spec, bundle, tier, grant: grantOf(spec), session, policy, run }));
    });
    this.#ahead.set(spec.path, opening);
    return opening;
  }

  /** Ends the guests that nobody opened: the session came to its end before. */
  async #dropAhead(): Promise<void> {
    clearTimeout(this.#patience);
    const ahead = [...this.#ahead.values()];
    this.#ahead.clear();
    await Promise.all(ahead.map((opening) => opening.then(({ close }) => close(), () => {})));
  }

  #load(): Promise<ReadonlyMap<string, ModuleBundle>> {
    return this.#bundles ??= this.#prepare();
  }

  async #prepare(): Promise<ReadonlyMap<string, ModuleBundle>> {
    if (this.#specs.length === 0) return new Map();
    const { loading, context: given, sandboxing, tierOf } = this.#options;
    const loader = await loading.loader();
    // children start while files are fetched
    if (this.#specs.some((spec) => tierOf(spec) === "process")) (await sandboxing.sandbox()).prepare();
    const stop = new AbortController();
    const context = { ...given, signal: stop.signal };
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

/** Whether a module whose code could not run says in its source that it decides what may happen. */
function saysItGates({ declared }: ModuleBundle): boolean {
  return declared?.fields.gates === true;
}

/** A gate that could not be loaded, told so to the session, which fails without it. */
function gateFailure(error: unknown): unknown {
  if (errorCode(error) === undefined) return error;
  const { code, message, facts, details } = error as PreampError; // ours, by its code
  return new PreampError(code, message, { cause: error, details, facts: { ...facts, gates: true } });
}

/** What a module threw while it was linked elsewhere, told as for one that is linked here. */
function loadFailure(error: unknown, { module }: ModuleSpec, at: string | undefined): unknown {
  const code = errorCode(error);
  if (code === "overloaded" || code === "isolation_unavailable") return error;
  const fact = code === undefined ? `${errorName(error)}: ${errorMessage(error)}` : errorMessage(error);
  const place = at === undefined ? "" : `${at}: `;
  return new PreampError(
    "module_load_failed",
    `Cannot load module "${module}": ${place}${fact.slice(0, 1000)}`,
    {
      cause: error,
      ...(at === undefined ? {} : { facts: { at } }),
    },
  );
}
