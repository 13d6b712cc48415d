/**
 * Replays a recorded run: orchestrators and contexts for real, its sub-agents' too, everything else from the log; says where
 * the two part (architecture.md, Replay).
 */
import { RunLimitGuard } from "../../kernel/run_limits.ts";
import type { KernelLimits } from "../../kernel/session/session_context.ts";
import type { Entry } from "../../kernel/host.ts";
import type { Outcome } from "../../kernel/session/outcome.ts";
import { count, emptyCounters } from "../../sdk/session_counters.ts";
import { errorMessage, PreampError } from "../../sdk/errors.ts";
import { isObject, toPlainObject } from "../../sdk/json.ts";
import type { Clock, Message, Prompt, RunLimits } from "../../sdk/types.ts";
import { follow } from "../subagents/turn.ts";
import type { RunnablePlan, SecretSink } from "../ports.ts";
import { noteContext } from "../run/context_status.ts";
import { RunProjection } from "../run/run_projection.ts";
import { hasStarted, knownApproval, stateAfter, turnStateOf, usedBefore } from "../scheduler/crash_state.ts";
import type { Recording } from "../storage/run_input.ts";
import { ownCeilings } from "../subagents/spawner.ts";
import type { Difference } from "./compare.ts";
import { Sequencer } from "./sequencer.ts";
import { isTakeover, ownParts, type Segment } from "./segments.ts";
import { ReplayClock } from "./virtual_clock.ts";
import { type Role, rolesOf, tellsResponses } from "./subagents.ts";
import { loadOwn, ownModules, ReplaySession } from "./replay_session.ts";
import { RecordedEvents } from "./recorded_events.ts";

/** What a replay came to. */
export interface ReplayReport {
  equal: boolean;
  first_difference?: Difference;
}

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
  const fact = whyNot(recording);
  if (fact !== null) {
    throw new PreampError("not_replayable", `Cannot replay run "${recording.run.id}": ${fact}`);
  }
  await loadOwn(deps.ready);
  const difference = await new Replay(recording, deps, await rolesOf(recording, deps.ready)).perform();
  return difference === null ? { equal: true } : { equal: false, first_difference: difference };
}

/** A session on the stage, and what its agents are made within. */
interface Acting {
  readonly stage: ReplaySession;
  readonly ceilings: RunLimitGuard;
}

class Replay {
  readonly #recording: Recording;
  readonly #deps: ReplayDeps;
  readonly #roles: readonly Role[];
  readonly #parts: readonly Segment[];
  readonly #clock: ReplayClock;
  readonly #fold: RunProjection;
  /** Until what the context manager says of itself is in the fold. */
  #noted: Promise<void> | undefined;
  readonly #conductor: Sequencer;
  readonly #acting = new Map<string, Acting>();
  /** Sub-agents at work, and when each has ended. */
  readonly #agents = new Map<ReplaySession, Promise<void>>();

  constructor(recording: Recording, deps: ReplayDeps, roles: readonly Role[]) {
    const { events } = recording;
    this.#recording = recording;
    this.#deps = deps;
    this.#roles = roles;
    this.#parts = ownParts(events);
    this.#clock = new ReplayClock(Date.parse(events[0]!.ts));
    this.#fold = foldOf(recording);
    this.#conductor = new Sequencer({
      entries: events,
      clock: this.#clock,
      real_clock: deps.clock,
      secrets: deps.secrets,
      beginAgent: (opening) => this.#beginAgent(opening),
      played: (entry) => this.#played(entry),
    });
  }

  /** Resolves to the first difference, or to null. */
  async perform(): Promise<Difference | null> {
    const [first] = this.#parts;
    this.#begin(first!); // a log has one
    this.#conductor.start();
    const difference = await this.#conductor.finished;
    await Promise.all([...this.#acting.values()].map(({ stage }) => stage.session.abandon()));
    if (difference !== null) this.#clear(); // whatever they still do, nobody looks at
    return difference;
  }

  #clear(): void {
    for (const { stage } of this.#acting.values()) stage.close();
    this.#acting.clear();
    this.#agents.clear();
    this.#conductor.clear();
  }

  #played(entry: Entry): void {
    const fold = this.#fold;
    const was_queued = fold.status === "queued";
    fold.add(entry);
    if (entry.event === "provider:response") this.#noteContext(entry.session_id);
    else if (isTakeover(entry)) {
      this.#clear();
      fold.context = { tokens: 0, budget: 0, level: 0, compactions: 0 }; // told at the next answer
      this.#begin(this.#parts.find(({ from }) => from === entry.seq - 1)!, was_queued); // each begins with one
    }
  }

  #noteContext(session_id: string): void {
    const stage = this.#acting.get(session_id)?.stage;
    if (!stage || session_id !== this.#recording.run.session_id) return;
    this.#noted = noteContext(stage.session, this.#fold, () => {}) ?? this.#noted;
  }

  #tapeOf(part: Segment, ready: RunnablePlan): RecordedEvents {
    const agents = this.#roles.map((role) => role.part).filter(({ parent_id, from, to }) =>
      parent_id === part.session_id && from > part.from && to <= part.to
    );
    const { events: entries, replay } = this.#recording;
    const open_calls = replay.resume ? openCallsOf(replay.history) : [];
    return new RecordedEvents({ entries, part, own_modules: ownModules(ready), agents, open_calls });
  }

  /** Begins the run's own session: anew, or where another process took it over. */
  #begin(part: Segment, was_queued = true): void {
    const { events, replay, run } = this.#recording;
    const { ready, secrets, limits } = this.#deps;
    const tape = this.#tapeOf(part, ready);
    if (tape.all(({ event }) => event === "module:mounted").length === 0) return; // its process ended while it waited
    const { session_id } = part;
    const ceilings = new RunLimitGuard({
      limits: events[0]!.data.limits as RunLimits, // written by the runner
      cost_limit_is_set: replay.cost_is_asked_for,
      clock: this.#clock,
    });
    const before = events.slice(0, part.from);
    const recovered = part.from === 0 ? null : turnStateOf(before, session_id, replay.resume);
    if (part.from > 0) ceilings.restore(usedBefore(this.#fold, before, recovered));
    const { history, session_state, usages, continued } = replay;
    const stage = new ReplaySession({
      conductor: this.#conductor,
      clock: this.#clock,
      tape,
      ready,
      secrets,
      surface: replay.surface!, // it is replayable
      rememberedApproval: (asked, of) => this.#fold.answerTo(asked, of),
      ceilings,
      limits,
      limit: limitIn(run.stop_reason),
      stopFor: (limit) => ceilings.stopFor(limit, "as recorded"),
      standing: was_queued ? { history, session_state, usages, continued } : {
        history: [...this.#fold.historyOf(session_id)],
        session_state: stateAfter(session_state, before, session_id),
        usages: this.#fold.usagesOf(session_id),
        continued: hasStarted(before, session_id) || continued,
      },
      ...(part.from > 0
        ? { knownApproval: (asked, of) => knownApproval(this.#fold.approvals, asked, of) }
        : {}),
    });
    this.#enter(stage, ceilings);
    void this.#performOwn(stage, recovered);
  }

  #enter(stage: ReplaySession, ceilings: RunLimitGuard): void {
    this.#acting.set(stage.tape.session_id, { stage, ceilings });
    this.#conductor.enter(stage);
  }

  async #performOwn(
    stage: ReplaySession,
    recovered: ReturnType<typeof turnStateOf>,
  ): Promise<void> {
    const { run, events, replay: { resume } } = this.#recording;
    let outcome: Outcome;
    try {
      const prompt = resume?.prompt ?? promptOf(events, run.session_id);
      const begun = resume ? { resume: true, iteration: resume.iteration } : {};
      outcome = await stage.session.execute(prompt, recovered ? { recovered } : begun);
      await this.#stopAgents();
      await stage.session.cleanup(outcome.status);
    } catch (error) {
      outcome = failure(error);
    }
    if (stage.closed) return;
    this.#conductor.end(stage.tape);
    if (!stage.tape.ends_log) return;
    await this.#noted;
    const ended = this.#fold.end(outcome, run.ended_at ?? "");
    ended.warnings = run.warnings; // they come from the plan, the environment and the modules, which are not here
    this.#conductor.close(toPlainObject(ended));
  }

  /** A run ends with no agent behind it. Where the log tells of the stop, the agent comes to that place first, as it did then. */
  async #stopAgents(): Promise<void> {
    while (this.#agents.size > 0) {
      for (const stage of this.#agents.keys()) {
        const told = stage.tape.find(this.#conductor.position, ({ event }) => event === "cancel:requested");
        if (!told) stage.cancel("immediate");
      }
      await Promise.allSettled([...this.#agents.values()]);
    }
  }

  #beginAgent(opening: Entry): void {
    const role = this.#roles.find(({ part }) => part.opening === opening)!; // the tape says so of these alone
    const parent = this.#acting.get(opening.session_id)!; // it tells the opening
    const { part, input, ready } = role;
    const clock = this.#clock;
    const { limits } = parent.ceilings;
    const ceilings = input.limited
      ? ownCeilings(parent.ceilings, ready, clock)
      : new RunLimitGuard({ limits, clock, parent: parent.ceilings }); // what ends this turn alone, ends this alone
    const counters = emptyCounters();
    const { session_state, history, usages, continued } = input;
    const stage = new ReplaySession({
      conductor: this.#conductor,
      clock,
      tape: this.#tapeOf(part, ready),
      ready,
      secrets: this.#deps.secrets,
      surface: input.surface,
      rememberedApproval: (asked, of) => this.#fold.answerTo(asked, of),
      ceilings,
      limits: this.#deps.limits,
      limit: limitIn(part.closing?.data.stop_reason),
      stopFor: (limit) =>
        (limit.startsWith("max_log_") ? parent.ceilings : ceilings).stopFor(limit, "as recorded"),
      standing: { parent_id: part.parent_id, session_state, history, usages, continued },
      made: (entry) => count(counters, entry),
    });
    if (continued) this.#fold.continueFrom(part.session_id, { ...input, messages: history });
    this.#enter(stage, ceilings);
    const done = this.#performAgent(parent.stage, stage, role, () => counters.turn_count)
      .finally(() => this.#agents.delete(stage));
    this.#agents.set(stage, done);
  }

  /** As `runs/subagents/spawner.ts` has it: the turn between the two events that the parent tells of it. */
  async #performAgent(
    parent: ReplaySession,
    stage: ReplaySession,
    { part: { opening, from, to, session_id } }: Role,
    turn_count: () => number,
  ): Promise<void> {
    const told = { ...opening.data };
    await parent.session.emit(opening.event, told);
    const prompt = promptOf(this.#recording.events.slice(from, to), session_id);
    const { outcome } = await follow(parent.session, stage.session, String(prompt));
    if (stage.closed) return;
    this.#conductor.end(stage.tape);
    const { status, stop_reason, error } = outcome;
    await parent.session.emit("task:agent_completed", {
      ...told,
      status,
      stop_reason,
      turn_count: turn_count(),
      error,
    });
  }
}

function failure(error: unknown): Outcome {
  return {
    status: "failed",
    stop_reason: "error",
    output_text: "",
    output: [],
    error: { code: "internal", message: errorMessage(error) },
  };
}

/** Returns the name of the ceiling that a stop reason tells, or null. */
function limitIn(stop_reason: unknown): string | null {
  const reason = String(stop_reason);
  return reason.startsWith("limit:") ? reason.slice("limit:".length) : null;
}

function foldOf({ run, replay }: Recording): RunProjection {
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
  return (started?.data.prompt ?? "") as Prompt; // a session that told none has none
}

function whyNot({ events, replay: { surface, resume } }: Recording): string | null {
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
  return tellsResponses(own) ? null : "its orchestrator does not put the response into provider:response";
}
