/**
 * Selects the sub-agents of a recorded run that are replayed, and prepares their plans. The others are played
 * back.
 */
import type { Entry } from "../../kernel/host.ts";
import { isObject, type JsonObject } from "../../sdk/json.ts";
import type { RunnablePlan } from "../ports.ts";
import type { AgentInput, Recording } from "../types.ts";
import { type AgentSegment, agentSegments } from "./segments.ts";
import { loadOwn } from "./replay_session.ts";

/** A sub-agent's turn that is replayed. */
export interface LiveAgent {
  readonly segment: AgentSegment;
  readonly input: AgentInput;
  readonly ready: RunnablePlan;
}

/**
 * Resolves to the turns that can be replayed: their start is stored, and their orchestrator records the
 * response in `provider:response`.
 *
 * @throws {PreampError} the error of a sub-agent's plan that is no longer allowed.
 */
export async function liveAgentsOf(
  { run, events, replay }: Recording,
  root: RunnablePlan,
): Promise<LiveAgent[]> {
  const agents: LiveAgent[] = [];
  for (const segment of agentSegments(events, replay.agents ?? [])) {
    const { input, parent_id } = segment;
    const parent = parent_id === run.session_id
      ? root
      : agents.findLast((agent) => encloses(agent, segment))?.ready;
    if (input === null || !parent?.agents) continue;
    const entries = events.slice(segment.from, segment.to).filter((entry) =>
      entry.session_id === segment.session_id
    );
    if (!hasWholeResponses(entries)) continue;
    const ready = await parent.agents.child(input.plan);
    await loadOwn(ready);
    agents.push({ segment, input, ready });
  }
  return agents;
}

function encloses({ segment: { session_id, from, to } }: LiveAgent, inner: AgentSegment): boolean {
  return session_id === inner.parent_id && from < inner.from && inner.to <= to;
}

/** Returns whether every `provider:response` contains the response. */
export function hasWholeResponses(entries: readonly Entry[]): boolean {
  return entries.every(({ event, data }) =>
    event !== "provider:response" ||
    (isObject(data.response) && Array.isArray((data.response as JsonObject).content))
  );
}
