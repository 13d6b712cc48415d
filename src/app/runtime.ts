/**
 * Creates the runtime that server, CLI and library use. The services are imported on first use
 * (`create_services.ts`).
 */
import type { TierAnswer } from "../policy/authorise.ts";
import type { Policy } from "../policy/policy.ts";
import { defaultPolicy } from "../policy/settings.ts";
import { withoutPlanSecrets } from "../policy/plan_secrets.ts";
import type { Redactor } from "../policy/redact.ts";
import { readVariable } from "../process/environment.ts";
import { systemClock } from "../process/system_clock.ts";
import { mayOperate, type Runs } from "../runs/types.ts";
import type { HostClock } from "../kernel/host.ts";
import { PreampError } from "../sdk/errors.ts";
import type { Clock, JsonObject } from "../sdk/types.ts";
import { MemoryStore } from "../store/memory.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { observedStore } from "../telemetry/observed_store.ts";
import { OpenTelemetry } from "../telemetry/open_telemetry.ts";
import type { Store } from "../store/store.ts";
import { bundlerProcess, missingLimits, processTier } from "../sandbox/process_support.ts";
import type { Services } from "./create_services.ts";
import { missingHome } from "./home_report.ts";
import { createModuleTable, type InProcessModule } from "./module_table.ts";
import type { NamedPlans } from "./named_plans.ts";
import type { SourcesFile } from "./source_overrides.ts";
import type { PlanDocument, Readiness, Runtime } from "./types.ts";

/** Options of `createRuntime`. */
export interface RuntimeConfig {
  /** Default: {@link defaultPolicy}. */
  policy?: Policy;
  /** Default: a memory store within the policy's `store_limits`. */
  store?: Store;
  /**
   * Whether the runs of crashed processes are continued in the background, in a store that lasts. If not,
   * such a run is ended when its session is continued, or when it is undone. Default: true.
   */
  recovers?: boolean;
  /** Folder of named plans, as a URL that ends in a slash, or the plans of several. Null (default): none. */
  plans?: URL | NamedPlans | null;
  /**
   * Folder of persistent files (`$PREAMP_HOME`), as a URL that ends in a slash: bundles of modules and
   * source overrides. Null (default): nothing is stored on disk.
   */
  home?: URL | null;
  /**
   * Folder that `${WORKSPACE}` in plans means, as a URL that ends in a slash. Null (default): the folder of
   * each plan's file.
   */
  workspace?: URL | null;
  /**
   * Files of source overrides (`preamp source add`). The first file that has a module wins. Default: none.
   */
  sources?: readonly SourcesFile[];
  /**
   * Modules of the application, by the id that plans use. They run in this process without a sandbox, and
   * every plan may use them, including one in a request. Default: none.
   */
  modules?: Readonly<Record<string, InProcessModule>>;
  /** Environment variables that plans may refer to. Default: the process's. */
  env?: (name: string) => string | undefined;
  /**
   * Values that must be redacted, such as API keys of this process; or the redactor of the process's log,
   * which then receives the secrets of runs too. Default: none.
   */
  secrets?: readonly string[] | Redactor;
  /**
   * Path that the HTTP API is mounted under, such as `/agents`. Run objects contain URLs with it. Default
   * none.
   */
  basePath?: string;
  /** Default: the clock of the process. */
  clock?: HostClock;
  /** Receives the metrics of runs, guests and the store. Closed with the runtime. Default: nothing does. */
  metrics?: Metrics;
  /** Makes the spans of runs. Default: with the policy's `tracing.content`. */
  tracing?: OpenTelemetry;
  /** Structured log of the process. Default: none. */
  log?: (level: "info" | "warning" | "error", event: string, facts: JsonObject) => void;
}

/** Returns a runtime. Loads, opens and starts nothing before the first use. */
export function createRuntime(config: RuntimeConfig = {}): Runtime {
  const policy = config.policy ?? defaultPolicy();
  const clock = config.clock ?? systemClock();
  const {
    recovers = true,
    plans = null,
    home = null,
    workspace = null,
    sources = [],
    env = readVariable,
    secrets = [],
    log = () => {},
  } = config;
  const { basePath = "", metrics = null } = config;
  const { tracing = new OpenTelemetry(policy.tracing) } = config;
  const opened = config.store ?? memoryStore(policy, clock, log);
  // a commit to memory is shorter than its measurement
  const store = opened.kind === "memory" ? opened : observedStore(opened, { metrics, log });
  const modules = createModuleTable(config.modules);
  let services: Promise<Services> | undefined;
  let opened_services: Services | undefined;
  let draining = false;
  let closed = false;

  const open = () => {
    if (closed || draining && !services) {
      throw new PreampError("draining", "Cannot use the server: it is stopping or has stopped");
    }
    return services ??= Promise.all([import("./create_services.ts"), tracing.load()]).then(([app, tracing]) =>
      opened_services = app.createServices({
        policy,
        modules,
        basePath,
        clock,
        store,
        recovers,
        plans,
        home,
        workspace,
        sources,
        env,
        secrets,
        metrics,
        tracing,
        log,
      })
    );
  };

  async function close(): Promise<void> {
    draining = true;
    if (services) await (await services).close();
    closed = true;
    await store.close();
    metrics?.close();
  }

  const explaining = () => import("./explain.ts");

  return {
    runs: lazyRuns(async () => (await open()).runs),
    plans: {
      check: async (input, caller, options) => (await open()).plans.check(input, caller, options),
      explain: async (input, caller, { base_url } = {}) =>
        (await explaining()).explain(input, caller, { ...await open(), env }, base_url),
      finds: async (input, caller, { base_url } = {}) =>
        (await explaining()).foundBy(input, caller, { ...await open(), env }, base_url),
      lock: async (input, caller, { base_url } = {}) =>
        (await explaining()).lockPlan(input, caller, { ...await open(), env }, base_url),
      vendor: async (input, caller, files) =>
        (await import("./vendor_plan.ts")).vendorPlan(input, caller, await open(), files),
      importBundle: async (input) =>
        (await import("./import_plan.ts")).importPlan(input, { policy, modules }),
      diff: async (from, to, caller) => (await explaining()).diff(from, to, caller, await open()),
      list: async () => (await open()).plans.list(),
      get: async (name) => await planDocument(name, await open()),
      async save(name, plan, caller) {
        const services = await open();
        await services.plans.save(name, plan, caller);
        return await planDocument(name, services);
      },
    },
    modules: {
      list: () => Promise.all([...modules.ids].map(modules.listing)),
      get: modules.listing,
    },
    async models(caller) {
      if (!mayOperate(caller)) {
        const message = "Cannot list the models: only the person who has started the server chooses one";
        throw new PreampError("forbidden", message);
      }
      const { usableModels } = await import("./provider_service.ts");
      const { data, errors } = await usableModels({ modules, env });
      const { redactor } = await open();
      return { data, errors: errors.map((error) => redactor.redactValues(error)) };
    },
    limits: { max_body_bytes: policy.limits.max_body_bytes },
    async ready() {
      const reasons: string[] = [];
      if (draining) reasons.push("draining");
      const stored = await storeReadiness(store, clock);
      if (!stored.ok) reasons.push(stored.reason ?? "store not reachable");
      const missing = await missingHome(home);
      return {
        ok: reasons.length === 0,
        reasons,
        ...hostReport(),
        ...missing === undefined ? {} : { home: missing },
      };
    },
    async system() {
      const { systemReport } = await import("./system_report.ts");
      const { listProviders } = await import("./provider_service.ts");
      const providers = await listProviders({ modules, env });
      return systemReport({
        store: { kind: store.kind, ...await storeReadiness(store, clock) },
        tiers: hostReport(),
        variables: providers.flatMap(({ variables }) => variables),
        env,
        now: () => clock.now(),
      });
    },
    async start() {
      if (store.kind !== "memory") await open();
    },
    async resume(max_ms) {
      const { runs } = await open();
      await runs.recover();
      await runs.idle(max_ms);
    },
    executing: () => opened_services?.runs.executing ?? 0,
    async drain(grace_ms) {
      draining = true;
      if (services) await (await services).runs.drain(grace_ms);
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** Milliseconds after which a store that does not answer is not ready. */
const READY_MS = 2_000;

async function storeReadiness(store: Store, clock: HostClock): Promise<{ ok: boolean; reason?: string }> {
  const answered = new AbortController();
  const late = clock.after(READY_MS, answered.signal).then(() => ({
    ok: false,
    reason: `store not reachable: no answer within ${READY_MS / 1000} s`,
  }));
  late.catch(() => {}); // the store has answered first
  try {
    return await Promise.race([store.ready(), late]);
  } finally {
    answered.abort();
  }
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
        `raise store_limits.${limit}, or delete runs that you no longer need`;
      log("warning", "store_full", { message, limit, logs, records });
    },
  });
}

async function planDocument(name: string, { plans, redactor }: Services): Promise<PlanDocument> {
  return await plans.document(name, (plan) => redactor.redact(withoutPlanSecrets(plan)));
}

/** Returns for the tier `process` and for the bundler: true if this host supports it, or why not. */
function hostReport(): Pick<Readiness, "isolation" | "bundler"> {
  const answerOf = (answer: TierAnswer) => answer.available ? true : answer.reason;
  const limits = missingLimits();
  return {
    isolation: {
      process: answerOf(processTier()),
      ...(limits === undefined ? {} : { limits }),
    },
    bundler: answerOf(bundlerProcess()),
  };
}

/** Returns a run service that is created on the first call of a method. */
function lazyRuns(open: () => Promise<Runs>): Runs {
  return {
    create: async (...args) => (await open()).create(...args),
    get: async (...args) => (await open()).get(...args),
    handle: async (...args) => (await open()).handle(...args),
    list: async (...args) => (await open()).list(...args),
    remove: async (...args) => (await open()).remove(...args),
    raiseLimits: async (...args) => (await open()).raiseLimits(...args),
    undo: async (...args) => (await open()).undo(...args),
    changedRuns: async function* (...args) {
      yield* (await open()).changedRuns(...args);
    },
    cancel: async (...args) => (await open()).cancel(...args),
    steer: async (...args) => (await open()).steer(...args),
    approvals: async (...args) => (await open()).approvals(...args),
    decide: async (...args) => (await open()).decide(...args),
    events: async (...args) => (await open()).events(...args),
    follow: async function* (...args) {
      yield* (await open()).follow(...args);
    },
    recording: async (...args) => (await open()).recording(...args),
    replay: async (...args) => (await open()).replay(...args),
    plan: async (...args) => (await open()).plan(...args),
    requests: async (...args) => (await open()).requests(...args),
    rerun: async (...args) => (await open()).rerun(...args),
    sessions: {
      fork: async (...args) => (await open()).sessions.fork(...args),
      list: async (...args) => (await open()).sessions.list(...args),
      get: async (...args) => (await open()).sessions.get(...args),
      remove: async (...args) => (await open()).sessions.remove(...args),
      messages: async (...args) => (await open()).sessions.messages(...args),
    },
  };
}
