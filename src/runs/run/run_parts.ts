/** The parts of a run that all its sessions share: log, projection, approvals, limits, hosts and sub-agents. */
import { RunLimitGuard } from "../../kernel/run_limits.ts";
import type { Session } from "../../kernel/session/session.ts";
import { timestamp } from "../../sdk/timestamp.ts";
import type { Fence } from "../../store/store.ts";
import type { RunObserver, RunsDeps, SecretSink, ServiceLimits } from "../ports.ts";
import { Spawner, type SpawnerDeps } from "../subagents/spawner.ts";
import { ApprovalQueue } from "./approvals.ts";
import type { RestoredParts } from "./recovered_run.ts";
import { RunLog } from "./run_log.ts";
import type { NewRun } from "./run_options.ts";
import { RunProjection } from "./run_projection.ts";
import { RunWaiters } from "./run_waiters.ts";
import { SessionHosts } from "./session_host.ts";

/** The run that the parts belong to. */
export interface RunOwner extends Pick<SpawnerDeps, "acquireSession" | "releaseSession" | "saveSession"> {
  fence(): Fence | undefined;
  /** Returns the run's own session, which may be replaced before it begins. */
  session(): Session;
  /** Called when the run's own session is initialised: the run exists. */
  accept(): Promise<void>;
}

/** The shared parts of a run. */
export interface RunParts extends RestoredParts {
  readonly created_at: string;
  readonly limits: ServiceLimits;
  readonly secrets: SecretSink;
  readonly observer: RunObserver | undefined;
  readonly waiters: RunWaiters;
  readonly hosts: SessionHosts;
  readonly spawner: Spawner;
}

/** Creates the parts of a run, with the secrets of its plan registered. */
export function createRunParts(options: NewRun & { deps: RunsDeps }, owner: RunOwner): RunParts {
  const { deps, ready, run_id, session_id, saved, caller, orphan } = options;
  const { store, clock } = deps;
  const before = orphan?.input ?? saved;
  const created_at = orphan?.input.created_at ?? timestamp(clock.now());
  const limits = deps.limitsOf(caller);
  const secrets = deps.secrets();
  ready.registerSecrets(secrets);
  const projection = new RunProjection({
    id: run_id,
    session_id,
    created_at,
    events_url: `${deps.basePath ?? ""}/v1/runs/${run_id}/events`,
    warnings: ready.warnings,
    history: orphan?.input.history ?? saved?.messages ?? [],
    usages: before?.usages ?? [],
    remembered: before?.remembered,
    counters: saved?.counters,
  });
  const waiters = new RunWaiters(projection);
  const observer = deps.observe?.({ id: run_id, session_id, earlier: orphan?.entries ?? [] });
  const limitGuard = new RunLimitGuard({
    limits: ready.limits,
    cost_limit_is_set: ready.cost_is_asked_for,
    clock,
  });
  const log = new RunLog({
    run_id,
    store,
    clock,
    projection,
    limits,
    fence: owner.fence,
    secrets,
    onStored: observer && ((entries) => observer.stored(entries)),
    onFull: (limit) => {
      const unit = limit === "max_log_bytes" ? "bytes" : "entries";
      limitGuard.stopFor(limit, `the log of the run has ${limits[limit]} ${unit}`);
    },
  });
  const approvalQueue = new ApprovalQueue(store, run_id, caller.namespace, secrets);
  const hosts = new SessionHosts({
    options,
    log,
    approvalQueue,
    projection,
    secrets,
    session: owner.session,
    accept: owner.accept,
    notify: () => waiters.notify(),
  });
  const spawner = new Spawner({
    deps,
    limits,
    host(child_plan, id) {
      child_plan.registerSecrets(secrets);
      return hosts.hostOf(child_plan, id);
    },
    projection,
    console: (id) => hosts.reporterOf(id).console,
    acquireSession: owner.acquireSession,
    releaseSession: owner.releaseSession,
    saveSession: owner.saveSession,
  });
  return {
    session_id,
    created_at,
    limits,
    secrets,
    observer,
    projection,
    waiters,
    log,
    approvalQueue,
    limitGuard,
    hosts,
    spawner,
  };
}
