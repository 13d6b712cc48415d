/**
 * Replays a recorded run: runs its turns again on the recorded answers of models and tools, and says what the
 * agent does differently, or what its models were sent. See src/docs/events.md#replay.
 */
import type { Entry } from "../../kernel/host.ts";
import { RunLimitGuard } from "../../kernel/run_limits.ts";
import { PreampError } from "../../sdk/errors.ts";
import { isObject } from "../../sdk/json.ts";
import type { RunLimits } from "../../sdk/types.ts";
import { callsOf } from "../../sdk/loop/assistant_message.ts";
import { describe } from "../../sdk/value_path.ts";
import type { RunnablePlan } from "../ports.ts";
import { childRunLimits } from "../subagents/spawner.ts";
import type { ModelRequest, Page, Recording, ReplayReport } from "../types.ts";
import { firstDifference, type TurnPlace } from "./compare.ts";
import { RecordedTurn } from "./recorded_turn.ts";
import { InstantClock, type ReplayDeps, replayTurn, type TurnInput } from "./replay_turn.ts";
import { type CallPlace, WantedCalls } from "./wanted_calls.ts";

/** Replays a run. @throws {PreampError} `not_replayable` when the log lacks something that a replay needs. */
export async function replay(recording: Recording, deps: ReplayDeps): Promise<ReplayReport> {
  const { events, replay: { surface } } = recording;
  if (events.at(-1)?.event !== "run:end") throw notReplayable(recording, "it has not ended");
  if (surface === null) throw notReplayable(recording, "its session was never initialised");
  for await (const { input, place, clock } of turnsOf(recording, deps)) {
    if (input.recorded.end.status === null) continue; // the process of a sub-agent ended
    const first_difference = firstDifference(input.recorded, await replayTurn(input, clock, deps), place);
    if (first_difference) return { equal: false, first_difference };
  }
  return { equal: true };
}

/**
 * Resolves to what models were sent in the recorded calls of a page, in the order of the calls. Each turn is
 * replayed up to its last call of the page. The run may still be active.
 *
 * @throws {PreampError} `not_replayable` when the log lacks something that a replay needs.
 */
export async function requestsOf(
  recording: Recording,
  deps: ReplayDeps,
  place: CallPlace,
): Promise<Page<ModelRequest>> {
  const wanted = new WantedCalls(recording.events, place);
  if (recording.events.every(({ event }) => event !== "provider:request")) return wanted.page;
  if (recording.replay.surface?.foreign?.includes("context")) {
    throw notReplayable(recording, "a provider, a tool or a hook mounted its context manager");
  }
  for await (const { input, clock } of turnsOf(recording, deps)) {
    if (input.surface.foreign?.includes("context") || !wanted.hasSome(input.recorded.requested)) continue;
    input.ready.registerSecrets(deps.secrets);
    await replayTurn(input, clock, deps, wanted);
  }
  return wanted.page;
}

/** A turn to replay. */
interface ReplayableTurn {
  readonly input: TurnInput;
  readonly place: TurnPlace;
  readonly clock: InstantClock;
}

/** Yields the turns of a recording: the run's own, then those of sub-agents. */
async function* turnsOf(recording: Recording, deps: ReplayDeps): AsyncGenerator<ReplayableTurn> {
  const reason = whyNotReplayable(recording);
  if (reason !== null) throw notReplayable(recording, reason);
  const own = ownTurn(recording, deps);
  await loadOwn(own.input.ready);
  yield own;
  for await (const turn of agentTurns(recording, deps)) {
    await loadOwn(turn.input.ready);
    yield turn;
  }
}

function ownTurn(recording: Recording, deps: ReplayDeps): ReplayableTurn {
  const { run, events, replay } = recording;
  const last = replay.resume && replay.history.findLast(({ role }) => role === "assistant");
  const open_calls = last ? callsOf(last).map(({ id }) => id) : [];
  const { status, stop_reason } = run;
  // the text of an answer that was broken off depends on the moment
  const output_text = status === "completed" ? run.output_text : null;
  const recorded = new RecordedTurn(events, run.session_id, { status, stop_reason, output_text }, open_calls);
  const clock = clockOf(recording);
  const limitGuard = runLimits(recording, clock);
  limitGuard.raise(wrapUpLimit(events.filter((entry) => entry.session_id === run.session_id)));
  return {
    input: {
      recorded,
      open_calls,
      ready: deps.ready,
      surface: replay.surface!, // a session with a turn is initialised
      initial: replay,
      limitGuard,
      resume: replay.resume,
      parent_id: null,
    },
    place: { session_id: run.session_id, turn: 1, agent: null },
    clock,
  };
}

/**
 * Yields the turns of sub-agents: those whose start is known, and whose loop puts its answers into
 * `provider:response`. The end of one that runs, or ran in a crashed process, has the status null.
 */
async function* agentTurns(recording: Recording, deps: ReplayDeps): AsyncGenerator<ReplayableTurn> {
  const { run, events, replay: { agents = [] } } = recording;
  const plans = new Map([[run.session_id, deps.ready]]);
  const turns = new Map<string, number>();
  for (const opening of events) {
    if (opening.event !== "task:agent_spawned" && opening.event !== "task:agent_resumed") continue;
    const session_id = String(opening.data.sub_session_id);
    const turn = (turns.get(session_id) ?? 0) + 1;
    turns.set(session_id, turn);
    const to = events.findIndex((entry) => entry.seq > opening.seq && isEndOf(entry, opening));
    const entries = events.slice(opening.seq, to < 0 ? undefined : to).filter((entry) =>
      entry.session_id === session_id
    );
    const turn_id = entries.find((entry) => entry.turn_id !== undefined)?.turn_id;
    const input = agents.find((agent) => agent.session_id === session_id && agent.turn_id === turn_id);
    const parent = plans.get(opening.session_id)?.agents;
    if (!input || !parent || !hasWholeResponses(entries)) continue;
    if (input.surface.foreign?.includes("orchestrator")) continue;
    const ready = await parent.child(input.plan);
    plans.set(session_id, ready);
    const { status = null, stop_reason = null } = events[to]?.data ?? {};
    const clock = clockOf(recording);
    const whole = runLimits(recording, clock);
    const limitGuard = input.limited ? childRunLimits(whole, ready, clock) : whole;
    limitGuard.raise(wrapUpLimit(entries));
    yield {
      input: {
        recorded: new RecordedTurn(entries, session_id, { status, stop_reason, output_text: null }),
        open_calls: [],
        ready,
        surface: input.surface,
        initial: input,
        limitGuard,
        resume: undefined,
        parent_id: opening.session_id,
      },
      place: {
        session_id,
        turn,
        agent: typeof opening.data.agent === "string" ? opening.data.agent : "self",
      },
      clock,
    };
  }
}

/** Fetches the modules that run in a replay, unless they are compiled in. */
async function loadOwn(ready: RunnablePlan): Promise<void> {
  const { orchestrator, context } = ready.compiled.plan.session;
  if ([orchestrator, context].some(({ source }) => source.kind !== "builtin")) await ready.load?.();
}

function clockOf({ events }: Recording): InstantClock {
  return new InstantClock(Date.parse(events[0]!.ts)); // a log that ended has entries
}

/**
 * The last limits, also those that a person raised meanwhile: a replay asks no one. Calls that a crash
 * interrupted were not refused, so they are not here.
 */
function runLimits({ run, replay }: Recording, clock: InstantClock): RunLimitGuard {
  const max_tool_calls = Math.max(run.limits.max_tool_calls, run.tool_call_count);
  const limits = { ...run.limits, max_tool_calls };
  return new RunLimitGuard({ limits, cost_limit_is_set: replay.cost_is_asked_for, clock });
}

/**
 * Returns the limit with which a loop makes its last call where it did: sub-agents, whose calls a replay does
 * not count, used up the rest of the run's.
 */
function wrapUpLimit(entries: readonly Entry[]): Partial<RunLimits> {
  const { iteration } =
    entries.find(({ event, data }) => event === "provider:request" && data.max_reached === true)
      ?.data ?? {};
  return typeof iteration === "number" ? { max_iterations: iteration } : {};
}

function isEndOf({ event, session_id, data }: Entry, opening: Entry): boolean {
  return event === "task:agent_completed" && session_id === opening.session_id &&
    data.sub_session_id === opening.data.sub_session_id;
}

/** Returns whether every `provider:response` contains the response. */
function hasWholeResponses(entries: readonly Entry[]): boolean {
  return entries.every(({ event, data }) =>
    event !== "provider:response" || isObject(data.response) && Array.isArray(data.response.content)
  );
}

function notReplayable({ run }: Recording, reason: string): PreampError {
  return new PreampError("not_replayable", `Cannot replay run "${run.id}": ${reason}`);
}

function whyNotReplayable({ events, replay: { surface, resume } }: Recording): string | null {
  const gap = events.findIndex(({ seq }, index) => seq !== index + 1);
  if (gap >= 0) {
    return `its entries must be numbered 1, 2, 3 …: entry ${gap + 1} has seq ${describe(events[gap]!.seq)}`;
  }
  if (surface?.foreign?.includes("orchestrator")) {
    return "a provider, a tool or a hook mounted its orchestrator";
  }
  const { session_id } = events[0]!;
  const own = events.filter((entry) => entry.session_id === session_id);
  if (!resume && !own.some(({ event }) => event === "execution:start")) return "it has no turn";
  return hasWholeResponses(own) ? null : "its orchestrator does not put the response into provider:response";
}
