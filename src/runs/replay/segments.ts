/**
 * Splits a recorded log into segments: the run's own session from its start or from a recovery, and each turn
 * of a sub-agent.
 */
import type { Entry } from "../../kernel/host.ts";
import type { AgentInput } from "../types.ts";

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
  readonly parent_id: string;
  /**
   * The state at the start of the turn; null when it was not stored, and the turn can only be played back.
   */
  readonly input: AgentInput | null;
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

/** Returns the turns of sub-agents, in the order of their starts. */
export function agentSegments(entries: readonly Entry[], inputs: readonly AgentInput[]): AgentSegment[] {
  return entries.flatMap((opening, index) => {
    if (opening.event !== "task:agent_spawned" && opening.event !== "task:agent_resumed") return [];
    const session_id = String(opening.data.sub_session_id);
    const rest = entries.slice(index + 1);
    const ends = rest.findIndex((entry) => isTakeover(entry) || isEndOf(entry, opening));
    const to = ends < 0 ? entries.length : index + 1 + ends;
    const last = entries[to];
    const closing = last && isEndOf(last, opening) ? last : null;
    const turn_id = entries.slice(index, to).find((entry) =>
      entry.session_id === session_id && entry.turn_id !== undefined
    )?.turn_id;
    const input = inputs.find((agent) => agent.session_id === session_id && agent.turn_id === turn_id) ??
      null;
    const parent_id = opening.session_id;
    return [{
      session_id,
      from: index + 1,
      to,
      is_cut: closing === null,
      opening,
      closing,
      parent_id,
      input,
    }];
  });
}

function isEndOf({ event, session_id, data }: Entry, opening: Entry): boolean {
  return event === "task:agent_completed" && session_id === opening.session_id &&
    data.sub_session_id === opening.data.sub_session_id;
}
