/** Plans sub-agents: validates spawn requests, merges, compiles and authorises plans. */
import type { RunLimitGuard } from "../../kernel/run_limits.ts";
import type { Session } from "../../kernel/session.ts";
import { childPlan, SELF } from "../../plan/child_plan.ts";
import { preferenceProblem, preferProvider } from "../../plan/model_choice.ts";
import { PreampError } from "../../sdk/errors.ts";
import { isObject, type JsonObject, toPlain, toPlainObject } from "../../sdk/json.ts";
import { sumCostUsd } from "../../sdk/money.ts";
import { type Counters, emptyCounters } from "../../sdk/run_counters.ts";
import type { ModelRoleResolver, ProviderPreference, SpawnRequest } from "../../sdk/types.ts";
import { describe } from "../../sdk/value_path.ts";
import type { RunFacts } from "../run/run_options.ts";
import type { AgentPlans, RunnablePlan } from "../ports.ts";
import type { PlannedChild } from "../storage/session_store.ts";

/** Usage of a sub-agent over all of its turns in this run, and that of its own sub-agents. */
export interface Usage {
  readonly counters: Counters;
  readonly children: Map<string, Usage>;
}

/** A session that spawns sub-agents. */
export interface Parent {
  readonly session: Session;
  readonly ready: RunnablePlan;
  readonly agents: AgentPlans;
  readonly limitGuard: RunLimitGuard;
  /** 0 for the run's own session. */
  readonly depth: number;
  /** Session id of a sub-agent → its usage in this run. */
  readonly children: Map<string, Usage>;
}

/** Merges, compiles and authorises the plan; for an existing session, authorises its plan again. */
export async function planSubAgent(
  parent: Parent,
  request: SpawnRequest,
  session_id: string,
  run: RunFacts,
): Promise<PlannedChild> {
  if (request.session_id !== undefined) return await planAgain(parent, request, session_id, run);
  const { agent = SELF, exclude_tools, inherit_tools, provider_preferences = [] } = request;
  const child = childPlan(parent.ready.compiled.written, agent, {
    ...(exclude_tools ? { exclude_tools } : {}),
    ...(inherit_tools ? { inherit_tools } : {}),
    metadata: { ...request.metadata, agent, depth: parent.depth + 1 },
  });
  const preferences = [
    ...provider_preferences,
    ...child.preferences,
    ...await preferencesOfRoles(parent.session, child.model_roles),
  ];
  const ready = await loadedPlan(parent, child.written, preferences);
  return { session_id, agent, ready, limited: Object.keys(child.limits).length > 0, saved: null };
}

async function planAgain(
  parent: Parent,
  request: SpawnRequest,
  session_id: string,
  run: RunFacts,
): Promise<PlannedChild> {
  const { session_id: parent_id } = parent.session;
  const saved = await run.store.wait(() => run.options.scheduler.acquireChild(run, session_id, parent_id));
  try {
    const ready = await loadedPlan(parent, saved.plan, request.provider_preferences ?? []);
    const { agent = SELF, limited = false } = saved.spawned ?? {};
    return { session_id, agent, ready, limited, saved };
  } catch (error) {
    await run.options.scheduler.releaseChild(session_id);
    throw error;
  }
}

/** Compiles and authorises a plan with the first of these providers that fits, and fetches its modules. */
async function loadedPlan(
  { session, agents }: Parent,
  written: JsonObject,
  preferences: readonly ProviderPreference[],
): Promise<RunnablePlan> {
  const preferred = await preferProvider(written, preferences, (names) => session.modelsOf(names));
  const ready = await agents.child(preferred ?? written);
  await ready.load?.();
  return ready;
}

/**
 * Resolves to the providers of the first role that the session's `model_role_resolver` knows. Empty when
 * there is no resolver or it knows none.
 *
 * @throws {PreampError} `module_invalid` when the resolver returns an invalid value; also rethrows its
 * errors.
 */
async function preferencesOfRoles(
  session: Session,
  roles: readonly string[],
): Promise<readonly ProviderPreference[]> {
  const resolver = session.getCapability("model_role_resolver");
  if (typeof resolver !== "function") return [];
  for (const role of roles) {
    // a module published it as a resolver; the result is checked below
    const answer: unknown = await (resolver as ModelRoleResolver)(role);
    if (answer === null || answer === undefined) continue;
    const preferences = toPlain(answer);
    const problem = preferenceProblem(preferences, `model_role "${role}"`);
    if (problem !== null) throw new PreampError("module_invalid", `Cannot resolve ${problem}`);
    return preferences as unknown as ProviderPreference[]; // checked by preferenceProblem()
  }
  return [];
}

/** Returns the usage of a sub-agent. At the first call, contributes its cost to the parent's cost. */
export function usageOf(parent: Session, children: Map<string, Usage>, session_id: string): Usage {
  const known = children.get(session_id);
  if (known) return known;
  const usage: Usage = { counters: emptyCounters(), children: new Map() };
  children.set(session_id, usage);
  parent.contribute("session.cost", `delegate:${session_id}`, () => ({ cost_usd: costOf(usage) }));
  return usage;
}

function costOf({ counters, children }: Usage): string | null {
  return sumCostUsd([counters.cost_usd, ...[...children.values()].map(costOf)]);
}

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
  throw invalid("session_id must be the id of an agent's session");
}

function invalid(fact: string): PreampError {
  return new PreampError("request_invalid", `Cannot spawn an agent: ${fact}`);
}
