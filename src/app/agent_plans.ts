/** The agents of a plan, judged before it runs as if each were spawned from it: what cannot run is said up front. */
import { agentNames, childPlan } from "../plan/child_plan.ts";
import type { CompiledPlan } from "../plan/compile.ts";
import { keyOf } from "../plan/source/spec_key.ts";
import { formatPath } from "../plan/value_path.ts";
import { type ErrorCode, errorCode, type ErrorDetail, PreampError } from "../sdk/errors.ts";
import { isObject, type JsonObject } from "../sdk/json.ts";

const LISTS = ["providers", "tools", "hooks"] as const;

/**
 * Judges every agent of a plan.
 *
 * @param judge Compiles and authorises the plan of one agent; rejects with why it may not run.
 * @throws {PreampError} with every reason at its place in `agents`; of the one code they share, else `policy_refused`.
 */
export async function judgeAgents(
  compiled: CompiledPlan,
  judge: (written: JsonObject) => Promise<unknown>,
): Promise<void> {
  const details: ErrorDetail[] = [];
  const codes = new Set<ErrorCode>();
  for (const name of agentNames(compiled.written)) {
    const { written } = childPlan(compiled.written, name);
    try {
      await judge(written);
    } catch (error) {
      const code = errorCode(error);
      if (code === undefined) throw error;
      codes.add(code as ErrorCode); // ours: it has details
      const told = (error as PreampError).details ?? [];
      const reasons = told.length > 0 ? told : [{ path: "", message: (error as PreampError).message }];
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

/** Tells a finding about the merged plan at the place of the overlay that brought it. */
function inOverlay(detail: ErrorDetail, name: string, parent: JsonObject, merged: JsonObject): ErrorDetail {
  const { line: _, column: __, ...rest } = detail; // of a text that nobody wrote
  return { ...rest, path: placeInAgent(rest.path, name, parent, merged) };
}

/**
 * Returns where in `agents` of the plan as written (`parent`) a place of an agent's merged plan comes from: `tools[2]` is
 * `agents.a.tools[0]` when the overlay brought it, `agents.a` when it was inherited.
 */
export function placeInAgent(path: string, name: string, parent: JsonObject, merged: JsonObject): string {
  const agents = isObject(parent.agents) ? parent.agents : {};
  const overlay = isObject(agents[name]) ? agents[name] : {};
  const place = formatPath(["agents", name]);
  const at = withOverlayIndex(path, overlay, merged);
  return at === "" ? place : at.startsWith("[") ? `${place}${at}` : `${place}.${at}`;
}

/** `tools[2].…` of the merged plan is `tools[0].…` of the overlay when its first tool became the merged plan's third. */
function withOverlayIndex(path: string, overlay: JsonObject, merged: JsonObject): string {
  for (const list of LISTS) {
    if (!path.startsWith(`${list}[`)) continue;
    const own = Array.isArray(overlay[list]) ? overlay[list] : [];
    const all = Array.isArray(merged[list]) ? merged[list] : [];
    for (const [index, spec] of own.entries()) {
      const there = `${list}[${all.findIndex((one) => keyOf(one) === keyOf(spec))}]`;
      if (path === there || path.startsWith(`${there}.`)) {
        return `${list}[${index}]${path.slice(there.length)}`;
      }
    }
    return ""; // inherited: the agent as a whole
  }
  return path;
}
