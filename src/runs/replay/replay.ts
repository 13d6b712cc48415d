/**
 * Replays a recorded run and reports the first difference. Orchestrators and contexts run, those of
 * sub-agents too; everything else is read from the log. See src/docs/architecture.md#the-log-is-the-state.
 */
import { RunLimitGuard } from "../../kernel/run_limits.ts";
import type { KernelLimits } from "../../kernel/session/session_context.ts";
import type { Entry } from "../../kernel/host.ts";
import type { Outcome } from "../../kernel/session/outcome.ts";
import { count, emptyCounters } from "../../sdk/session_status.ts";
import { PreampError } from "../../sdk/errors.ts";
import { isObject, toPlainObject } from "../../sdk/json.ts";
import type { Clock, Message, Prompt, RunLimits } from "../../sdk/types.ts";
import { runChildTurn } from "../subagents/turn.ts";
import type { RunnablePlan, SecretSink } from "../ports.ts";
import { failedOutcome } from "../run/outcomes.ts";
import { recordContextUsage, RunProjection } from "../run/run_projection.ts";
import { hasStarted, knownApproval, stateAfter, turnStateOf, usedBefore } from "../scheduler/crash_state.ts";
import { childRunLimits } from "../subagents/spawner.ts";
import type { Difference, Recording, ReplayReport } from "../types.ts";
import { Sequencer } from "./sequencer.ts";
import { isTakeover, ownSegments, type Segment } from "./segments.ts";
import { VirtualClock } from "./virtual_clock.ts";
import { hasWholeResponses, type LiveAgent, liveAgentsOf } from "./subagents.ts";
import { loadOwn, ownModules, ReplaySession } from "./replay_session.ts";
import { RecordedEvents } from "./recorded_events.ts";

/** Collaborators of {@link replay}. */
export interface ReplayDeps {
  /** The recording's plan, checked: it has the sources of orchestrator and context. */
  ready: RunnablePlan;
  secrets: SecretSink;
  clock: Clock;
  limits: KernelLimits;
}

/** Replays a run. @throws {PreampError} `not_replayable` when the log lacks something that a replay needs. */
export async function replay(recording: Recording, deps: ReplayDeps): Promise<ReplayReport> {
  const reason = whyNotReplayable(recording);
  if (reason !== null) {
    throw new PreampError("not_replayable", `Cannot replay run "${recording.run.id}": ${reason}`);
  }
  await loadOwn(deps.ready);
  const difference = await new Replay(recording, deps, await liveAgentsOf(recording, deps.ready)).run();
  return difference === null ? { equal: true } : { equal: false, first_difference: difference };
}

/** A session under replay, and the limits within which its sub-agents run. */
interface RunningSession {
  readonly replayed: ReplaySession;
  readonly limitGuard: RunLimitGuard;
}

class Replay {
  readonly #recording: Recording;
  readonly #deps: ReplayDeps;
  readonly #live_agents: readonly LiveAgent[];
  readonly #segments: readonly Segment[];
  readonly #clock: VirtualClock;
  readonly #projection: RunProjection;
  /** Settles when the context manager's status is in the projection. */
  #context_recorded: Promise<void> | void = undefined;
  readonly #sequencer: Sequencer;
  readonly #sessions = new Map<string, RunningSession>();
  /** Sub-agent sessions under replay → settled when each has ended. */
  readonly #agents = new Map<ReplaySession, Promise<void>>();

  constructor(recording: Recording, deps: ReplayDeps, live_agents: readonly LiveAgent[]) {
    const { events } = recording;
    this.#recording = recording;
    this.#deps = deps;
    this.#live_agents = live_agents;
    this.#segments = ownSegments(events);
    this.#clock = new VirtualClock(Date.parse(events[0]!.ts));
    this.#projection = projectionOf(recording);
    this.#sequencer = new Sequencer({
      entries: events,
      clock: this.#clock,
      real_clock: deps.clock,
      secrets: deps.secrets,
      beginAgent: (opening) => this.#beginAgent(opening),
      onEntry: (entry) => this.#applyEntry(entry),
    });
  }

  /** Resolves to the first difference, or to null. */
  async run(): Promise<Difference | null> {
    const [first] = this.#segments;
    this.#beginSegment(first!); // a log has at least one segment
    this.#sequencer.start();
    const difference = await this.#sequencer.finished;
    await Promise.all([...this.#sessions.values()].map(({ replayed }) => replayed.session.abandon()));
    if (difference !== null) this.#clear(); // their further events are ignored
    return difference;
  }

  #clear(): void {
    for (const { replayed } of this.#sessions.values()) replayed.close();
    this.#sessions.clear();
    this.#agents.clear();
    this.#sequencer.clear();
  }

  #applyEntry(entry: Entry): void {
    const projection = this.#projection;
    const was_queued = projection.status === "queued";
    projection.add(entry);
    if (entry.event === "provider:response") this.#recordContext(entry.session_id);
    else if (isTakeover(entry)) {
      this.#clear();
      // set again by the next response
      projection.context = { tokens: 0, budget: 0, level: 0, compactions: 0 };
      // every recovery begins a segment
      this.#beginSegment(this.#segments.find(({ from }) => from === entry.seq - 1)!, was_queued);
    }
  }

  #recordContext(session_id: string): void {
    const replayed = this.#sessions.get(session_id)?.replayed;
    if (!replayed || session_id !== this.#recording.run.session_id) return;
    this.#context_recorded = recordContextUsage(replayed.session, this.#projection, () => {});
  }

  #recordedEventsOf(segment: Segment, ready: RunnablePlan): RecordedEvents {
    const agents = this.#live_agents.map((agent) => agent.segment).filter(({ parent_id, from, to }) =>
      parent_id === segment.session_id && from > segment.from && to <= segment.to
    );
    const { events: entries, replay } = this.#recording;
    const open_calls = replay.resume ? openCallsOf(replay.history) : [];
    return new RecordedEvents({ entries, segment, own_modules: ownModules(ready), agents, open_calls });
  }

  /** Starts the run's own session, at the run's start or at a recovery. */
  #beginSegment(segment: Segment, was_queued = true): void {
    const { events, replay, run } = this.#recording;
    const { ready, secrets, limits } = this.#deps;
    const recorded = this.#recordedEventsOf(segment, ready);
    // the process ended while the run was queued
    if (recorded.all(({ event }) => event === "module:mounted").length === 0) return;
    const { session_id } = segment;
    const limitGuard = new RunLimitGuard({
      limits: events[0]!.data.limits as RunLimits, // written by `run/run.ts`
      cost_limit_is_set: replay.cost_is_asked_for,
      clock: this.#clock,
    });
    const before = events.slice(0, segment.from);
    const recovered = segment.from === 0 ? null : turnStateOf(before, session_id, replay.resume);
    if (segment.from > 0) limitGuard.restore(usedBefore(this.#projection, before, recovered));
    const { history, session_state, usages, continued } = replay;
    const replayed = new ReplaySession({
      sequencer: this.#sequencer,
      clock: this.#clock,
      recorded,
      ready,
      secrets,
      surface: replay.surface!, // checked by whyNotReplayable()
      rememberedApproval: (question, session) => this.#projection.answerTo(question, session),
      limitGuard,
      limits,
      limit: limitIn(run.stop_reason),
      stopFor: (limit) => limitGuard.stopFor(limit, "as recorded"),
      initial: was_queued ? { history, session_state, usages, continued } : {
        history: [...this.#projection.historyOf(session_id)],
        session_state: stateAfter(session_state, before, session_id),
        usages: this.#projection.usagesOf(session_id),
        continued: hasStarted(before, session_id) || continued,
      },
      ...(segment.from > 0
        ? {
          knownApproval: (question, session) => knownApproval(this.#projection.approvals, question, session),
        }
        : {}),
    });
    this.#add(replayed, limitGuard);
    void this.#runOwnSession(replayed, recovered);
  }

  #add(replayed: ReplaySession, limitGuard: RunLimitGuard): void {
    this.#sessions.set(replayed.recorded.session_id, { replayed, limitGuard });
    this.#sequencer.add(replayed);
  }

  async #runOwnSession(
    replayed: ReplaySession,
    recovered: ReturnType<typeof turnStateOf>,
  ): Promise<void> {
    const { run, events, replay: { resume } } = this.#recording;
    let outcome: Outcome;
    try {
      const prompt = resume?.prompt ?? promptOf(events, run.session_id);
      const turn_options = resume ? { resume: true, iteration: resume.iteration } : {};
      outcome = await replayed.session.execute(prompt, recovered ? { recovered } : turn_options);
      await this.#stopAgents();
      await replayed.session.cleanup(outcome.status);
    } catch (error) {
      outcome = failedOutcome(error);
    }
    if (replayed.closed) return;
    this.#sequencer.end(replayed.recorded);
    if (!replayed.recorded.ends_log) return;
    await this.#context_recorded;
    const ended = this.#projection.end(outcome, run.ended_at ?? "");
    // they come from the plan, the environment and the modules, which are not part of the replay
    ended.warnings = run.warnings;
    this.#sequencer.close(toPlainObject(ended));
  }

  /**
   * Stops the sub-agents that are still running. A recorded `cancel:requested` is replayed at its place
   * instead.
   */
  async #stopAgents(): Promise<void> {
    while (this.#agents.size > 0) {
      for (const replayed of this.#agents.keys()) {
        const data = replayed.recorded.find(
          this.#sequencer.position,
          ({ event }) => event === "cancel:requested",
        );
        if (!data) replayed.cancel("immediate");
      }
      await Promise.allSettled([...this.#agents.values()]);
    }
  }

  #beginAgent(opening: Entry): void {
    // `sourceOf` returned "agent" for this entry
    const agent = this.#live_agents.find(({ segment }) => segment.opening === opening)!;
    const parent = this.#sessions.get(opening.session_id)!; // the parent emits this entry
    const { segment, input, ready } = agent;
    const clock = this.#clock;
    const { limits } = parent.limitGuard;
    const limitGuard = input.limited
      ? childRunLimits(parent.limitGuard, ready, clock)
      // a limit that ends this turn must not end the parent's
      : new RunLimitGuard({ limits, clock, parent: parent.limitGuard });
    const counters = emptyCounters();
    const { session_state, history, usages, continued } = input;
    const replayed = new ReplaySession({
      sequencer: this.#sequencer,
      clock,
      recorded: this.#recordedEventsOf(segment, ready),
      ready,
      secrets: this.#deps.secrets,
      surface: input.surface,
      rememberedApproval: (question, session) => this.#projection.answerTo(question, session),
      limitGuard,
      limits: this.#deps.limits,
      limit: limitIn(segment.closing?.data.stop_reason),
      stopFor: (limit) =>
        (limit.startsWith("max_log_") ? parent.limitGuard : limitGuard).stopFor(limit, "as recorded"),
      initial: { parent_id: segment.parent_id, session_state, history, usages, continued },
      onEntry: (entry) => count(counters, entry),
    });
    if (continued) this.#projection.continueFrom(segment.session_id, { ...input, messages: history });
    this.#add(replayed, limitGuard);
    const done = this.#runAgent(parent.replayed, replayed, agent, () => counters.turn_count)
      .finally(() => this.#agents.delete(replayed));
    this.#agents.set(replayed, done);
  }

  /** Runs a sub-agent's turn between the parent's two events, as `src/runs/subagents/spawner.ts` does. */
  async #runAgent(
    parent: ReplaySession,
    replayed: ReplaySession,
    { segment: { opening, from, to, session_id } }: LiveAgent,
    turn_count: () => number,
  ): Promise<void> {
    const data = { ...opening.data };
    await parent.session.emit(opening.event, data);
    const prompt = promptOf(this.#recording.events.slice(from, to), session_id);
    const { outcome } = await runChildTurn(parent.session, replayed.session, String(prompt));
    if (replayed.closed) return;
    this.#sequencer.end(replayed.recorded);
    const { status, stop_reason, error } = outcome;
    await parent.session.emit("task:agent_completed", {
      ...data,
      status,
      stop_reason,
      turn_count: turn_count(),
      error,
    });
  }
}

/** Returns the name of the limit in a stop reason, or null. */
function limitIn(stop_reason: unknown): string | null {
  const reason = String(stop_reason);
  return reason.startsWith("limit:") ? reason.slice("limit:".length) : null;
}

function projectionOf({ run, replay }: Recording): RunProjection {
  return new RunProjection({
    id: run.id,
    session_id: run.session_id,
    created_at: run.created_at,
    events_url: run.events_url,
    warnings: [],
    history: replay.history,
    usages: replay.usages,
    remembered: replay.remembered,
  });
}

/** Returns the ids of the tool calls in the last assistant message of a history. */
function openCallsOf(history: readonly Message[]): string[] {
  const calls = history.findLast(({ role }) => role === "assistant")?.tool_calls;
  return Array.isArray(calls) ? calls.filter(isObject).map(({ id }) => String(id)) : [];
}

/** Returns the recorded prompt of a session. */
function promptOf(entries: readonly Entry[], session_id: string): Prompt {
  const started = entries.find((entry) =>
    entry.event === "execution:start" && entry.session_id === session_id
  );
  return (started?.data.prompt ?? "") as Prompt; // a session without `execution:start` has no prompt
}

function whyNotReplayable({ events, replay: { surface, resume } }: Recording): string | null {
  if (events.at(-1)?.event !== "run:end") return "it has not ended";
  if (surface === null) return "its session was never initialised";
  const { session_id } = events[0]!;
  const own = events.filter((entry) => entry.session_id === session_id);
  if (!resume && !own.some(({ event }) => event === "execution:start")) return "it has no turn";
  const takeover = own.findLastIndex(isTakeover);
  const since = own.slice(takeover + 1);
  if (takeover >= 0 && !since.some(({ event }) => event === "session:start" || event === "session:resume")) {
    return "its process ended, and its modules could not be mounted again";
  }
  return hasWholeResponses(own) ? null : "its orchestrator does not put the response into provider:response";
}
