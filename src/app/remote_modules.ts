/**
 * Loads the modules of one plan that come from URLs. Fetches and bundles them in parallel before the run
 * exists, and links them when the session opens them. No module executes before every module of the plan is
 * verified.
 */
import type { OpenedModule } from "../kernel/host.ts";
import type { Loader } from "../loader/loader.ts";
import type { LoadContext, ModuleBundle } from "../loader/types.ts";
import { errorCode, errorMessage, errorName, PreampError } from "../sdk/errors.ts";
import type { Module, ModuleSpec } from "../sdk/types.ts";
import type { ModuleReporter } from "../runs/ports.ts";
import type { OpenedGuest } from "../sandbox/guest/guest_module.ts";
import type { GuestRequest, GuestSlots } from "../sandbox/sandbox.ts";
import type { Policy } from "../policy/policy.ts";
import { guestLimits, type LazyLoader, type LazySandbox } from "./lazy_loader_and_sandbox.ts";

/** Returns whether a module comes from a URL. */
export function isOfUrl({ source }: ModuleSpec): boolean {
  return source.kind !== "builtin";
}

export interface UrlModulesDeps {
  /** All modules of the plan. */
  specs: readonly ModuleSpec[];
  context: LoadContext;
  /** Policy of the caller. */
  policy: Policy;
  loading: LazyLoader;
  sandboxing: LazySandbox;
  /** Returns the tier of a module. */
  tierOf(spec: ModuleSpec): "inline" | "process";
  /** Returns the effective permissions of a module, at the time of the call, and what the plan asked for. */
  grantOf(spec: ModuleSpec): Pick<GuestRequest, "grant" | "isAsked">;
  /** The folder that the plan's relative paths start at. */
  folder?: string | undefined;
}

/** The modules of one plan that come from URLs. One per session, because guests are counted per session. */
export class UrlModules {
  readonly #specs: readonly ModuleSpec[];
  readonly #options: UrlModulesDeps;
  #bundles: Promise<ReadonlyMap<string, ModuleBundle>> | undefined;
  #slots: GuestSlots | undefined;
  /** Guests that are starting or waiting to be opened, by their paths in the plan. */
  readonly #ahead = new Map<string, Promise<OpenedGuest>>();
  #others_started = false;
  #open_calls = 0;
  #patience: ReturnType<typeof setTimeout> | undefined;

  constructor(options: UrlModulesDeps) {
    this.#specs = options.specs.filter(isOfUrl);
    this.#options = options;
  }

  /**
   * Resolves when every module is fetched, verified and bundled. Executes nothing.
   *
   * @throws {PreampError} the first failure of `Loader.prepare`; the other modules are cancelled.
   */
  async load(): Promise<void> {
    await (this.#bundles ??= this.#prepare());
  }

  /**
   * Links a module in its tier, which runs its top level.
   *
   * @param run Receives the module's warnings and console output.
   * @throws {PreampError} `module_load_failed` if that throws; `overloaded`, `isolation_unavailable`.
   */
  async open(
    spec: ModuleSpec,
    run: ModuleReporter,
  ): Promise<Omit<OpenedModule, "config">> {
    const { context, loading } = this.#options;
    const bundles = await (this.#bundles ??= this.#prepare());
    const loader = await loading.loader();
    const bundle = bundles.get(spec.path) ?? await loader.prepare(spec, context); // a spec that is not in the plan's list
    try {
      return await this.#openBundle(spec, bundle, bundles, run, loader);
    } catch (error) {
      // the code could not run, but its source may say that it is a gate
      throw spec.type === "hook" && bundle.declared?.fields.gates === true ? gateFailure(error) : error;
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
      // mounting validates the module
      return { module: module as unknown as Module, isolation, integrity, placeOf, load_timeout_s };
    }
    const placeOf = loader.placeOf(bundle, context);
    clearTimeout(this.#patience);
    this.#open_calls++;
    try {
      const opening = this.#start(spec, bundle, run);
      this.#startOthers(bundles, run);
      const { module, close } = await opening;
      const end = async () => {
        await Promise.all([close(), this.#dropAhead()]);
      };
      return { module, isolation: tier, integrity: bundle.integrity, placeOf, close: end };
    } catch (error) {
      if (spec.type === "orchestrator" || spec.type === "context") await this.#dropAhead(); // without them there is no session
      throw loadFailure(error, spec, placeOf(error));
    } finally {
      this.#ahead.delete(spec.path);
      if (--this.#open_calls === 0) this.#awaitNext();
    }
  }

  /** Ends the other guests if the session opens none of them, because it has ended. */
  #awaitNext(): void {
    if (this.#ahead.size === 0) return;
    const patience_ms = this.#options.policy.isolation.load_timeout_s * 1000 * (this.#specs.length + 1);
    this.#patience = setTimeout(() => void this.#dropAhead(), patience_ms);
    Deno.unrefTimer(this.#patience);
  }

  /** Starts all guests in parallel when the first one is opened. */
  #startOthers(bundles: ReadonlyMap<string, ModuleBundle>, run: ModuleReporter): void {
    if (this.#others_started) return;
    this.#others_started = true;
    const { tierOf } = this.#options;
    for (const spec of this.#specs) {
      const bundle = bundles.get(spec.path);
      if (tierOf(spec) === "inline" || !bundle) continue;
      this.#start(spec, bundle, run).catch(() => {}); // the error is reported when the guest is opened
    }
  }

  #start(
    spec: ModuleSpec,
    bundle: ModuleBundle,
    run: ModuleReporter,
  ): Promise<OpenedGuest> {
    const { policy, sandboxing, grantOf, folder } = this.#options;
    let opening = this.#ahead.get(spec.path);
    if (opening) return opening;
    opening = sandboxing.sandbox().then((sandbox) => {
      const session = this.#slots ??= sandbox.session(policy.isolation.max_guests_per_session);
      const module = spec.instance_id ?? spec.module;
      return sandbox.open({
        module,
        type: spec.type,
        code: bundle.code,
        uses: bundle.uses,
        ...grantOf(spec),
        folder,
        limits: guestLimits(policy),
        session,
        warn: (code, message) => run.warn(code, message),
        onLog: (level, text) => run.console(level, text, module),
      });
    });
    this.#ahead.set(spec.path, opening);
    return opening;
  }

  /** Ends the guests that the session did not open. */
  async #dropAhead(): Promise<void> {
    clearTimeout(this.#patience);
    const ahead = [...this.#ahead.values()];
    this.#ahead.clear();
    await Promise.all(ahead.map((opening) => opening.then(({ close }) => close(), () => {})));
  }

  async #prepare(): Promise<ReadonlyMap<string, ModuleBundle>> {
    if (this.#specs.length === 0) return new Map();
    const { loading, context: shared, sandboxing, tierOf } = this.#options;
    const loader = await loading.loader();
    // children start while files are fetched
    if (this.#specs.some((spec) => tierOf(spec) === "process")) (await sandboxing.sandbox()).prepare();
    const stop = new AbortController();
    const context = { ...shared, signal: stop.signal };
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

/**
 * Marks a gate that could not be loaded. The session then fails, because it must not run without the gate.
 */
function gateFailure(error: unknown): unknown {
  if (errorCode(error) === undefined) return error;
  const { code, message, facts, details } = error as PreampError; // an error with one of our codes
  return new PreampError(code, message, { cause: error, details, facts: { ...facts, gates: true } });
}

/** Converts an error of a module that was linked in a sandbox to that of one linked in this process. */
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
