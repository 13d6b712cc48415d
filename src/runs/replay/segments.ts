/**
 * Splits a recorded log into segments: the run's own session from its start or from a recovery, and each turn
 * of a sub-agent. Selects the turns that are replayed; the others are played back.
 */
import type { Entry } from "../../kernel/host.ts";
import { isObject } from "../../sdk/json.ts";
import type { RunnablePlan } from "../ports.ts";
import type { AgentInput, Recording } from "../types.ts";

/** A part of a log that one session emitted without interruption. Indexes start at 0; `to` is exclusive. */
export interface Segment {
  readonly session_id: string;
  readonly from: number;
  readonly to: number;
  /** Whether the process ended before the segment was complete. */
  readonly is_cut: boolean;
}

/** The turn of a sub-agent. */
export interface AgentSegment extends Segment {
  /** `task:agent_spawned` or `task:agent_resumed` of its parent. */
  readonly opening: Entry;
  /** `task:agent_completed` of its parent; null when its process ended before. */
  readonly closing: Entry | null;
}

/** A turn of a sub-agent that is replayed. */
export interface LiveAgent extends AgentSegment {
  /** The state at the start of the turn. */
  readonly input: AgentInput;
  readonly ready: RunnablePlan;
}

/** Returns whether an entry marks that another process recovered the run. */
export function isTakeover({ event, data }: Entry): boolean {
  return event === "run:status" && data.resumed === true;
}

/** Returns the segments of the run's own session: one, and one more for each recovery. */
export function ownSegments(entries: readonly Entry[]): Segment[] {
  const session_id = entries[0]?.session_id ?? "";
  const takeovers = entries.flatMap((entry, index) => isTakeover(entry) ? [index] : []);
  return [0, ...takeovers].map((from, number) => ({
    session_id,
    from,
    to: takeovers[number] ?? entries.length,
    is_cut: number < takeovers.length &&
      !entries.slice(from, takeovers[number]).some(({ event, session_id: of }) =>
        event === "execution:end" && of === session_id
      ),
  }));
}

/**
 * Resolves to the turns of sub-agents that can be replayed: their start is stored, and their orchestrator
 * records the response in `provider:response`.
 *
 * @throws {PreampError} the error of a sub-agent's plan that is no longer allowed.
 */
export async function liveAgentsOf(
  { run, events, replay: { agents: inputs = [] } }: Recording,
  root: RunnablePlan,
): Promise<LiveAgent[]> {
  const agents: LiveAgent[] = [];
  for (const opening of events) {
    if (opening.event !== "task:agent_spawned" && opening.event !== "task:agent_resumed") continue;
    const segment = agentSegment(opening, events);
    const { session_id, from, to } = segment;
    const entries = events.slice(from, to).filter((entry) => entry.session_id === session_id);
    const turn_id = entries.find((entry) => entry.turn_id !== undefined)?.turn_id;
    const input = inputs.find((agent) => agent.session_id === session_id && agent.turn_id === turn_id);
    const parent = opening.session_id === run.session_id
      ? root
      : agents.findLast((agent) => encloses(agent, segment))?.ready;
    if (!input || !parent?.agents || !hasWholeResponses(entries)) continue;
    if (input.surface.foreign?.includes("orchestrator")) continue;
    const ready = await parent.agents.child(input.plan);
    await loadOwn(ready);
    agents.push({ ...segment, input, ready });
  }
  return agents;
}

function agentSegment(opening: Entry, entries: readonly Entry[]): AgentSegment {
  const from = opening.seq;
  const ends = entries.slice(from).findIndex((entry) => isTakeover(entry) || isEndOf(entry, opening));
  const to = ends < 0 ? entries.length : from + ends;
  const last = entries[to];
  const closing = last && isEndOf(last, opening) ? last : null;
  return {
    session_id: String(opening.data.sub_session_id),
    from,
    to,
    is_cut: closing === null,
    opening,
    closing,
  };
}

function isEndOf({ event, session_id, data }: Entry, opening: Entry): boolean {
  return event === "task:agent_completed" && session_id === opening.session_id &&
    data.sub_session_id === opening.data.sub_session_id;
}

function encloses({ session_id, from, to }: LiveAgent, { opening, to: end }: AgentSegment): boolean {
  return session_id === opening.session_id && from < opening.seq && end <= to;
}

/** Returns whether every `provider:response` contains the response. */
export function hasWholeResponses(entries: readonly Entry[]): boolean {
  return entries.every(({ event, data }) =>
    event !== "provider:response" || isObject(data.response) && Array.isArray(data.response.content)
  );
}

/** Fetches the modules that run in a replay, unless they are compiled in. */
export async function loadOwn(ready: RunnablePlan): Promise<void> {
  const { orchestrator, context } = ready.compiled.plan.session;
  if ([orchestrator, context].some(({ source }) => source.kind !== "builtin")) await ready.load?.();
}
