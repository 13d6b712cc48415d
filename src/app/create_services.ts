/** Plans and runs put together over a store. Loaded when the first request needs it: a server answers before it is. */
import type { Policy } from "../policy/policy.ts";
import { processRedactor, Redactor } from "../policy/redact.ts";
import { newId } from "../process/ids.ts";
import { RunService } from "../runs/service.ts";
import type { Clock, JsonObject } from "../sdk/types.ts";
import type { Store } from "../store/store.ts";
import { LazyLoader } from "./lazy_loader.ts";
import type { ModuleTable } from "./module_table.ts";
import { NamedPlans } from "./named_plans.ts";
import { Plans } from "./plan_service.ts";
import { LazySandbox } from "./lazy_sandbox.ts";
import { SourceOverrides, type SourcesFile } from "./source_overrides.ts";

/** What is put together. */
export interface Parts {
  policy: Policy;
  modules: ModuleTable;
  basePath: string;
  clock: Clock;
  store: Store;
  plans: URL | null;
  home: URL | null;
  sources: readonly SourcesFile[];
  env: (name: string) => string | undefined;
  secrets: readonly string[] | Redactor;
  log: (level: "info" | "warning" | "error", event: string, facts: JsonObject) => void;
}

/** What comes of it. */
export interface Composition {
  plans: Plans;
  modules: ModuleTable;
  loading: LazyLoader;
  sandboxing: LazySandbox;
  runs: RunService;
  /** Ends runs, then what modules are loaded with. */
  close(): Promise<void>;
}

/** Puts plans and runs together. */
export function compose(
  { policy, modules, basePath, clock, store, env, secrets, ...parts }: Parts,
): Composition {
  const redactor = secrets instanceof Redactor ? secrets : processRedactor(secrets);
  const log: Parts["log"] = (level, event, facts) => parts.log(level, event, redactor.redactValues(facts));
  const loading = new LazyLoader({ cache_dir: parts.home && new URL("cache/", parts.home) });
  const sandboxing = new LazySandbox({ policy, log });
  const plans = new Plans({
    policy,
    named: new NamedPlans(parts.plans),
    modules,
    env,
    loading,
    sandboxing,
    sources: new SourceOverrides(parts.sources, policy.modules.esm_host),
  });
  const runs = new RunService({
    store,
    basePath,
    clock,
    limitsOf: (caller) => plans.limitsOf(caller),
    newId,
    ready: (request, caller, base_url) => plans.ready(request, caller, base_url),
    secrets: () => redactor.child(),
    log,
  });
  if (store.kind !== "memory") runs.keepRecovering(); // what is kept in memory ends with its process
  return {
    plans,
    modules,
    loading,
    sandboxing,
    runs,
    async close() {
      await runs.close();
      await Promise.all([loading.close(), sandboxing.close()]);
    },
  };
}
