/**
 * Spawns sub-agents: sessions of the same run, with a plan, history, state and turn of their own. They share
 * the run's log, approvals and limits. Every session of the run has the capability `session.spawn`.
 */
import { RunLimitGuard } from "../../kernel/run_limits.ts";
import { untilAborted } from "../../sdk/abortable.ts";
import type { HostClock } from "../../kernel/host.ts";
import { type Mounts, withForeign } from "../../kernel/mounts.ts";
import { Session } from "../../kernel/session.ts";
import { withShared } from "../../kernel/session_state.ts";
import { count } from "../../sdk/run_counters.ts";
import { combineLimits } from "../../policy/limits.ts";
import { CancellationToken } from "../../sdk/cancellation.ts";
import { PreampError } from "../../sdk/errors.ts";
import type { JsonObject } from "../../sdk/json.ts";
import type { ResumeSession, SpawnRequest, SpawnResult, SpawnSession } from "../../sdk/types.ts";
import { checkCallsLeft, checkTokenBudget, limitReached, runChildTurn } from "./turn.ts";
import type { AgentPlans, RunnablePlan } from "../ports.ts";
import { type HostedRun, SessionHost } from "../run/session_host.ts";
import type { AgentInput, InitialState } from "../types.ts";
import { type EndedChild, initialState, lastRunOf, type PlannedChild } from "../storage/session_store.ts";
import {
  type Parent,
  planSubAgent,
  readResumeRequest,
  readSpawnRequest,
  type Usage,
  usageOf,
} from "./planning.ts";

/** The run whose sessions spawn sub-agents. */
export interface SpawningRun extends HostedRun {
  /** Stores a sub-agent's session after its turn. */
  saveSession(child: EndedChild): Promise<void>;
}

/** Facts of a sub-agent's turn, known once it has begun. */
type StartedTurn = Partial<Pick<AgentInput, "surface" | "turn_id">>;

/** The running turn of a sub-agent. */
interface RunningTurn {
  /** Resolves when it has ended. */
  readonly ended: Promise<void>;
  /** Returns its input; null before it begins. */
  input(): AgentInput | null;
}

/** Spawns the sub-agents of one run. */
export class Spawner {
  readonly #run: SpawningRun;
  /** Ids of all sessions of this run, its own included. */
  #sessions: Set<string> | null = null;
  #running: Map<Session, RunningTurn> | null = null;
  #stopped = false;

  constructor(run: SpawningRun) {
    this.#run = run;
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

  /** Inputs of the turns that run now. */
  get inputs(): AgentInput[] {
    return [...this.#running?.values() ?? []].flatMap((turn) => turn.input() ?? []);
  }

  /** Cancels every running sub-agent; resolves when they have ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    while (this.#running && this.#running.size > 0) {
      const running = [...this.#running];
      await Promise.allSettled(running.map(([session]) => session.cancel("immediate")));
      await Promise.allSettled(running.map(([, { ended }]) => ended));
    }
  }

  async #spawn(parent: Parent, input: unknown): Promise<SpawnResult> {
    const request = readSpawnRequest(input);
    this.#checkMayStart(parent);
    checkCallsLeft(parent.limitGuard);
    checkTokenBudget(request.instruction, parent.limitGuard);
    const session_id = request.session_id ?? this.#run.options.deps.newId("ses");
    const reservation = this.#reserveSession(parent, session_id);
    const call = parent.session.pauseCall(request.tool_call_id);
    try {
      const planned = await this.#planUntilStopped(parent, request, session_id).catch((error) => {
        reservation.release();
        throw error;
      });
      try {
        return await this.#runChild(parent, planned, request.instruction, call.event_fields);
      } finally {
        if (planned.saved) await this.#run.options.scheduler.releaseChild(session_id);
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

  /** Counts a session. Runs before the first await, so that concurrent spawns cannot exceed a limit. */
  #reserveSession({ session, depth, agents }: Parent, session_id: string): { release(): void } {
    const { max_depth, max_sessions } = agents;
    if (depth >= max_depth) {
      throw limitReached(
        "max_depth",
        `sub-agents may be ${max_depth} levels deep, and this session is at level ${depth}`,
      );
    }
    const sessions = this.#sessions ??= new Set([session.session_id]);
    if (sessions.has(session_id)) return { release: () => {} };
    if (sessions.size >= max_sessions) {
      throw limitReached("max_sessions", `a run may have ${max_sessions} sessions, its own included`);
    }
    sessions.add(session_id);
    return { release: () => sessions.delete(session_id) };
  }

  /** Plans a sub-agent. Stops waiting, for example for a download, when the run must end. */
  async #planUntilStopped(parent: Parent, request: SpawnRequest, session_id: string): Promise<PlannedChild> {
    const planning = planSubAgent(parent, request, session_id, this.#run);
    const stop = AbortSignal.any([parent.session.cancellation.any_signal, parent.limitGuard.signal]);
    try {
      return await untilAborted(stop, planning);
    } catch (error) {
      if (!stop.aborted) throw error;
      planning.then(
        // the spawn has failed: release the session
        async ({ saved }) => saved && await this.#run.options.scheduler.releaseChild(session_id),
      ).catch(() => {}); // planSubAgent() released the session itself
      this.#checkMayStart(parent);
      throw error;
    }
  }

  /** Runs a sub-agent's turn between the parent's two events, and stores its session. */
  async #runChild(
    parent: Parent,
    planned: PlannedChild,
    instruction: string,
    call: JsonObject,
  ): Promise<SpawnResult> {
    this.#checkMayStart(parent); // checked again: planning is asynchronous
    const { session_id, agent, saved } = planned;
    const { session } = parent;
    const event_data = { agent, sub_session_id: session_id, parent_session_id: session.session_id, ...call };
    const usage = usageOf(session, parent.children, session_id);
    const before = usage.counters.turn_count;
    const started: StartedTurn = {};
    const host = this.#makeHost(planned, usage, started, () => child);
    const state = initialState(saved);
    const initial = { ...state, session_state: withShared(state.session_state, session.session_state) };
    const child = this.#makeChild(parent, planned, usage, { host, initial });
    if (saved) this.#run.projection.continueFrom(session_id, saved);
    const ended = Promise.withResolvers<void>();
    const running = this.#running ??= new Map();
    const input = () => inputOf(planned, started, initial, child.mounts);
    running.set(child, { ended: ended.promise, input });
    try {
      await session.emit(saved ? "task:agent_resumed" : "task:agent_spawned", event_data);
      const { outcome, was_initialised } = await host.withConsole(() =>
        runChildTurn(session, child, instruction)
      );
      if (was_initialised) {
        session.addSharedState(child.session_state);
        await this.#run.saveSession({
          ...planned,
          parent_id: session.session_id,
          session_state: child.session_state,
          last_run: lastRunOf(outcome),
          input: input(),
        });
      }
      const turn_count = usage.counters.turn_count - before;
      const { status, stop_reason, error, output_text } = outcome;
      await session.emit("task:agent_completed", { ...event_data, status, stop_reason, turn_count, error });
      return { output: output_text, session_id, status, turn_count, metadata: { agent, stop_reason, error } };
    } finally {
      running.delete(child);
      ended.resolve();
    }
  }

  #makeHost(
    { ready, session_id }: PlannedChild,
    usage: Usage,
    started: StartedTurn,
    child: () => Session,
  ): SessionHost {
    ready.registerSecrets(this.#run.secrets);
    return new SessionHost(this.#run, ready, session_id, {
      recorded(entry) {
        count(usage.counters, entry);
        if (entry.turn_id !== undefined) started.turn_id ??= entry.turn_id;
      },
      accepted() { // the run exists already
        started.surface = child().descriptors;
      },
    });
  }

  #makeChild(
    parent: Parent,
    { session_id, ready, limited }: PlannedChild,
    usage: Usage,
    { host, initial }: { host: SessionHost; initial: InitialState },
  ): Session {
    const { limits } = this.#run;
    const limitGuard = limited
      ? childRunLimits(parent.limitGuard, ready, host.clock)
      : new RunLimitGuard({ clock: host.clock, parent: parent.limitGuard });
    const depth = parent.depth + 1;
    const child: Session = new Session({
      plan: ready.compiled.plan,
      written: ready.compiled.written,
      host,
      run_limits: limitGuard,
      limits,
      session_id,
      parent_id: parent.session.session_id,
      ...initial,
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

/** Returns the stored input of a sub-agent's turn, also with what modules mounted after it was accepted. */
function inputOf(
  { session_id, ready, limited }: PlannedChild,
  { surface, turn_id }: StartedTurn,
  initial: InitialState,
  mounts: Mounts,
): AgentInput | null {
  if (surface === undefined || turn_id === undefined) return null;
  return {
    session_id,
    turn_id,
    plan: ready.compiled.written,
    limited,
    ...initial,
    surface: withForeign(surface, mounts),
  };
}

/** Returns the limits of an overlay: at most the parent's, and counted within what the parent has left. */
export function childRunLimits(within: RunLimitGuard, ready: RunnablePlan, clock: HostClock): RunLimitGuard {
  const { limits } = combineLimits(within.limits, { plan: ready.limits });
  return new RunLimitGuard({ limits, cost_limit_is_set: ready.cost_is_asked_for, clock, parent: within });
}
