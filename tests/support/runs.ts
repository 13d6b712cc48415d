/**
 * A run service for tests: plans of in-memory modules requested by name, a clock that stands still, ids that
 * count up.
 */
import { setImmediate } from "node:timers";
import { SessionStore } from "../../src/runs/storage/session_store.ts";
import type { Recording, SavedSession } from "../../src/runs/types.ts";
import type { ReplayReport } from "../../src/runs/types.ts";
import { RunService } from "../../src/runs/service.ts";
import type { Caller, CreateOptions, Run, RunHandle, RunRequest } from "../../src/runs/types.ts";
import type { RunnablePlan, RunObserver, SecretSink, ServiceLimits } from "../../src/runs/ports.ts";
import type { Entry, HostClock } from "../../src/kernel/host.ts";
import { Redactor } from "../../src/policy/redact.ts";
import { canonicalHash } from "../../src/sdk/digest.ts";
import type { PreampError } from "../../src/sdk/errors.ts";
import { toPlain } from "../../src/sdk/json.ts";
import { FakeClock } from "../../src/testing/clocks.ts";
import type { JsonObject, RunLimits } from "../../src/sdk/types.ts";
import { MemoryStore } from "../../src/store/memory.ts";
import type {
  Awaitable,
  Change,
  Fence,
  Heartbeat,
  ListOptions,
  LogEntry,
  Store,
  VersionedRecord,
} from "../../src/store/store.ts";
import { KERNEL_LIMITS, planOf, type PlanOptions } from "../../src/testing/session.ts";

/** A plan of these tests. */
export interface TestPlan extends PlanOptions {
  limits?: Partial<RunLimits>;
  cost_is_asked_for?: boolean;
  /** Values that expanding the plan's config would have registered as secrets. */
  secrets?: string[];
  /** Thrown when the plan is prepared. */
  refused?: PreampError;
  /** Plan of its sub-agents. Absent: it may spawn none. */
  agent?: TestPlan;
}

/** Options of {@link service}. */
export interface ServiceOptions {
  plans?: Record<string, TestPlan>;
  limits?: Partial<ServiceLimits>;
  store?: (memory: MemoryStore) => Store;
  /** Creates the observer of each run. */
  observe?: () => RunObserver;
  /** Shares time and store with another service. */
  beside?: Service;
  /** Returns the clock of its process. Default: the clock that all share. */
  clockOf?: (clock: FakeClock) => HostClock;
  /** Whether it continues the runs of crashed processes, and does not end them. Default: true. */
  recovers?: boolean;
  /** Generates ids; default: counts up. */
  ids?: (prefix: string, count: number) => string;
}

/** A run service and its collaborators. */
export interface Service {
  readonly runs: RunService;
  readonly clock: FakeClock;
  readonly store: Store;
  readonly memory: MemoryStore;
  readonly logs: { level: string; event: string; facts: JsonObject }[];
  /** Starts a run of the plan of this name. */
  post(
    plan: string | null,
    fields?: Partial<RunRequest>,
    options?: CreateOptions,
    caller?: Caller,
  ): Promise<RunHandle>;
  /** Starts a run and waits for its end. */
  finish(plan: string | null, fields?: Partial<RunRequest>): Promise<Run>;
  entries(run_id: string): Promise<Entry[]>;
  names(run_id: string): Promise<string[]>;
}

/** The caller of these tests. */
export const CALLER: Caller = { name: "key:ci", namespace: "a", origin: "caller" };

/** Another caller. */
export const STRANGER: Caller = { name: "key:other", namespace: "b", origin: "caller" };

const RUN_LIMITS: RunLimits = {
  max_iterations: 50,
  max_tool_calls: 200,
  max_total_tokens: 1_000_000,
  max_cost_usd: "5",
  max_duration_s: 600,
};

const LIMITS: ServiceLimits = {
  ...RUN_LIMITS,
  ...KERNEL_LIMITS,
  max_log_entries: 100_000,
  max_log_bytes: 67_108_864,
  max_concurrent_runs: 64,
  max_runs_per_key: 16,
  store_wait_s: 60,
  page_limit: 100,
  max_page_limit: 1000,
  retention_days: 30,
  max_undo_bytes: 67_108_864,
  idempotency_hours: 24,
};

/** Number of the services that share time and store with another one. */
let besides = 0;

/** Creates a run service. */
export function service(options: ServiceOptions = {}): Service {
  const clock = options.beside?.clock ?? new FakeClock();
  const memory = options.beside?.memory ?? new MemoryStore({ now: () => clock.now() });
  const store = options.store?.(memory) ?? memory;
  const logs: Service["logs"] = [];
  const counts = new Map<string, number>();
  const suffix = options.beside ? "b" : "";
  const process = options.beside ? `b${++besides}` : ""; // a dead one does not come back
  const plans: Record<string, TestPlan> = { plain: {}, ...options.plans };
  const limits = { ...LIMITS, ...options.limits };
  const runs = new RunService({
    store,
    clock: options.clockOf?.(clock) ?? clock,
    limitsOf: () => limits,
    newId(prefix) {
      const count = (counts.get(prefix) ?? 0) + 1;
      counts.set(prefix, count);
      return options.ids?.(prefix, count) ?? `${prefix}_${count}${prefix === "proc" ? process : suffix}`;
    },
    async ready(request) {
      await Promise.resolve();
      const written = (request.plan ?? { name: "plain" }) as JsonObject;
      return readyPlan(written, plans[String(written.name)]!, request, clock);
    },
    secrets,
    ...(options.observe ? { observe: options.observe } : {}),
    recovers: options.recovers ?? true,
    log: (level, event, facts) => void logs.push({ level, event, facts }),
  });
  const entries = async (run_id: string) =>
    toPlain(await runs.events(CALLER, run_id, { limit: Number.MAX_SAFE_INTEGER })) as unknown as Entry[];
  const post: Service["post"] = (plan, fields = {}, create = {}, caller = CALLER) =>
    runs.create(
      { prompt: "hello", ...(plan === null ? {} : { plan: { name: plan } }), ...fields },
      caller,
      create,
    );
  return {
    runs,
    clock,
    store,
    memory,
    logs,
    post,
    finish: async (plan, fields) => await (await post(plan, fields)).settled("end"),
    entries,
    names: async (run_id) => (await entries(run_id)).map((entry) => entry.event),
  };
}

/** Resolves to a stored session with its state. */
export function storedSession(store: Store, session_id: string, caller = CALLER): Promise<SavedSession> {
  return new SessionStore(store).load(caller, session_id);
}

/** Replays and advances time: a replay detects missing progress by the clock of the process. */
export async function replayed(
  { runs, clock }: Pick<Service, "runs" | "clock">,
  recorded: string | Recording,
): Promise<ReplayReport> {
  let done = false;
  const report = runs.replay(CALLER, recorded).finally(() => done = true);
  report.catch(() => {}); // reported to the caller
  for (let steps = 0; !done && steps < 5_000; steps++) await clock.advance(5);
  return await report;
}

/** Resolves after the next `setImmediate`, when a log stores entries without a waiting caller. */
export function immediate(): Promise<void> {
  return new Promise((resolve) => void setImmediate(() => setImmediate(resolve)));
}

function secrets(): SecretSink {
  return new Redactor();
}

function readyPlan(
  written: JsonObject,
  found: TestPlan,
  request: RunRequest,
  clock: FakeClock,
): RunnablePlan {
  if (found.refused) throw found.refused;
  const { agent } = found;
  const { plan, open } = planOf(found, clock);
  return {
    compiled: { plan, written, plan_hash: canonicalHash(written), warnings: [], env: [], texts: [] },
    limits: { ...RUN_LIMITS, ...found.limits, ...request.limits },
    cost_is_asked_for: found.cost_is_asked_for ?? request.limits?.max_cost_usd !== undefined,
    lock_hash: null,
    warnings: [],
    registerSecrets(sink) {
      for (const secret of found.secrets ?? []) sink.register(secret);
    },
    open: (spec) => Promise.resolve(open(spec)),
    ...(agent
      ? {
        agents: {
          origin: "caller",
          max_depth: 1,
          max_sessions: 10,
          child: (child) => Promise.resolve(readyPlan(child, agent, request, clock)),
        },
      }
      : {}),
  };
}

/** An asynchronous store, as one on a disk; `hold` delays the next commits. */
export class SlowStore implements Store {
  readonly kind = "slow";
  readonly #inner: Store;
  #queue: Promise<unknown> = Promise.resolve();
  #gate: Promise<void> = Promise.resolve();
  /** Thrown by every commit while set. */
  failure: Error | null = null;

  constructor(inner: Store) {
    this.#inner = inner;
  }

  /** Delays commits until the returned function is called. */
  hold(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#gate = promise;
    return resolve;
  }

  #later<T>(act: () => Awaitable<T>): Promise<T> {
    const done = this.#queue.then(() => new FakeClock().advance(0)).then(act);
    this.#queue = done.catch(() => {});
    return done;
  }

  commit(changes: readonly Change[], fence?: Fence): Promise<void> {
    const gate = this.#gate;
    return this.#later(async () => {
      await gate;
      if (this.failure) throw this.failure;
      this.#inner.commit(changes, fence);
    });
  }
  entries(...args: Parameters<MemoryStore["entries"]>): Promise<readonly LogEntry[] | null> {
    return this.#later(() => this.#inner.entries(...args));
  }
  get(kind: string, key: string): Promise<VersionedRecord | null> {
    return this.#later(async () => structuredClone(await this.#inner.get(kind, key)));
  }
  list(
    kind: string,
    options: ListOptions,
  ): Promise<{ records: VersionedRecord[]; next_cursor: string | null }> {
    return this.#later(() => this.#inner.list(kind, options));
  }
  /** Owners that have said that they live: after their time they are dead, until this is cleared. */
  readonly living = new Set<string>();

  heartbeat(owner: string, ttl_ms: number): Promise<Heartbeat> {
    const renews = !this.living.has(owner); // else it depended on the speed of the test
    this.living.add(owner);
    return this.#later(() => this.#inner.heartbeat(owner, renews ? ttl_ms : 0));
  }
  acquire(lease: string, owner: string, at_once?: boolean): Promise<number | null> {
    return this.#later(() => this.#inner.acquire(lease, owner, at_once));
  }
  free(leases: readonly string[]): Promise<string[]> {
    return this.#later(() => this.#inner.free(leases));
  }
  release(lease: string, owner: string): Promise<void> {
    return this.#later(() => this.#inner.release(lease, owner));
  }
  ready(): Promise<{ ok: boolean; reason?: string }> {
    return this.#later(() => this.#inner.ready());
  }
  close(): Promise<void> {
    return this.#later(() => this.#inner.close());
  }
}
