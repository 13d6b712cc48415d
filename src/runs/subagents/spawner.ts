/**
 * Sub-agents: kernel sessions of the same run (architecture.md, "A sub-agent is"). One log, one desk of approvals, one set of
 * ceilings for all of them; plan, history, state and turn are each one's own. Every session of the run gets `session.spawn`.
 */
import { RunLimitGuard } from "../../kernel/run_limits.ts";
import type { KernelLimits } from "../../kernel/session/session_context.ts";
import { withAbort } from "../../kernel/timeouts.ts";
import type { Host } from "../../kernel/host.ts";
import { type LoggedUsage, Session } from "../../kernel/session/session.ts";
import { count } from "../../sdk/session_counters.ts";
import type { MountedDescriptors } from "../../kernel/mounting/mount_descriptors.ts";
import { childPlan, SELF } from "../../plan/child_plan.ts";
import { preferProvider } from "../../plan/provider_preferences.ts";
import { combineLimits } from "../../policy/combine_limits.ts";
import { CancellationToken } from "../../sdk/cancellation.ts";
import { PreampError } from "../../sdk/errors.ts";
import type { JsonObject } from "../../sdk/json.ts";
import type {
  Clock,
  Message,
  ResumeSession,
  SpawnRequest,
  SpawnResult,
  SpawnSession,
} from "../../sdk/types.ts";
import type { Awaitable } from "../../store/store.ts";
import { checkTokens, follow, refused } from "./turn.ts";
import { type Usage, usageOf } from "./usage.ts";
import type { AgentPlans, ModuleTold, RunnablePlan, RunsDeps } from "../ports.ts";
import type { RunProjection } from "../run/run_projection.ts";
import type { AgentInput } from "../storage/run_input.ts";
import type { RememberedApproval } from "../run/approval_memory.ts";
import { type LastRun, lastRunOf } from "../session_status.ts";
import type { SavedSession } from "../storage/session_store.ts";
import { preferencesOfRoles } from "./model_roles.ts";
import { readResumeRequest, readSpawnRequest } from "./request.ts";

/** What sub-agents are made with; given by the run. */
export interface SpawnerParts {
  readonly deps: Pick<RunsDeps, "newId" | "clock">;
  /** Limits of the run that spawns. */
  readonly limits: KernelLimits;
  /** Returns the host of a session that runs by this plan. */
  host(ready: RunnablePlan, session_id: string): Host;
  /** What the log tells of each session. */
  readonly fold: Pick<RunProjection, "historyOf" | "usagesOf" | "rememberedOf" | "continueFrom">;
  /** Takes a session that an earlier spawn left, for this run alone. @throws {PreampError} `not_found`, `session_busy`. */
  take(session_id: string, parent_id: string): Promise<SavedSession>;
  /** Returns what takes the console lines of a sub-agent's modules in this process. */
  console(session_id: string): ModuleTold["console"];
  /** Lets another run have it. */
  letGo(session_id: string): Awaitable<void>;
  /** Keeps what a child's turn left. */
  save(child: EndedChild): Promise<void>;
}

/** What a child's turn left. */
export interface EndedChild {
  readonly session_id: string;
  readonly parent_id: string;
  readonly agent: string;
  readonly ready: RunnablePlan;
  /** Whether its overlay sets ceilings of its own. */
  readonly limited: boolean;
  /** What it was before, when it went on. */
  readonly saved: SavedSession | null;
  readonly messages: readonly Message[];
  readonly session_state: JsonObject;
  readonly usages: readonly LoggedUsage[];
  readonly remembered: readonly RememberedApproval[];
  /** How its turn ended. */
  readonly last_run: LastRun;
  /** What its turn started from; null when none was begun. */
  readonly input: AgentInput | null;
}

/** A session of the run as a parent. */
interface Parent {
  readonly session: Session;
  readonly ready: RunnablePlan;
  readonly agents: AgentPlans;
  readonly ceilings: RunLimitGuard;
  /** 0 for the run's own session. */
  readonly depth: number;
  /** What each of its children has used, over all their turns in this run. */
  readonly children: Map<string, Usage>;
}

/** A child that is about to run. */
interface Planned {
  readonly session_id: string;
  readonly agent: string;
  readonly ready: RunnablePlan;
  /** Whether its overlay sets ceilings of its own. */
  readonly limited: boolean;
  readonly saved: SavedSession | null;
}

/** What is known of a child's turn once it has begun. */
interface BegunTurn {
  surface: MountedDescriptors | null;
  turn_id: string | null;
}

interface PlannedTurn {
  readonly child: Session;
  readonly begun: BegunTurn;
  readonly usage: Usage;
  /** What the events tell of it. */
  readonly told: JsonObject;
  readonly instruction: string;
}

/** The sub-agents of one run. */
export class Spawner {
  readonly #parts: SpawnerParts;
  /** Sessions that this run has made or taken, the root's own included. */
  readonly #sessions = new Set<string>();
  /** Children at work, and when each has ended. */
  readonly #live = new Map<Session, Promise<unknown>>();
  #stopped = false;

  constructor(parts: SpawnerParts) {
    this.#parts = parts;
  }

  /**
   * Returns the capabilities of the run's own session.
   * @param session Asked when a spawn is wanted: the session is made with what this returns.
   */
  capabilities(
    session: () => Session,
    ready: RunnablePlan,
    ceilings: RunLimitGuard,
  ): Record<string, unknown> {
    const children = new Map<string, Usage>();
    return this.#capabilities(
      ready,
      (agents) => ({ session: session(), ready, agents, ceilings, depth: 0, children }),
    );
  }

  #capabilities({ agents }: RunnablePlan, parent: (agents: AgentPlans) => Parent): Record<string, unknown> {
    if (agents === undefined) return {};
    const spawn: SpawnSession = (request) => this.#spawn(parent(agents), request);
    const resume: ResumeSession = async (request) =>
      await this.#spawn(parent(agents), readResumeRequest(request));
    return { "session.spawn": spawn, "session.resume": resume };
  }

  /** Stops every child that is still at work and waits for it: the run ends with none behind it. */
  stop(): Promise<void> | void {
    this.#stopped = true;
    if (this.#live.size > 0) return this.#stopLive();
  }

  async #stopLive(): Promise<void> {
    while (this.#live.size > 0) {
      const live = [...this.#live];
      await Promise.allSettled(live.map(([session]) => session.cancel("immediate")));
      await Promise.allSettled(live.map(([, ended]) => ended));
    }
  }

  async #spawn(parent: Parent, given: unknown): Promise<SpawnResult> {
    const request = readSpawnRequest(given);
    this.#mayBegin(parent);
    checkTokens(request.instruction, parent.ceilings);
    const session_id = request.session_id ?? this.#parts.deps.newId("ses");
    const place = this.#takePlace(parent, session_id);
    const call = parent.session.pauseCall(request.tool_call_id);
    try {
      const planned = await this.#planInTime(parent, request, session_id).catch((error) => {
        place.giveBack();
        throw error;
      });
      try {
        return await this.#run(parent, planned, request, call.event_fields);
      } finally {
        if (planned.saved) await this.#parts.letGo(session_id);
      }
    } finally {
      call.release();
    }
  }

  #mayBegin({ session }: Parent): void {
    if (this.#stopped || session.cancellation.is_cancelled) {
      throw new PreampError("cancelled", "Cannot spawn an agent: the run was cancelled");
    }
    if (session.turn_fields.turn_id === undefined) {
      throw new PreampError("request_invalid", "Cannot spawn an agent: no turn of this session is running");
    }
  }

  /** Counts a session before the first wait, so that spawns that overlap cannot pass a limit together. */
  #takePlace({ session, depth, agents }: Parent, session_id: string): { giveBack(): void } {
    const { max_depth, max_sessions } = agents;
    if (depth >= max_depth) {
      throw refused(
        "max_depth",
        `sub-agents may be ${max_depth} levels deep, and this session is at level ${depth}`,
      );
    }
    this.#sessions.add(session.session_id);
    if (this.#sessions.has(session_id)) return { giveBack: () => {} };
    if (this.#sessions.size >= max_sessions) {
      throw refused("max_sessions", `a run may have ${max_sessions} sessions, its own included`);
    }
    this.#sessions.add(session_id);
    return { giveBack: () => this.#sessions.delete(session_id) };
  }

  /** Modules may have to be fetched: a run that must stop does not wait for them. */
  async #planInTime(parent: Parent, request: SpawnRequest, session_id: string): Promise<Planned> {
    const planning = this.#plan(parent, request, session_id);
    const stop = AbortSignal.any([parent.session.cancellation.any_signal, parent.ceilings.signal]);
    try {
      return await withAbort(planning, stop);
    } catch (error) {
      if (!stop.aborted) throw error;
      planning.then(
        async ({ saved }) => saved && await this.#parts.letGo(session_id), // nobody is left to go on with it
      ).catch(() => {}); // what failed has let go by itself
      this.#mayBegin(parent);
      throw error;
    }
  }

  /** Merge, compile, authorise; or what an earlier spawn was made of, judged again. */
  async #plan(parent: Parent, request: SpawnRequest, session_id: string): Promise<Planned> {
    if (request.session_id !== undefined) return await this.#planAgain(parent, request, session_id);
    const { agent = SELF, exclude_tools, inherit_tools, provider_preferences = [] } = request;
    const made = childPlan(parent.ready.compiled.written, agent, {
      ...(exclude_tools ? { exclude_tools } : {}),
      ...(inherit_tools ? { inherit_tools } : {}),
      metadata: { ...request.metadata, agent, depth: parent.depth + 1 },
    });
    const preferences = [
      ...provider_preferences,
      ...made.preferences,
      ...await preferencesOfRoles(parent.session, made.model_roles),
    ];
    const preferred = await preferProvider(
      made.written,
      preferences,
      (names) => parent.session.modelsOf(names),
    );
    const ready = await loaded(parent.agents, preferred ?? made.written);
    return { session_id, agent, ready, limited: Object.keys(made.limits).length > 0, saved: null };
  }

  async #planAgain(parent: Parent, request: SpawnRequest, session_id: string): Promise<Planned> {
    const saved = await this.#parts.take(session_id, parent.session.session_id);
    try {
      const { provider_preferences = [] } = request;
      const preferred = await preferProvider(
        saved.plan,
        provider_preferences,
        (names) => parent.session.modelsOf(names),
      );
      const ready = await loaded(parent.agents, preferred ?? saved.plan);
      const { agent = SELF, limited = false } = saved.spawned ?? {};
      return { session_id, agent, ready, limited, saved };
    } catch (error) {
      await this.#parts.letGo(session_id);
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
    this.#mayBegin(parent); // again: planning took its time
    const told = { agent, sub_session_id: session_id, parent_session_id: session.session_id, ...call };
    const usage = usageOf(parent.session, parent.children, session_id);
    const begun: BegunTurn = { surface: null, turn_id: null };
    const child = this.#makeChild(parent, planned, usage, begun);
    if (saved) this.#parts.fold.continueFrom(session_id, saved);
    const ended = this.#begin(child);
    try {
      return await this.#tell(parent, planned, {
        child,
        begun,
        usage,
        told,
        instruction: request.instruction,
      });
    } finally {
      ended();
    }
  }

  #withConsole<T>(ready: RunnablePlan, session_id: string, body: () => Promise<T>): Promise<T> {
    return ready.withConsole?.(this.#parts.console(session_id), body) ?? body();
  }

  /** Notes a child that is at work; the returned function says that nothing of it follows. */
  #begin(child: Session): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#live.set(child, promise);
    return () => {
      this.#live.delete(child);
      resolve();
    };
  }

  /** The child's turn, between the two events that its parent tells of it; what it left is kept. */
  async #tell(parent: Parent, planned: Planned, turn: PlannedTurn): Promise<SpawnResult> {
    const { session_id, agent, ready, limited, saved } = planned;
    const { child, usage, told, instruction } = turn;
    const { fold } = this.#parts;
    const { session } = parent;
    const before = usage.counters.turn_count;
    await session.emit(saved ? "task:agent_resumed" : "task:agent_spawned", told);
    const { outcome, began } = await this.#withConsole(
      ready,
      session_id,
      () => follow(session, child, instruction),
    );
    if (began) {
      await this.#parts.save({
        session_id,
        parent_id: session.session_id,
        agent,
        ready,
        limited,
        saved,
        messages: fold.historyOf(session_id),
        session_state: child.session_state,
        usages: fold.usagesOf(session_id),
        remembered: fold.rememberedOf(session_id),
        last_run: lastRunOf(outcome),
        input: inputOf(planned, turn.begun),
      });
    }
    const turn_count = usage.counters.turn_count - before;
    const { status, stop_reason, error, output_text } = outcome;
    await session.emit("task:agent_completed", { ...told, status, stop_reason, turn_count, error });
    return { output: output_text, session_id, status, turn_count, metadata: { agent, stop_reason, error } };
  }

  #makeChild(
    parent: Parent,
    { session_id, ready, limited, saved }: Planned,
    usage: Usage,
    begun: BegunTurn,
  ): Session {
    const { deps, limits } = this.#parts;
    const ceilings = limited ? ownCeilings(parent.ceilings, ready, deps.clock) : parent.ceilings;
    const host = this.#parts.host(ready, session_id);
    const depth = parent.depth + 1;
    const child: Session = new Session({
      plan: ready.compiled.plan,
      written: ready.compiled.written,
      host: {
        ...host,
        record(entry) {
          count(usage.counters, entry);
          begun.turn_id ??= entry.turn_id ?? null;
          return host.record(entry);
        },
        accept() { // the run exists already
          begun.surface = child.descriptors;
        },
      },
      run_limits: ceilings,
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
        ceilings,
        depth,
        children: usage.children,
      })),
    });
    return child;
  }
}

/** What a replay needs of a child's turn. */
function inputOf(
  { session_id, ready, limited, saved }: Planned,
  { surface, turn_id }: BegunTurn,
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

/** Compiled and judged again, its modules fetched and verified: nothing of it has run yet. */
async function loaded(agents: AgentPlans, written: JsonObject): Promise<RunnablePlan> {
  const ready = await agents.child(written);
  await ready.load?.();
  return ready;
}

/** Returns an overlay's own ceilings: at most its parent's, counted within what is left of those. */
export function ownCeilings(within: RunLimitGuard, ready: RunnablePlan, clock: Clock): RunLimitGuard {
  const { limits } = combineLimits(within.limits, { plan: ready.limits });
  return new RunLimitGuard({ limits, cost_limit_is_set: ready.cost_is_asked_for, clock, parent: within });
}
