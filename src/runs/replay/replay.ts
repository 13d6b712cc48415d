/**
 * Replays a recorded run and reports the first difference. Orchestrators and contexts run, those of
 * sub-agents too; everything else is read from the log. See src/docs/architecture.md#the-log-is-the-state.
 */
import type { Entry } from "../../kernel/host.ts";
import { RunLimitGuard } from "../../kernel/run_limits.ts";
import { failedOutcome, type Outcome } from "../../kernel/session/outcome.ts";
import type { KernelLimits } from "../../kernel/session/session_context.ts";
import type { InterruptedTurn } from "../../kernel/session/interrupted_turn.ts";
import { PreampError } from "../../sdk/errors.ts";
import { toPlainObject } from "../../sdk/json.ts";
import { describe } from "../../sdk/value_path.ts";
import { callsOf } from "../../sdk/loop/assistant_message.ts";
import type { Clock, Message, Prompt, RunLimits } from "../../sdk/types.ts";
import type { RunnablePlan, SecretSink } from "../ports.ts";
import { hasStarted, stateAfter, turnStateOf, usedBefore } from "../run/restored_run.ts";
import { projectionOf, recordContextUsage } from "../run/run_projection.ts";
import { childRunLimits } from "../subagents/spawner.ts";
import { runChildTurn } from "../subagents/turn.ts";
import type { Difference, Recording, ReplayReport } from "../types.ts";
import { RecordedEvents } from "./recorded_events.ts";
import { type ReplayParts, ReplaySession, type ReplaySessionOptions } from "./replay_session.ts";
import {
  hasWholeResponses,
  isTakeover,
  type LiveAgent,
  liveAgentsOf,
  loadOwn,
  ownSegments,
  type Segment,
} from "./segments.ts";
import { type ReplayedSession, Sequencer } from "./sequencer.ts";
import { VirtualClock } from "./virtual_clock.ts";

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

class Replay {
  readonly #recording: Recording;
  readonly #deps: ReplayDeps;
  readonly #live_agents: readonly LiveAgent[];
  readonly #segments: readonly Segment[];
  readonly #parts: ReplayParts;
  /** Settles when the context manager's status is in the projection. */
  #context_recorded: Promise<void> | void = undefined;
  /** Sub-agent sessions under replay → settled when each has ended. */
  readonly #agents = new Map<ReplaySession, Promise<void>>();

  constructor(recording: Recording, deps: ReplayDeps, live_agents: readonly LiveAgent[]) {
    const { run, events, replay } = recording;
    const { secrets, limits } = deps;
    this.#recording = recording;
    this.#deps = deps;
    this.#live_agents = live_agents;
    this.#segments = ownSegments(events);
    const clock = new VirtualClock(Date.parse(events[0]!.ts));
    const sequencer = new Sequencer({
      entries: events,
      clock,
      real_clock: deps.clock,
      secrets,
      beginAgent: (opening) => this.#beginAgent(opening),
      onEntry: (entry) => this.#applyEntry(entry),
    });
    this.#parts = { sequencer, clock, projection: projectionOf(run, replay), secrets, limits };
  }

  /** Resolves to the first difference, or to null. */
  async run(): Promise<Difference | null> {
    const { sequencer } = this.#parts;
    this.#beginSegment(this.#segments[0]!); // a log has at least one segment
    sequencer.advance();
    const difference = await sequencer.finished;
    await Promise.all([...sequencer.sessions.values()].map(({ session }) => session.abandon()));
    if (difference !== null) sequencer.clear(); // their further events are ignored
    return difference;
  }

  #applyEntry(entry: Entry): void {
    const { projection, sequencer } = this.#parts;
    const was_queued = projection.status === "queued";
    projection.add(entry);
    if (entry.event === "provider:response" && entry.session_id === this.#recording.run.session_id) {
      const session = sequencer.sessions.get(entry.session_id)?.session;
      if (session) this.#context_recorded = recordContextUsage(session, projection, () => {});
    } else if (isTakeover(entry)) {
      sequencer.clear();
      this.#agents.clear();
      // set again by the next response
      projection.context = { tokens: 0, budget: 0, level: 0, compactions: 0 };
      // every recovery begins a segment
      this.#beginSegment(this.#segments.find(({ from }) => from === entry.seq - 1)!, was_queued);
    }
  }

  #addSession(segment: Segment, options: Omit<ReplaySessionOptions, "recorded">): ReplaySession {
    const { events: entries, replay } = this.#recording;
    const { orchestrator, context } = options.ready.compiled.plan.session;
    const foreign_context = options.surface.foreign?.includes("context") === true;
    const own = foreign_context ? [orchestrator] : [orchestrator, context];
    const recorded = new RecordedEvents({
      entries,
      segment,
      own_modules: own.map((spec) => spec.instance_id ?? spec.module),
      foreign_context,
      agents: this.#live_agents.filter(({ opening, to }) =>
        opening.session_id === segment.session_id && opening.seq > segment.from && to <= segment.to
      ),
      open_calls: replay.resume ? openCallsOf(replay.history) : [],
    });
    const session = new ReplaySession(this.#parts, { ...options, recorded });
    this.#parts.sequencer.sessions.set(segment.session_id, session);
    return session;
  }

  /** Starts the run's own session, at the run's start or at a recovery. */
  #beginSegment(segment: Segment, was_queued = true): void {
    const { events, replay, run } = this.#recording;
    const { clock, projection } = this.#parts;
    const { session_id, from, to } = segment;
    // the process ended while the run was queued
    if (!events.slice(from, to).some(({ event }) => event === "module:mounted")) return;
    const limitGuard = new RunLimitGuard({
      limits: events[0]!.data.limits as RunLimits, // written by `run/run.ts`
      cost_limit_is_set: replay.cost_is_asked_for,
      clock,
    });
    const before = events.slice(0, from);
    const recovered = from === 0 ? null : turnStateOf(before, session_id, replay.resume);
    if (from > 0) limitGuard.restore(usedBefore(projection, before, recovered));
    const session = this.#addSession(segment, {
      ready: this.#deps.ready,
      surface: replay.surface!, // checked by whyNotReplayable()
      limitGuard,
      stop_reason: run.stop_reason,
      initial: was_queued ? replay : {
        history: [...projection.of(session_id).history],
        session_state: stateAfter(replay.session_state, before, session_id),
        usages: projection.of(session_id).usages,
        continued: hasStarted(before, session_id) || replay.continued,
      },
    });
    void this.#runOwnSession(session, recovered);
  }

  async #runOwnSession(replayed: ReplaySession, recovered: InterruptedTurn | null): Promise<void> {
    const { run, replay: { resume } } = this.#recording;
    const { session, recorded } = replayed;
    let outcome: Outcome;
    try {
      const prompt = resume?.prompt ?? promptOf(recorded);
      const turn_options = resume ? { resume: true, iteration: resume.iteration } : {};
      outcome = await session.execute(prompt, recovered ? { recovered } : turn_options);
      await this.#stopAgents();
      await session.cleanup(outcome.status);
    } catch (error) {
      outcome = failedOutcome(error);
    }
    if (replayed.closed) return;
    const { sequencer, projection } = this.#parts;
    sequencer.end(replayed);
    if (!recorded.ends_log) return;
    await this.#context_recorded;
    const ended = projection.end(outcome, run.ended_at ?? "");
    // they come from the plan, the environment and the modules, which are not part of the replay
    ended.warnings = run.warnings;
    if (recorded.foreign_context) ended.context = run.context;
    sequencer.close(toPlainObject(ended));
  }

  /** Stops the running sub-agents. A recorded `cancel:requested` is replayed at its place instead. */
  async #stopAgents(): Promise<void> {
    const { sequencer } = this.#parts;
    while (this.#agents.size > 0) {
      for (const { recorded, session } of this.#agents.keys()) {
        const requested = recorded.find(sequencer.position, ({ event }) => event === "cancel:requested");
        if (!requested) void session.cancel("immediate");
      }
      await Promise.allSettled([...this.#agents.values()]);
    }
  }

  #beginAgent(opening: Entry): void {
    const { clock, projection, sequencer } = this.#parts;
    // `sourceOf` returned "agent" for this entry
    const agent = this.#live_agents.find((live) => live.opening === opening)!;
    const parent = sequencer.sessions.get(opening.session_id)!; // the parent emits this entry
    const { input, ready, closing, session_id } = agent;
    const session = this.#addSession(agent, {
      ready,
      surface: input.surface,
      limitGuard: input.limited
        ? childRunLimits(parent.limitGuard, ready, clock)
        // a limit that ends this turn must not end the parent's
        : new RunLimitGuard({ limits: parent.limitGuard.limits, clock, parent: parent.limitGuard }),
      stop_reason: closing?.data.stop_reason,
      initial: input,
      parent,
    });
    if (input.continued) projection.continueFrom(session_id, { ...input, messages: input.history });
    const done = this.#runAgent(parent, session, agent).finally(() => this.#agents.delete(session));
    this.#agents.set(session, done);
  }

  /** Runs a sub-agent's turn between the parent's two events, as `src/runs/subagents/spawner.ts` does. */
  async #runAgent(parent: ReplayedSession, child: ReplaySession, agent: LiveAgent): Promise<void> {
    const { opening: { event, data }, session_id } = agent;
    const counters = this.#parts.projection.of(session_id).counters;
    const before = counters.turn_count;
    await parent.session.emit(event, { ...data });
    const prompt = String(promptOf(child.recorded));
    const { outcome } = await runChildTurn(parent.session, child.session, prompt);
    if (child.closed) return;
    this.#parts.sequencer.end(child);
    const { status, stop_reason, error } = outcome;
    const turn_count = counters.turn_count - before;
    await parent.session.emit("task:agent_completed", { ...data, status, stop_reason, turn_count, error });
  }
}

/** Returns the ids of the tool calls in the last assistant message of a history. */
function openCallsOf(history: readonly Message[]): string[] {
  const last = history.findLast(({ role }) => role === "assistant");
  return last ? callsOf(last).map(({ id }) => id) : [];
}

/** Returns the recorded prompt of a session; an earlier process may have recorded it. */
function promptOf(recorded: RecordedEvents): Prompt {
  const isStart = ({ event }: Entry) => event === "execution:start";
  const started = recorded.find(0, isStart) ?? recorded.findBefore(isStart);
  return (started?.data.prompt ?? "") as Prompt; // a session without `execution:start` has no prompt
}

function whyNotReplayable({ events, replay: { surface, resume } }: Recording): string | null {
  if (events.at(-1)?.event !== "run:end") return "it has not ended";
  const gap = events.findIndex(({ seq }, index) => seq !== index + 1);
  if (gap >= 0) {
    return `its entries must be numbered 1, 2, 3 …: entry ${gap + 1} has seq ${describe(events[gap]!.seq)}`;
  }
  if (surface === null) return "its session was never initialised";
  if (surface.foreign?.includes("orchestrator")) {
    return "a provider, a tool or a hook mounted its orchestrator";
  }
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
