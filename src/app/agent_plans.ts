/** Authorises the agents of a plan before it runs, as if each were spawned from it. */
import { agentNames, childPlan } from "../plan/child_plan.ts";
import type { CompiledPlan } from "../plan/compile.ts";
import { keyOf } from "../plan/source/source.ts";
import { formatPath } from "../sdk/value_path.ts";
import { type ErrorCode, errorCode, type ErrorDetail, PreampError } from "../sdk/errors.ts";
import { isObject, type JsonObject } from "../sdk/json.ts";

const LISTS = ["providers", "tools", "hooks"] as const;

/**
 * Authorises every agent of a plan.
 *
 * @param authorise Compiles and authorises the plan of one agent; rejects with why it may not run.
 * @throws {PreampError} with every reason at its path in `agents`. Its code is the one that all reasons
 * share, else `policy_refused`.
 */
export async function authoriseAgents(
  compiled: CompiledPlan,
  authorise: (written: JsonObject) => Promise<unknown>,
): Promise<void> {
  const details: ErrorDetail[] = [];
  const codes = new Set<ErrorCode>();
  for (const name of agentNames(compiled.written)) {
    const { written } = childPlan(compiled.written, name);
    try {
      await authorise(written);
    } catch (error) {
      const code = errorCode(error);
      if (code === undefined) throw error;
      codes.add(code as ErrorCode); // one of our codes: the error has details
      const known = (error as PreampError).details ?? [];
      const reasons = known.length > 0 ? known : [{ path: "", message: (error as PreampError).message }];
      details.push(...reasons.map((detail) => inOverlay(detail, name, compiled.written, written)));
    }
  }
  const [first] = details;
  if (!first) return;
  const [code] = codes;
  const summary = `${first.path}: ${first.message}`;
  const message = details.length === 1
    ? `Cannot run this plan: ${summary}`
    : `Cannot run this plan: ${details.length} reasons in its agents, the first: ${summary}`;
  throw new PreampError(codes.size === 1 ? code! : "policy_refused", message, { details });
}

/** Moves a finding about the merged plan to the path of the overlay that caused it. */
function inOverlay(detail: ErrorDetail, name: string, parent: JsonObject, merged: JsonObject): ErrorDetail {
  const { line: _, column: __, ...rest } = detail; // of a generated text
  return { ...rest, path: placeInAgent(rest.path, name, parent, merged) };
}

/**
 * Returns the source of a path in an agent's merged plan, as a path in `agents` of the written plan
 * (`parent`): `tools[2]` is `agents.a.tools[0]` if the overlay added it, `agents.a` if it was inherited.
 */
export function placeInAgent(path: string, name: string, parent: JsonObject, merged: JsonObject): string {
  const agents = isObject(parent.agents) ? parent.agents : {};
  const overlay = isObject(agents[name]) ? agents[name] : {};
  const place = formatPath(["agents", name]);
  const at = withOverlayIndex(path, overlay, merged);
  return at === "" ? place : at.startsWith("[") ? `${place}${at}` : `${place}.${at}`;
}

/**
 * Replaces the index of a list in the merged plan with the index in the overlay's list. Returns empty text
 * for an inherited entry.
 */
function withOverlayIndex(path: string, overlay: JsonObject, merged: JsonObject): string {
  for (const list of LISTS) {
    if (!path.startsWith(`${list}[`)) continue;
    const own = Array.isArray(overlay[list]) ? overlay[list] : [];
    const all = Array.isArray(merged[list]) ? merged[list] : [];
    for (const [index, spec] of own.entries()) {
      const there = `${list}[${all.findIndex((other) => keyOf(other) === keyOf(spec))}]`;
      if (path === there || path.startsWith(`${there}.`)) {
        return `${list}[${index}]${path.slice(there.length)}`;
      }
    }
    return ""; // inherited: the agent as a whole
  }
  return path;
}
