/** The runtime: what server, CLI and library start from. Light: the parts are put together at first use (`create_services.ts`). */
import { defaultPolicy, type Policy } from "../policy/policy.ts";
import type { Redactor } from "../policy/redact.ts";
import { systemClock } from "../process/system_clock.ts";
import type { Runs } from "../runs/types.ts";
import type { Clock, JsonObject } from "../sdk/types.ts";
import { MemoryStore } from "../store/memory.ts";
import type { Store } from "../store/store.ts";
import { bundlerProcess, hostTiers, type TierAnswer } from "../sandbox/tiers/isolation_tiers.ts";
import type { Composition } from "./create_services.ts";
import { createModuleTable, type InProcessModule } from "./module_table.ts";
import type { SourcesFile } from "./source_overrides.ts";
import type { Readiness, Runtime } from "./types.ts";

/** What a runtime is made of; every part has a default. */
export interface RuntimeConfig {
  /** Default: {@link defaultPolicy}. */
  policy?: Policy;
  /** Default: a store in memory, within the policy's `store_limits`. */
  store?: Store;
  /** Folder of named plans, as a URL that ends in a slash; null: none. Default null. */
  plans?: URL | null;
  /**
   * Folder of what outlives the process (`$PREAMP_HOME`), as a URL that ends in a slash: bundles of modules, overrides of
   * sources. Null: nothing is kept on disk. Default null.
   */
  home?: URL | null;
  /** Files of overrides of sources (`preamp source add`); the first one that has a module wins. Default: none. */
  sources?: readonly SourcesFile[];
  /**
   * Modules of the application, by the id that plans name them by. They run in this process without a sandbox, and every plan may
   * use them, also one in a request. Default: none.
   */
  modules?: Readonly<Record<string, InProcessModule>>;
  /** Environment variables that plans may refer to. Default: the process's. */
  env?: (name: string) => string | undefined;
  /**
   * Values that must never be seen, such as API keys of this process; or the redactor of the process's log, which then gets those
   * of the runs too. Default: none.
   */
  secrets?: readonly string[] | Redactor;
  /** Path that the HTTP API is mounted under, such as `/agents`; run objects name their URLs with it. Default none. */
  basePath?: string;
  /** Default: the clock of the process. */
  clock?: Clock;
  /** Structured log of the process. Default: none. */
  log?: (level: "info" | "warning" | "error", event: string, facts: JsonObject) => void;
}

/** Returns a runtime. Nothing is loaded, opened or started before it is asked for. */
export function createRuntime(config: RuntimeConfig = {}): Runtime {
  const policy = config.policy ?? defaultPolicy();
  const clock = config.clock ?? systemClock();
  const { plans = null, home = null, sources = [], env = readEnv, secrets = [], log = () => {} } = config;
  const { basePath = "" } = config;
  const store = config.store ?? memoryStore(policy, clock, log);
  const modules = createModuleTable(config.modules);
  let composed: Promise<Composition> | undefined;
  let draining = false;

  const open = () =>
    composed ??= import("./create_services.ts").then(({ compose }) =>
      compose({ policy, modules, basePath, clock, store, plans, home, sources, env, secrets, log })
    );

  const explaining = () => import("./explain.ts");

  return {
    runs: lazyRuns(() => open().then(({ runs }) => runs)),
    plans: {
      check: async (input, caller, options) => (await open()).plans.check(input, caller, options),
      explain: async (input, caller, { base_url } = {}) =>
        (await explaining()).explain(input, caller, await open(), base_url),
      lock: async (input, caller, { base_url } = {}) =>
        (await explaining()).lockPlan(input, caller, await open(), base_url),
      diff: async (from, to, caller) => (await explaining()).diff(from, to, caller, await open()),
      list: async () => (await open()).plans.list(),
    },
    modules: {
      list: () => Promise.all([...modules.ids].map(modules.listing)),
      get: modules.listing,
    },
    limits: { max_body_bytes: policy.limits.max_body_bytes },
    async ready() {
      const reasons: string[] = [];
      if (draining) reasons.push("draining");
      const stored: { ok: boolean; reason?: string } = await store.ready();
      if (!stored.ok) reasons.push(stored.reason ?? "store not reachable");
      const abandoned = composed ? (await composed).sandboxing.abandoned : 0;
      if (abandoned > 0) reasons.push(`${abandoned} workers could not be ended: restart the server`);
      return { ok: reasons.length === 0, reasons, ...hostReport() };
    },
    async drain(grace_ms) {
      draining = true;
      await (await open()).runs.drain(grace_ms);
    },
    async close() {
      if (composed) await (await composed).close();
      await store.close();
    },
  };
}

function memoryStore(
  { store_limits }: Policy,
  clock: Clock,
  log: NonNullable<RuntimeConfig["log"]>,
): MemoryStore {
  return new MemoryStore({
    ...store_limits,
    now: () => clock.now(),
    onDrop({ limit, logs, records }) {
      const message =
        `The store is full: dropped ${logs} logs and ${records} records, those of ended runs first; ` +
        `raise store_limits.${limit}, or delete runs that are done with`;
      log("warning", "store_full", { message, limit, logs, records });
    },
  });
}

/** Returns what this host gives to modules of URLs: true, or why not. */
function hostReport(): Pick<Readiness, "isolation" | "bundler"> {
  const { worker, process } = hostTiers();
  const answerOf = (answer: TierAnswer) => answer.available ? true : answer.reason;
  return {
    isolation: { worker: answerOf(worker), process: answerOf(process) },
    bundler: answerOf(bundlerProcess()),
  };
}

/** Returns runs that are put together at the first call of one of their methods. */
function lazyRuns(open: () => Promise<Runs>): Runs {
  return {
    create: async (...given) => (await open()).create(...given),
    get: async (...given) => (await open()).get(...given),
    handle: async (...given) => (await open()).handle(...given),
    list: async (...given) => (await open()).list(...given),
    remove: async (...given) => (await open()).remove(...given),
    cancel: async (...given) => (await open()).cancel(...given),
    steer: async (...given) => (await open()).steer(...given),
    approvals: async (...given) => (await open()).approvals(...given),
    decide: async (...given) => (await open()).decide(...given),
    events: async (...given) => (await open()).events(...given),
    follow: async function* (...given) {
      yield* (await open()).follow(...given);
    },
    recording: async (...given) => (await open()).recording(...given),
    replay: async (...given) => (await open()).replay(...given),
    rerun: async (...given) => (await open()).rerun(...given),
    sessions: {
      fork: async (...given) => (await open()).sessions.fork(...given),
      list: async (...given) => (await open()).sessions.list(...given),
      get: async (...given) => (await open()).sessions.get(...given),
      remove: async (...given) => (await open()).sessions.remove(...given),
      messages: async (...given) => (await open()).sessions.messages(...given),
    },
  };
}

function readEnv(name: string): string | undefined {
  try {
    return Deno.env.get(name);
  } catch {
    return undefined; // not permitted by the process's flags: as if it were not set
  }
}
