/**
 * Checks plan data and expands every short form (src/docs/plan.md). Returns the checked plan or all
 * findings. Pure: runs, fetches and reads nothing.
 */
import { checkAgents, checkSpawn } from "./check_agents.ts";
import { checkLimits } from "./check_limits.ts";
import { checkList } from "./check_lists.ts";
import { checkPermissions } from "./check_permissions.ts";
import { checkSession } from "./check_session.ts";
import { checkSystem, type FileReference, type SystemOptions } from "./check_system.ts";
import { text } from "./field_checks.ts";
import { Findings } from "../../sdk/findings.ts";
import { findPlanEnv, type PlanEnvReference } from "../env.ts";
import type { SourceOptions } from "../source/source.ts";
import { describe } from "../../sdk/value_path.ts";
import { isObject, type JsonObject } from "../../sdk/json.ts";
import type { MountPlan } from "../../sdk/plan.ts";
import type { RunLimits } from "../../sdk/contracts.ts";
import { didYouMean } from "../../sdk/did_you_mean.ts";

/** Options of `checkPlan`. */
export interface CheckOptions extends SourceOptions, SystemOptions {
  /**
   * Who wrote the plan. An operator's `${VAR}` outside of `config` is an error here; the policy checks a
   * caller's. Default `operator`.
   */
  origin?: "operator" | "caller";
}

/** Result of `checkPlan`. `plan` is absent if there are errors. */
export interface Checked {
  plan?: MountPlan;
  findings: Findings;
  env: PlanEnvReference[];
  files: FileReference[];
}

/** Names of all sections of a plan. */
export const SECTIONS: ReadonlySet<string> = new Set([
  "preamp",
  "description",
  "session",
  "orchestrator",
  "context",
  "system",
  "providers",
  "tools",
  "hooks",
  "agents",
  "spawn",
  "limits",
  "permissions",
]);

/** Checks a plan's data. Does not copy the value; the result shares parts of it. */
export function checkPlan(value: unknown, options: CheckOptions = {}): Checked {
  const findings = new Findings();
  const checked: Checked = { findings, env: [], files: [] };
  if (!isObject(value)) {
    const message = `Cannot read the plan: must be an object: received ${describe(value)}`;
    findings.error([], "root_type", message, "start with session:");
    return checked;
  }
  checkSections(value, findings);
  const session = checkSession(value, [], findings, { ...options, overlay: false });
  const providers = checkList(value, "providers", [], findings, options);
  const tools = checkList(value, "tools", [], findings, options);
  const hooks = checkList(value, "hooks", [], findings, options);
  if (!Object.hasOwn(value, "providers") || Array.isArray(value.providers) && value.providers.length === 0) {
    findings.warn(
      [],
      "no_providers",
      "The plan has no providers, so no model can answer",
      "add providers: [provider-mock]",
    );
  }
  const system = Object.hasOwn(value, "system")
    ? checkSystem(value.system, [], findings, options, checked.files)
    : undefined;
  const agents = checkAgents(value.agents, Object.hasOwn(value, "agents"), findings, options, checked.files);
  const spawn = checkSpawn(value, [], findings);
  const limits = Object.hasOwn(value, "limits") ? checkLimits(value.limits, ["limits"], findings) : {};
  const permissions = Object.hasOwn(value, "permissions")
    ? checkPermissions(value.permissions, ["permissions"], findings)
    : undefined;
  checked.env = findPlanEnv(value);
  if (options.origin !== "caller") checkEnvPlaces(checked.env, findings);
  const { orchestrator, context } = session;
  if (findings.errors.length > 0 || !orchestrator || !context) return checked;
  checked.plan = {
    session: { ...session, orchestrator, context },
    ...(system === undefined ? {} : { system }),
    providers,
    tools,
    hooks,
    agents,
    ...(spawn === undefined ? {} : { spawn }),
    limits: limits satisfies Partial<RunLimits>,
    ...(permissions === undefined ? {} : { permissions }),
  };
  return checked;
}

function checkSections(plan: JsonObject, findings: Findings): void {
  for (const key of Object.keys(plan)) {
    if (SECTIONS.has(key)) continue;
    const meant = didYouMean(key, SECTIONS);
    if (meant === undefined) {
      const message = `Unknown sections will be ignored: ${describe(key)}`;
      findings.warn([key], "unknown_sections", message);
    } else {
      const message = `Cannot use section ${describe(key)}: a plan has no such section`;
      findings.error([key], "unknown_key", message, `did you mean "${meant}"?`);
    }
  }
  if (!Object.hasOwn(plan, "session")) {
    const hint = "add session: {orchestrator: loop-streaming, context: context-simple}";
    findings.error([], "session_present", "Cannot read the plan: it has no session", hint);
  }
  if (Object.hasOwn(plan, "preamp") && plan.preamp !== 1) {
    const message = `Cannot read preamp: must be 1, the version of the plan format: received ${
      describe(plan.preamp)
    }`;
    findings.error(["preamp"], "value", message, "write preamp: 1");
  }
  if (Object.hasOwn(plan, "description")) text(plan.description, ["description"], findings);
}

function checkEnvPlaces(env: readonly PlanEnvReference[], findings: Findings): void {
  for (const { name, at, expanded } of env) {
    if (expanded) continue;
    const message = `Cannot use \${${name}} here: variables are expanded in config only`;
    findings.error(at, "env_place", message, "write the value itself");
  }
}
