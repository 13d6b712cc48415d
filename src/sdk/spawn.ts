/**
 * Sub-agents as a module reaches them: the capabilities `session.spawn` and `session.resume` (behaviour.md §9.8; architecture.md, "A sub-agent is").
 * Types only: what makes the session is the runtime's.
 */
import type { JsonObject } from "./json.ts";

/** A provider that is wanted, with its model; in a list the first that is there wins. */
export interface ProviderPreference {
  /** Name of a provider of the plan: its `instance_id`, its module id, or that without `provider-`. */
  provider: string;
  /** A model of it; `*` and `?` stand for any characters and for one. */
  model?: string;
  /** Laid over its config. Credentials, endpoints and network settings are refused. */
  config?: JsonObject;
}

/** What a module asks for when it spawns an agent. Data, so that it can come from anywhere; read strictly. */
export interface SpawnRequest {
  /** The prompt of the agent. */
  instruction: string;
  /** Name of an overlay of the plan's `agents`; `self`, the default, is the plan itself. */
  agent?: string;
  /** Goes on with an agent that this session spawned before, in this run or an earlier one. Excludes `agent`. */
  session_id?: string;
  /** The tool call that spawns it: told in the events; its deadline stands still while the agent runs. */
  tool_call_id?: string;
  /** First choices for the agent's provider; before those of the plan. */
  provider_preferences?: ProviderPreference[];
  /** Module or instance ids of tools that are not inherited; the overlay's own stay. Excludes `inherit_tools`. */
  exclude_tools?: string[];
  /** The only tools that are inherited; the overlay's own stay. */
  inherit_tools?: string[];
  /** Told with `session:fork` and `session:start`. */
  metadata?: JsonObject;
}

/** What a module asks for when it goes on with an agent that its session spawned before. */
export type ResumeRequest =
  & Pick<SpawnRequest, "instruction" | "tool_call_id" | "provider_preferences">
  & { session_id: string };

/** How a spawned agent's turn ended. */
export interface SpawnResult {
  /** Text of its answer; empty when there is none. */
  output: string;
  /** Id of its session; with it the agent can be asked again. */
  session_id: string;
  /** How its turn ended, as a run's (http.md). */
  status: "completed" | "incomplete" | "denied" | "cancelled" | "failed";
  /** Provider calls of the turn that were answered. */
  turn_count: number;
  /** `agent`, `stop_reason`, `error` (`{code, message}` or null) and what a later version adds. */
  metadata: JsonObject;
}

/**
 * The value of the capability `session.spawn`. Resolves when the agent's turn has ended, however it ended.
 *
 * Rejects, and no agent was made: `request_invalid` (the request, an unknown agent), `not_found` and `session_busy` (the
 * session), `limit_reached` (`max_depth`, `max_sessions`, too little left for the prompt), `policy_refused` and the codes of
 * a plan that may not run, `cancelled`.
 */
export type SpawnSession = (request: SpawnRequest) => Promise<SpawnResult>;

/** The value of the capability `session.resume`: `session.spawn` for an agent that is there already. Rejects as that does. */
export type ResumeSession = (request: ResumeRequest) => Promise<SpawnResult>;

/**
 * The value of the capability `model_role_resolver`, which a module may publish (behaviour.md §9.5): resolves to the providers
 * for a role such as `fast`, best first, or to null when it does not know the role. An agent whose overlay says `model_role` is
 * given the first of them that is there, after the preferences of its caller and of its overlay.
 */
export type ModelRoleResolver = (
  role: string,
) => Promise<readonly ProviderPreference[] | null> | readonly ProviderPreference[] | null;
