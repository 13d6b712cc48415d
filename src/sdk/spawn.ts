/** Types of the capabilities `session.spawn` and `session.resume`, which start and continue sub-agents. */
import type { JsonObject } from "./json.ts";

/** A preferred provider and model; of a list, the first that is mounted is used. */
export interface ProviderPreference {
  /** Name of a provider of the plan: its `instance_id`, its module id, or that without `provider-`. */
  provider: string;
  /** Model of the provider; `*` matches any characters and `?` one. */
  model?: string;
  /** Overrides of the provider's config. Credentials, endpoints and network settings are refused. */
  config?: JsonObject;
}

/** Request for a sub-agent. It may come from a model, so it is validated strictly. */
export interface SpawnRequest {
  /** The prompt of the agent. */
  instruction: string;
  /** Name of an overlay of the plan's `agents`; `self`, the default, is the plan itself. */
  agent?: string;
  /** Continues an agent that this session spawned before, in this run or an earlier one. Excludes `agent`. */
  session_id?: string;
  /**
   * Id of the tool call that spawns the agent: part of the events; the call's deadline is paused while the
   * agent runs.
   */
  tool_call_id?: string;
  /** Preferred providers of the agent; they come before those of the plan. */
  provider_preferences?: ProviderPreference[];
  /**
   * Module or instance ids of tools that are not inherited; the overlay's own stay. Excludes `inherit_tools`.
   */
  exclude_tools?: string[];
  /** The only tools that are inherited; the overlay's own stay. */
  inherit_tools?: string[];
  /** Metadata of `session:fork` and `session:start`. */
  metadata?: JsonObject;
}

/** Request to continue an agent that the session spawned before. */
export type ResumeRequest =
  & Pick<SpawnRequest, "instruction" | "tool_call_id" | "provider_preferences">
  & { session_id: string };

/** Result of an agent's turn. */
export interface SpawnResult {
  /** Text of its answer; empty for a turn without an answer. */
  output: string;
  /** Id of its session, for `session.resume`. */
  session_id: string;
  /** Status of the turn; see src/docs/http.md#the-run-object. */
  status: "completed" | "incomplete" | "denied" | "cancelled" | "failed";
  /** Answered provider calls of the turn. */
  turn_count: number;
  /**
   * Contains `agent`, `stop_reason` and `error` (`{code, message}` or null); later versions may add fields.
   */
  metadata: JsonObject;
}

/**
 * The capability `session.spawn`. Resolves when the agent's turn has ended.
 *
 * Rejects without creating an agent: `request_invalid` (invalid request, unknown agent), `not_found` and
 * `session_busy` (session), `limit_reached` (`max_depth`, `max_sessions`, or too few tokens left for the
 * prompt), `policy_refused` and the codes of a plan that may not run, `cancelled`.
 */
export type SpawnSession = (request: SpawnRequest) => Promise<SpawnResult>;

/** The capability `session.resume`: continues an existing agent. Rejects like {@link SpawnSession}. */
export type ResumeSession = (request: ResumeRequest) => Promise<SpawnResult>;

/**
 * The capability `model_role_resolver`, which a module may publish. Resolves to the providers for a role such
 * as `fast`, best first, or to null for an unknown role. An agent whose overlay has `model_role` gets the
 * first mounted one, after the preferences of its caller and its overlay.
 */
export type ModelRoleResolver = (
  role: string,
) => Promise<readonly ProviderPreference[] | null> | readonly ProviderPreference[] | null;
