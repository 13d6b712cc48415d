/** Validates spawn requests of modules. They may contain data from a model or from a guest. */
import { preferenceProblem } from "../../plan/model_choice.ts";
import { describe } from "../../sdk/value_path.ts";
import { PreampError } from "../../sdk/errors.ts";
import { isObject, toPlainObject } from "../../sdk/json.ts";
import type { ProviderPreference, SpawnRequest } from "../../sdk/types.ts";

/** Maximum characters of an agent's name or a session id. */
const MAX_NAME = 200;

/** Returns the request as a copy of plain data. @throws {PreampError} `request_invalid`. */
export function readSpawnRequest(input: unknown): SpawnRequest {
  if (!isObject(input)) throw invalid(`must be {instruction, agent}: received ${describe(input)}`);
  const fields = toPlainObject(input);
  const { instruction } = fields;
  if (typeof instruction !== "string" || instruction.trim() === "") {
    throw invalid(`instruction must be text: received ${describe(instruction)}`);
  }
  const request: SpawnRequest = { instruction };
  for (const key of ["agent", "session_id", "tool_call_id"] as const) {
    const value = fields[key];
    if (value === undefined || value === null) continue;
    if (typeof value !== "string" || value === "" || value.length > MAX_NAME) {
      throw invalid(`${key} must be text of at most ${MAX_NAME} characters: received ${describe(value)}`);
    }
    request[key] = value;
  }
  if (request.agent !== undefined && request.session_id !== undefined) {
    throw invalid("agent and session_id exclude each other: received both");
  }
  for (const key of ["exclude_tools", "inherit_tools"] as const) {
    const value = fields[key];
    if (value === undefined || value === null) continue;
    if (!Array.isArray(value) || !value.every((name) => typeof name === "string")) {
      throw invalid(`${key} must be a list of module ids: received ${describe(value)}`);
    }
    request[key] = value;
  }
  if (request.exclude_tools && request.inherit_tools) {
    throw invalid("exclude_tools and inherit_tools exclude each other: received both");
  }
  const { provider_preferences, metadata } = fields;
  if (provider_preferences !== undefined && provider_preferences !== null) {
    const problem = preferenceProblem(provider_preferences, "provider_preferences");
    if (problem !== null) throw invalid(problem);
    // checked by preferenceProblem()
    request.provider_preferences = provider_preferences as unknown as ProviderPreference[];
  }
  if (metadata !== undefined && metadata !== null) {
    if (!isObject(metadata)) throw invalid(`metadata must be an object: received ${describe(metadata)}`);
    request.metadata = metadata;
  }
  return request;
}

/** Returns a `session.resume` request as a spawn request. @throws {PreampError} `request_invalid`. */
export function readResumeRequest(input: unknown): SpawnRequest {
  const request = readSpawnRequest(input);
  if (request.session_id !== undefined) return request;
  throw invalid("session_id must be the id of an agent's session: received none");
}

function invalid(fact: string): PreampError {
  return new PreampError("request_invalid", `Cannot spawn an agent: ${fact}`);
}
