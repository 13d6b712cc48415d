/**
 * Replays a recorded run: orchestrators and contexts for real, its sub-agents' too, everything else from the log; says where
 * the two segment (architecture.md, Replay).
 */
import { RunLimitGuard } from "../../kernel/run_limits.ts";
import type { KernelLimits } from "../../kernel/session/session_context.ts";
import type { Entry } from "../../kernel/host.ts";
import type { Outcome } from "../../kernel/session/outcome.ts";
import { count, emptyCounters } from "../../sdk/session_counters.ts";
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

/** What a replay needs beside the recording. */
export interface ReplayDeps {
  /** The recording's plan, checked: where orchestrator and context come from. */
  ready: RunnablePlan;
  secrets: SecretSink;
  clock: Clock;
  limits: KernelLimits;
}

/** Replays a run. @throws {PreampError} `not_replayable` when its log does not hold what a replay needs. */
export async function replay(recording: Recording, deps: ReplayDeps): Promise<ReplayReport> {
  const reason = whyNotReplayable(recording);
  if (reason !== null) {
    throw new PreampError("not_replayable", `Cannot replay run "${recording.run.id}": ${reason}`);
  }
  await loadOwn(deps.ready);
  const difference = await new Replay(recording, deps, await liveAgentsOf(recording, deps.ready)).run();
  return difference === null ? { equal: true } : { equal: false, first_difference: difference };
}

/** A session on the replayed, and what its agents are made within. */
interface RunningSession {
  readonly replayed: ReplaySession;
  readonly ceilings: RunLimitGuard;
}

class Replay {
  readonly #recording: Recording;
  readonly #deps: ReplayDeps;
  readonly #live_agents: readonly LiveAgent[];
  readonly #segments: readonly Segment[];
  readonly #clock: VirtualClock;
  readonly #projection: RunProjection;
  /** Until what the context manager says of itself is in the projection. */
  #context_recorded: Promise<void> | undefined;
  readonly #sequencer: Sequencer;
  readonly #sessions = new Map<string, RunningSession>();
  /** Sub-agents at work, and when each has ended. */
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
    this.#beginSegment(first!); // a log has one
    this.#sequencer.start();
    const difference = await this.#sequencer.finished;
    await Promise.all([...this.#sessions.values()].map(({ replayed }) => replayed.session.abandon()));
    if (difference !== null) this.#clear(); // whatever they still do, nobody looks at
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
      projection.context = { tokens: 0, budget: 0, level: 0, compactions: 0 }; // data at the next answer
      this.#beginSegment(this.#segments.find(({ from }) => from === entry.seq - 1)!, was_queued); // each begins with one
    }
  }

  #recordContext(session_id: string): void {
    const replayed = this.#sessions.get(session_id)?.replayed;
    if (!replayed || session_id !== this.#recording.run.session_id) return;
    this.#context_recorded = recordContextUsage(replayed.session, this.#projection, () => {}) ??
      this.#context_recorded;
  }

  #recordedEventsOf(segment: Segment, ready: RunnablePlan): RecordedEvents {
    const agents = this.#live_agents.map((agent) => agent.segment).filter(({ parent_id, from, to }) =>
      parent_id === segment.session_id && from > segment.from && to <= segment.to
    );
    const { events: entries, replay } = this.#recording;
    const open_calls = replay.resume ? openCallsOf(replay.history) : [];
    return new RecordedEvents({ entries, segment, own_modules: ownModules(ready), agents, open_calls });
  }

  /** Begins the run's own session: anew, or where another process took it over. */
  #beginSegment(segment: Segment, was_queued = true): void {
    const { events, replay, run } = this.#recording;
    const { ready, secrets, limits } = this.#deps;
    const recorded = this.#recordedEventsOf(segment, ready);
    if (recorded.all(({ event }) => event === "module:mounted").length === 0) return; // its process ended while it waited
    const { session_id } = segment;
    const ceilings = new RunLimitGuard({
      limits: events[0]!.data.limits as RunLimits, // written by the runner
      cost_limit_is_set: replay.cost_is_asked_for,
      clock: this.#clock,
    });
    const before = events.slice(0, segment.from);
    const recovered = segment.from === 0 ? null : turnStateOf(before, session_id, replay.resume);
    if (segment.from > 0) ceilings.restore(usedBefore(this.#projection, before, recovered));
    const { history, session_state, usages, continued } = replay;
    const replayed = new ReplaySession({
      sequencer: this.#sequencer,
      clock: this.#clock,
      recorded,
      ready,
      secrets,
      surface: replay.surface!, // it is replayable
      rememberedApproval: (asked, of) => this.#projection.answerTo(asked, of),
      ceilings,
      limits,
      limit: limitIn(run.stop_reason),
      stopFor: (limit) => ceilings.stopFor(limit, "as recorded"),
      initial: was_queued ? { history, session_state, usages, continued } : {
        history: [...this.#projection.historyOf(session_id)],
        session_state: stateAfter(session_state, before, session_id),
        usages: this.#projection.usagesOf(session_id),
        continued: hasStarted(before, session_id) || continued,
      },
      ...(segment.from > 0
        ? { knownApproval: (asked, of) => knownApproval(this.#projection.approvals, asked, of) }
        : {}),
    });
    this.#add(replayed, ceilings);
    void this.#runOwnSession(replayed, recovered);
  }

  #add(replayed: ReplaySession, ceilings: RunLimitGuard): void {
    this.#sessions.set(replayed.recorded.session_id, { replayed, ceilings });
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
    ended.warnings = run.warnings; // they come from the plan, the environment and the modules, which are not here
    this.#sequencer.close(toPlainObject(ended));
  }

  /** A run ends with no agent behind it. Where the log tells of the stop, the agent comes to that place first, as it did then. */
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
    const agent = this.#live_agents.find(({ segment }) => segment.opening === opening)!; // the recorded says so of these alone
    const parent = this.#sessions.get(opening.session_id)!; // it tells the opening
    const { segment, input, ready } = agent;
    const clock = this.#clock;
    const { limits } = parent.ceilings;
    const ceilings = input.limited
      ? childRunLimits(parent.ceilings, ready, clock)
      : new RunLimitGuard({ limits, clock, parent: parent.ceilings }); // what ends this turn alone, ends this alone
    const counters = emptyCounters();
    const { session_state, history, usages, continued } = input;
    const replayed = new ReplaySession({
      sequencer: this.#sequencer,
      clock,
      recorded: this.#recordedEventsOf(segment, ready),
      ready,
      secrets: this.#deps.secrets,
      surface: input.surface,
      rememberedApproval: (asked, of) => this.#projection.answerTo(asked, of),
      ceilings,
      limits: this.#deps.limits,
      limit: limitIn(segment.closing?.data.stop_reason),
      stopFor: (limit) =>
        (limit.startsWith("max_log_") ? parent.ceilings : ceilings).stopFor(limit, "as recorded"),
      initial: { parent_id: segment.parent_id, session_state, history, usages, continued },
      onEntry: (entry) => count(counters, entry),
    });
    if (continued) this.#projection.continueFrom(segment.session_id, { ...input, messages: history });
    this.#add(replayed, ceilings);
    const done = this.#runAgent(parent.replayed, replayed, agent, () => counters.turn_count)
      .finally(() => this.#agents.delete(replayed));
    this.#agents.set(replayed, done);
  }

  /** As `runs/subagents/spawner.ts` has it: the turn between the two events that the parent tells of it. */
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

/** Returns the name of the ceiling that a stop reason tells, or null. */
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

/** Ids of the calls that a history ends with, answered or not. */
function openCallsOf(history: readonly Message[]): string[] {
  const calls = history.findLast(({ role }) => role === "assistant")?.tool_calls;
  return Array.isArray(calls) ? calls.filter(isObject).map(({ id }) => String(id)) : [];
}

/** The prompt of a session as the log tells it. */
function promptOf(entries: readonly Entry[], session_id: string): Prompt {
  const started = entries.find((entry) =>
    entry.event === "execution:start" && entry.session_id === session_id
  );
  return (started?.data.prompt ?? "") as Prompt; // a session that data none has none
}

function whyNotReplayable({ events, replay: { surface, resume } }: Recording): string | null {
  if (events.at(-1)?.event !== "run:end") return "it has not ended";
  if (surface === null) return "its session was never initialised";
  const { session_id } = events[0]!;
  const own = events.filter((entry) => entry.session_id === session_id);
  if (!resume && !own.some(({ event }) => event === "execution:start")) return "no turn was begun";
  const takeover = own.findLastIndex(isTakeover);
  const since = own.slice(takeover + 1);
  if (takeover >= 0 && !since.some(({ event }) => event === "session:start" || event === "session:resume")) {
    return "its process ended, and its modules could not be mounted again";
  }
  return hasWholeResponses(own) ? null : "its orchestrator does not put the response into provider:response";
}
