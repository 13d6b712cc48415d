/** Which sub-agents of a recorded run can run for real, and by which plan. The others are played back. */
import type { Entry } from "../../kernel/host.ts";
import { isObject, type JsonObject } from "../../sdk/json.ts";
import type { RunnablePlan } from "../ports.ts";
import type { AgentInput, Recording } from "../storage/run_input.ts";
import { type AgentPart, agentParts } from "./segments.ts";
import { loadOwn } from "./replay_session.ts";

/** A sub-agent's turn that runs for real. */
export interface Role {
  readonly part: AgentPart;
  readonly input: AgentInput;
  readonly ready: RunnablePlan;
}

/**
 * Resolves to the turns that can run for real: what they started from is known, and their orchestrator puts the response into
 * `provider:response`.
 *
 * @throws {PreampError} what the plan of an agent fails with that may not run any more.
 */
export async function rolesOf({ run, events, replay }: Recording, root: RunnablePlan): Promise<Role[]> {
  const roles: Role[] = [];
  for (const part of agentParts(events, replay.agents ?? [])) {
    const { input, parent_id } = part;
    const parent = parent_id === run.session_id
      ? root
      : roles.findLast((role) => encloses(role, part))?.ready;
    if (input === null || !parent?.agents) continue;
    const entries = events.slice(part.from, part.to).filter((entry) => entry.session_id === part.session_id);
    if (!tellsResponses(entries)) continue;
    const ready = await parent.agents.child(input.plan);
    await loadOwn(ready);
    roles.push({ part, input, ready });
  }
  return roles;
}

function encloses({ part: { session_id, from, to } }: Role, inner: AgentPart): boolean {
  return session_id === inner.parent_id && from < inner.from && inner.to <= to;
}

/** Returns whether every answer is told whole: without it there is nothing to answer with. */
export function tellsResponses(entries: readonly Entry[]): boolean {
  return entries.every(({ event, data }) =>
    event !== "provider:response" ||
    (isObject(data.response) && Array.isArray((data.response as JsonObject).content))
  );
}
