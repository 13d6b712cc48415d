/**
 * Creates the plan and run services over a store. Imported on the first request that needs them, so that
 * the server starts without.
 */
import type { Policy } from "../policy/policy.ts";
import { processRedactor, Redactor } from "../policy/redact.ts";
import { newId } from "../sdk/ids.ts";
import { RunService } from "../runs/service.ts";
import type { HostClock } from "../kernel/host.ts";
import type { JsonObject } from "../sdk/types.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { runObservers } from "../telemetry/run_observers.ts";
import type { Tracing } from "../telemetry/tracing.ts";
import type { Store } from "../store/store.ts";
import { folderOf } from "./plan_folders.ts";
import { LazyLoader, LazySandbox } from "./lazy_loader_and_sandbox.ts";
import type { ModuleTable } from "./module_table.ts";
import { NamedPlans, personalPlans } from "./named_plans.ts";
import { Plans } from "./plan_service.ts";
import { SourceOverrides, type SourcesFile } from "./source_overrides.ts";

export interface ServiceDeps {
  policy: Policy;
  modules: ModuleTable;
  basePath: string;
  clock: HostClock;
  store: Store;
  recovers: boolean;
  plans: NamedPlans | URL | null;
  home: URL | null;
  workspace: URL | null;
  sources: readonly SourcesFile[];
  env: (name: string) => string | undefined;
  secrets: readonly string[] | Redactor;
  metrics: Metrics | null;
  tracing: Tracing | null;
  log: (level: "info" | "warning" | "error", event: string, facts: JsonObject) => void;
}

export interface Services {
  plans: Plans;
  modules: ModuleTable;
  loading: LazyLoader;
  sandboxing: LazySandbox;
  runs: RunService;
  /** Knows the secrets of the process. */
  redactor: Redactor;
  /** Ends runs, then the loader and the sandbox. */
  close(): Promise<void>;
}

function namedPlans(plans: ServiceDeps["plans"]): NamedPlans {
  return plans instanceof NamedPlans ? plans : new NamedPlans(plans ? [{ url: plans }] : []);
}

const loadFiles = async () => (await import("./changed_files.ts")).changedFiles;

export function createServices(
  { policy, modules, basePath, clock, store, env, secrets, metrics, tracing, ...rest }: ServiceDeps,
): Services {
  const redactor = secrets instanceof Redactor ? secrets : processRedactor(secrets, env);
  const log: ServiceDeps["log"] = (level, event, facts) =>
    rest.log(level, event, redactor.redactValues(facts));
  const loading = new LazyLoader({ cache_dir: rest.home && new URL("cache/", rest.home) });
  const sandboxing = new LazySandbox({ policy, metrics, log });
  const workspace = folderOf(rest.workspace?.href);
  const plans = new Plans({
    ...(workspace === undefined ? {} : { workspace }),
    policy,
    named: namedPlans(rest.plans),
    modules,
    env,
    loading,
    sandboxing,
    saved: rest.home && personalPlans(rest.home).url,
    sources: new SourceOverrides(rest.sources, policy.modules.esm_host),
  });
  const secret_key = env("PREAMP_SECRET_KEY") || undefined;
  if (secret_key !== undefined) redactor.register(secret_key);
  const observe = runObservers(metrics, tracing, log);
  const runs = new RunService({
    store,
    basePath,
    clock,
    limitsOf: (caller) => plans.limitsOf(caller),
    newId,
    ready: (...input) => plans.ready(...input),
    secrets: () => redactor.child(),
    secret_key,
    files: {
      stateOf: async (path) => await (await loadFiles()).stateOf(path),
      putBack: async (change) => await (await loadFiles()).putBack(change),
    },
    ...(observe ? { observe } : {}),
    recovers: rest.recovers,
    log,
  });
  if (store.kind !== "memory") runs.shareStore(); // a memory store ends with its process
  return {
    plans,
    modules,
    loading,
    sandboxing,
    runs,
    redactor,
    async close() {
      await runs.close();
      await Promise.all([loading.close(), sandboxing.close()]);
    },
  };
}
