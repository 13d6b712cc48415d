/** Authorises the agents of a plan before it runs, as if each were spawned from it. */
import { agentNames, childPlan } from "../plan/child_plan.ts";
import type { CompiledPlan } from "../plan/compile.ts";
import { keyOf } from "../plan/source/source.ts";
import { formatPath } from "../sdk/value_path.ts";
import { type ErrorCode, errorCode, type ErrorDetail, PreampError } from "../sdk/errors.ts";
import { isObject, type JsonObject } from "../sdk/json.ts";

const LISTS = ["providers", "tools", "hooks"] as const;

/** Milliseconds of work after which the server answers other requests. */
const SLICE_MS = 10;

/** Maximum number of agents of a plan, and of the values that they inherit together. */
const MAX_AGENTS = 256;
const MAX_INHERITED = 100_000;

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
  for await (const { name, written } of agentPlans(compiled.written)) {
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

/**
 * Yields the plan of each agent, in which the other agents are empty: they were checked as part of the plan,
 * and would be copied for each agent.
 *
 * @throws {PreampError} `plan_limit_exceeded` if the agents inherit too much.
 */
export async function* agentPlans(plan: JsonObject): AsyncGenerator<{ name: string; written: JsonObject }> {
  const names = agentNames(plan);
  const { agents: _, ...inherited } = plan;
  const most = Math.min(MAX_AGENTS, Math.floor(MAX_INHERITED / countValues(inherited)));
  if (names.length > most) {
    const message =
      `Cannot accept the plan: each agent inherits its values, and a plan of this size has at most ${most} agents: received ${names.length}`;
    throw new PreampError("plan_limit_exceeded", message, { details: [{ path: "agents", message }] });
  }
  let slice_start = performance.now();
  for (const name of names) {
    if (performance.now() - slice_start > SLICE_MS) {
      await new Promise((resolve) => setTimeout(resolve));
      slice_start = performance.now();
    }
    const { [name]: overlay } = plan.agents as JsonObject; // it has agents
    const agents = { ...Object.fromEntries(names.map((other) => [other, {}])), [name]: overlay };
    yield { name, written: childPlan({ ...plan, agents }, name).written };
  }
}

function countValues(value: unknown): number {
  if (typeof value !== "object" || value === null) return 1;
  return Object.values(value).reduce((sum, item) => sum + countValues(item), 1);
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
