/**
 * Spawns sub-agents: sessions of the same run, with a plan, history, state and turn of their own. They share
 * the run's log, approvals and limits. Every session of the run has the capability `session.spawn`.
 */
import { RunLimitGuard } from "../../kernel/run_limits.ts";
import type { KernelLimits } from "../../kernel/session/session_context.ts";
import { withAbort } from "../../kernel/timeouts.ts";
import type { Host } from "../../kernel/host.ts";
import { Session } from "../../kernel/session/session.ts";
import { count, type Counters, emptyCounters } from "../../sdk/session_counters.ts";
import { sumCostUsd } from "../../sdk/money.ts";
import type { MountedDescriptors } from "../../kernel/mounting/mount_descriptors.ts";
import { childPlan, SELF } from "../../plan/child_plan.ts";
import { preferenceProblem, preferProvider } from "../../plan/provider_preferences.ts";
import { combineLimits } from "../../policy/combine_limits.ts";
import { CancellationToken } from "../../sdk/cancellation.ts";
import { PreampError } from "../../sdk/errors.ts";
import { type JsonObject, toPlain } from "../../sdk/json.ts";
import type {
  Clock,
  ModelRoleResolver,
  ProviderPreference,
  ResumeSession,
  SpawnRequest,
  SpawnResult,
  SpawnSession,
} from "../../sdk/types.ts";
import { checkTokenBudget, limitReached, runChildTurn } from "./turn.ts";
import type { AgentPlans, ModuleReporter, RunnablePlan, RunsDeps } from "../ports.ts";
import type { RunProjection } from "../run/run_projection.ts";
import type { AgentInput } from "../types.ts";
import { lastRunOf } from "../session_status.ts";
import type { EndedChild, SavedSession } from "../storage/session_store.ts";
import { readResumeRequest, readSpawnRequest } from "./request.ts";

/** Collaborators of {@link Spawner}. */
export interface SpawnerDeps {
  readonly deps: Pick<RunsDeps, "newId" | "clock">;
  /** Kernel limits of the run. */
  readonly limits: KernelLimits;
  /** Returns the host of a session with this plan. */
  host(ready: RunnablePlan, session_id: string): Host;
  /** The run's projection. */
  readonly projection: Pick<RunProjection, "historyOf" | "usagesOf" | "rememberedOf" | "continueFrom">;
  /**
   * Acquires the session of an earlier sub-agent for this run. @throws {PreampError} `not_found`,
   * `session_busy`.
   */
  acquireSession(session_id: string, parent_id: string): Promise<SavedSession>;
  /** Returns the receiver of console lines of a sub-agent's modules in this process. */
  console(session_id: string): ModuleReporter["console"];
  /** Releases an acquired session. */
  releaseSession(session_id: string): Promise<void>;
  /** Stores a sub-agent's session after its turn. */
  saveSession(child: EndedChild): Promise<void>;
}

/** Usage of a sub-agent over all of its turns in this run, and that of its own sub-agents. */
interface Usage {
  readonly counters: Counters;
  readonly children: Map<string, Usage>;
}

/** A session that spawns sub-agents. */
interface Parent {
  readonly session: Session;
  readonly ready: RunnablePlan;
  readonly agents: AgentPlans;
  readonly limitGuard: RunLimitGuard;
  /** 0 for the run's own session. */
  readonly depth: number;
  /** Session id of a sub-agent → its usage in this run. */
  readonly children: Map<string, Usage>;
}

/** A sub-agent that is ready to run. */
interface Planned {
  readonly session_id: string;
  readonly agent: string;
  readonly ready: RunnablePlan;
  /** Whether its overlay sets limits of its own. */
  readonly limited: boolean;
  readonly saved: SavedSession | null;
}

/** Facts of a sub-agent's turn, known once it has begun. */
interface StartedTurn {
  surface: MountedDescriptors | null;
  turn_id: string | null;
}

interface PlannedTurn {
  readonly child: Session;
  readonly started: StartedTurn;
  readonly usage: Usage;
  /** Data of the parent's events. */
  readonly event_data: JsonObject;
  readonly instruction: string;
}

/** Spawns the sub-agents of one run. */
export class Spawner {
  readonly #deps: SpawnerDeps;
  /** Ids of all sessions of this run, its own included. */
  readonly #sessions = new Set<string>();
  /** Running sub-agents → settled when each has ended. */
  readonly #running = new Map<Session, Promise<unknown>>();
  #stopped = false;

  constructor(deps: SpawnerDeps) {
    this.#deps = deps;
  }

  /**
   * Returns the capabilities of the run's own session.
   * @param session Called at each spawn, because the session is created with these capabilities.
   */
  capabilities(
    session: () => Session,
    ready: RunnablePlan,
    limitGuard: RunLimitGuard,
  ): Record<string, unknown> {
    const children = new Map<string, Usage>();
    return this.#capabilities(
      ready,
      (agents) => ({ session: session(), ready, agents, limitGuard, depth: 0, children }),
    );
  }

  #capabilities({ agents }: RunnablePlan, parent: (agents: AgentPlans) => Parent): Record<string, unknown> {
    if (agents === undefined) return {};
    const spawn: SpawnSession = (request) => this.#spawn(parent(agents), request);
    const resume: ResumeSession = async (request) =>
      await this.#spawn(parent(agents), readResumeRequest(request));
    return { "session.spawn": spawn, "session.resume": resume };
  }

  /** Cancels every running sub-agent and waits for its end. */
  async stop(): Promise<void> {
    this.#stopped = true;
    while (this.#running.size > 0) {
      const running = [...this.#running];
      await Promise.allSettled(running.map(([session]) => session.cancel("immediate")));
      await Promise.allSettled(running.map(([, ended]) => ended));
    }
  }

  async #spawn(parent: Parent, input: unknown): Promise<SpawnResult> {
    const request = readSpawnRequest(input);
    this.#checkMayStart(parent);
    checkTokenBudget(request.instruction, parent.limitGuard);
    const session_id = request.session_id ?? this.#deps.deps.newId("ses");
    const reservation = this.#reserveSession(parent, session_id);
    const call = parent.session.pauseCall(request.tool_call_id);
    try {
      const planned = await this.#planUntilStopped(parent, request, session_id).catch((error) => {
        reservation.release();
        throw error;
      });
      try {
        return await this.#run(parent, planned, request, call.event_fields);
      } finally {
        if (planned.saved) await this.#deps.releaseSession(session_id);
      }
    } finally {
      call.release();
    }
  }

  #checkMayStart({ session }: Parent): void {
    if (this.#stopped || session.cancellation.is_cancelled) {
      throw new PreampError("cancelled", "Cannot spawn an agent: the run was cancelled");
    }
    if (session.turn_fields.turn_id === undefined) {
      throw new PreampError("request_invalid", "Cannot spawn an agent: no turn of this session is running");
    }
  }

  /**
   * Counts a session. Runs before the first await, so that concurrent spawns cannot exceed a limit together.
   */
  #reserveSession({ session, depth, agents }: Parent, session_id: string): { release(): void } {
    const { max_depth, max_sessions } = agents;
    if (depth >= max_depth) {
      throw limitReached(
        "max_depth",
        `sub-agents may be ${max_depth} levels deep, and this session is at level ${depth}`,
      );
    }
    this.#sessions.add(session.session_id);
    if (this.#sessions.has(session_id)) return { release: () => {} };
    if (this.#sessions.size >= max_sessions) {
      throw limitReached("max_sessions", `a run may have ${max_sessions} sessions, its own included`);
    }
    this.#sessions.add(session_id);
    return { release: () => this.#sessions.delete(session_id) };
  }

  /** Plans a sub-agent. Stops waiting, for example for a download, when the run must end. */
  async #planUntilStopped(parent: Parent, request: SpawnRequest, session_id: string): Promise<Planned> {
    const planning = this.#plan(parent, request, session_id);
    const stop = AbortSignal.any([parent.session.cancellation.any_signal, parent.limitGuard.signal]);
    try {
      return await withAbort(planning, stop);
    } catch (error) {
      if (!stop.aborted) throw error;
      planning.then(
        // the spawn has failed: release the session
        async ({ saved }) => saved && await this.#deps.releaseSession(session_id),
      ).catch(() => {}); // #plan() released the session itself
      this.#checkMayStart(parent);
      throw error;
    }
  }

  /** Merges, compiles and authorises the plan; for an existing session, authorises its plan again. */
  async #plan(parent: Parent, request: SpawnRequest, session_id: string): Promise<Planned> {
    if (request.session_id !== undefined) return await this.#planAgain(parent, request, session_id);
    const { agent = SELF, exclude_tools, inherit_tools, provider_preferences = [] } = request;
    const child = childPlan(parent.ready.compiled.written, agent, {
      ...(exclude_tools ? { exclude_tools } : {}),
      ...(inherit_tools ? { inherit_tools } : {}),
      metadata: { ...request.metadata, agent, depth: parent.depth + 1 },
    });
    const preferences = [
      ...provider_preferences,
      ...child.preferences,
      ...await preferencesOfRoles(parent.session, child.model_roles),
    ];
    const preferred = await preferProvider(
      child.written,
      preferences,
      (names) => parent.session.modelsOf(names),
    );
    const ready = await loadedPlan(parent.agents, preferred ?? child.written);
    return { session_id, agent, ready, limited: Object.keys(child.limits).length > 0, saved: null };
  }

  async #planAgain(parent: Parent, request: SpawnRequest, session_id: string): Promise<Planned> {
    const saved = await this.#deps.acquireSession(session_id, parent.session.session_id);
    try {
      const { provider_preferences = [] } = request;
      const preferred = await preferProvider(
        saved.plan,
        provider_preferences,
        (names) => parent.session.modelsOf(names),
      );
      const ready = await loadedPlan(parent.agents, preferred ?? saved.plan);
      const { agent = SELF, limited = false } = saved.spawned ?? {};
      return { session_id, agent, ready, limited, saved };
    } catch (error) {
      await this.#deps.releaseSession(session_id);
      throw error;
    }
  }

  async #run(
    parent: Parent,
    planned: Planned,
    request: SpawnRequest,
    call: JsonObject,
  ): Promise<SpawnResult> {
    const { session_id, agent, saved } = planned;
    const { session } = parent;
    this.#checkMayStart(parent); // checked again: planning is asynchronous
    const event_data = { agent, sub_session_id: session_id, parent_session_id: session.session_id, ...call };
    const usage = usageOf(parent.session, parent.children, session_id);
    const started: StartedTurn = { surface: null, turn_id: null };
    const child = this.#makeChild(parent, planned, usage, started);
    if (saved) this.#deps.projection.continueFrom(session_id, saved);
    const ended = this.#markLive(child);
    try {
      return await this.#runTurn(parent, planned, {
        child,
        started,
        usage,
        event_data,
        instruction: request.instruction,
      });
    } finally {
      ended();
    }
  }

  #withConsole<T>(ready: RunnablePlan, session_id: string, body: () => Promise<T>): Promise<T> {
    return ready.withConsole?.(this.#deps.console(session_id), body) ?? body();
  }

  /** Marks a sub-agent as running; returns a function that ends this. */
  #markLive(child: Session): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#running.set(child, promise);
    return () => {
      this.#running.delete(child);
      resolve();
    };
  }

  /** Runs a sub-agent's turn between the parent's two events, then stores its session. */
  async #runTurn(parent: Parent, planned: Planned, turn: PlannedTurn): Promise<SpawnResult> {
    const { session_id, agent, ready, limited, saved } = planned;
    const { child, usage, event_data, instruction } = turn;
    const { projection } = this.#deps;
    const { session } = parent;
    const before = usage.counters.turn_count;
    await session.emit(saved ? "task:agent_resumed" : "task:agent_spawned", event_data);
    const { outcome, was_initialised } = await this.#withConsole(
      ready,
      session_id,
      () => runChildTurn(session, child, instruction),
    );
    if (was_initialised) {
      await this.#deps.saveSession({
        session_id,
        parent_id: session.session_id,
        agent,
        ready,
        limited,
        saved,
        messages: projection.historyOf(session_id),
        session_state: child.session_state,
        usages: projection.usagesOf(session_id),
        remembered: projection.rememberedOf(session_id),
        last_run: lastRunOf(outcome),
        input: inputOf(planned, turn.started),
      });
    }
    const turn_count = usage.counters.turn_count - before;
    const { status, stop_reason, error, output_text } = outcome;
    await session.emit("task:agent_completed", { ...event_data, status, stop_reason, turn_count, error });
    return { output: output_text, session_id, status, turn_count, metadata: { agent, stop_reason, error } };
  }

  #makeChild(
    parent: Parent,
    { session_id, ready, limited, saved }: Planned,
    usage: Usage,
    started: StartedTurn,
  ): Session {
    const { deps, limits } = this.#deps;
    const limitGuard = limited ? childRunLimits(parent.limitGuard, ready, deps.clock) : parent.limitGuard;
    const host = this.#deps.host(ready, session_id);
    const depth = parent.depth + 1;
    const child: Session = new Session({
      plan: ready.compiled.plan,
      written: ready.compiled.written,
      host: {
        ...host,
        record(entry) {
          count(usage.counters, entry);
          started.turn_id ??= entry.turn_id ?? null;
          return host.record(entry);
        },
        accept() { // the run exists already
          started.surface = child.descriptors;
        },
      },
      run_limits: limitGuard,
      limits,
      session_id,
      parent_id: parent.session.session_id,
      session_state: saved?.session_state ?? {},
      history: saved?.messages ?? [],
      usages: saved?.usages ?? [],
      continued: saved !== null,
      cancellation: new CancellationToken(),
      capabilities: this.#capabilities(ready, (agents) => ({
        session: child,
        ready,
        agents,
        limitGuard,
        depth,
        children: usage.children,
      })),
    });
    return child;
  }
}

/** Returns the stored input of a sub-agent's turn. */
function inputOf(
  { session_id, ready, limited, saved }: Planned,
  { surface, turn_id }: StartedTurn,
): AgentInput | null {
  if (surface === null || turn_id === null) return null;
  return {
    session_id,
    turn_id,
    plan: ready.compiled.written,
    limited,
    continued: saved !== null,
    history: saved?.messages ?? [],
    session_state: saved?.session_state ?? {},
    usages: saved?.usages ?? [],
    ...(saved?.remembered ? { remembered: saved.remembered } : {}),
    surface,
  };
}

/** Compiles and authorises a plan, and fetches its modules. */
async function loadedPlan(agents: AgentPlans, written: JsonObject): Promise<RunnablePlan> {
  const ready = await agents.child(written);
  await ready.load?.();
  return ready;
}

/** Returns the limits of an overlay: at most the parent's, and counted within what the parent has left. */
export function childRunLimits(within: RunLimitGuard, ready: RunnablePlan, clock: Clock): RunLimitGuard {
  const { limits } = combineLimits(within.limits, { plan: ready.limits });
  return new RunLimitGuard({ limits, cost_limit_is_set: ready.cost_is_asked_for, clock, parent: within });
}

/** Returns the usage of a sub-agent. At the first call, contributes its cost to the parent's cost. */
function usageOf(parent: Session, children: Map<string, Usage>, session_id: string): Usage {
  const known = children.get(session_id);
  if (known) return known;
  const usage: Usage = { counters: emptyCounters(), children: new Map() };
  children.set(session_id, usage);
  parent.contribute("session.cost", `delegate:${session_id}`, () => ({ cost_usd: costOf(usage) }));
  return usage;
}

function costOf({ counters, children }: Usage): string | null {
  return sumCostUsd([counters.cost_usd, ...[...children.values()].map(costOf)]);
}

/**
 * Resolves to the providers of the first role that the session's `model_role_resolver` knows. Empty when
 * there is no resolver or it knows none.
 *
 * @throws {PreampError} `module_invalid` when the resolver returns an invalid value; also rethrows its
 * errors.
 */
async function preferencesOfRoles(
  session: Session,
  roles: readonly string[],
): Promise<readonly ProviderPreference[]> {
  const resolver = session.getCapability("model_role_resolver");
  if (typeof resolver !== "function") return [];
  for (const role of roles) {
    // a module published it as a resolver; the result is checked below
    const answer: unknown = await (resolver as ModelRoleResolver)(role);
    if (answer === null || answer === undefined) continue;
    const preferences = toPlain(answer);
    const problem = preferenceProblem(preferences, `model_role "${role}"`);
    if (problem !== null) throw new PreampError("module_invalid", `Cannot resolve ${problem}`);
    return preferences as unknown as ProviderPreference[]; // checked by preferenceProblem()
  }
  return [];
}
