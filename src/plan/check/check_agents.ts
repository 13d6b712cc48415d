/**
 * Checks the `agents` section. Each entry is a partial plan that is merged over its parent when the agent
 * is spawned.
 */
import { checkLimits } from "./check_limits.ts";
import { checkList } from "./check_lists.ts";
import { checkPermissions } from "./check_permissions.ts";
import { checkSession } from "./check_session.ts";
import { checkSystem, type FileReference, type SystemOptions } from "./check_system.ts";
import { object, text, texts } from "./field_checks.ts";
import { checkKeys, type Findings } from "../../sdk/findings.ts";
import { SELF } from "../child_plan.ts";
import type { SourceOptions } from "../source/source.ts";
import { preferenceProblem } from "../provider_preferences.ts";
import { describe, formatPath, type Path } from "../../sdk/value_path.ts";
import type { JsonObject } from "../../sdk/json.ts";

const KEYS: ReadonlySet<string> = new Set([
  "description",
  "session",
  "orchestrator",
  "context",
  "system",
  "instruction",
  "providers",
  "tools",
  "hooks",
  "agents",
  "spawn",
  "limits",
  "permissions",
  "provider_preferences",
  "model_role",
]);

/** Checks each overlay as a partial plan, and returns the overlays as written. */
export function checkAgents(
  value: unknown,
  present: boolean,
  findings: Findings,
  options: SourceOptions & SystemOptions,
  files: FileReference[],
): JsonObject {
  if (!present) return {};
  const agents = object(value, ["agents"], findings, "write agents: {name: {description, tools, …}}");
  for (const name of Object.keys(agents ?? {})) {
    const path = ["agents", name];
    if (name === SELF) {
      const message = `Cannot use agent name "${SELF}": it means the plan itself`;
      findings.error(path, "reserved", message, "choose another name");
    }
    const overlay = object(agents?.[name], path, findings, "write {description, system, tools, …}");
    if (overlay) checkOverlay(overlay, path, findings, options, files);
    if (overlay) checkKnown(overlay.agents, agents ?? {}, [...path, "agents"], findings);
  }
  return agents ?? {};
}

/** Checks a model role, or a list of roles in order of preference. */
function checkRole(value: unknown, path: readonly string[], findings: Findings): void {
  if (Array.isArray(value)) value.forEach((role, index) => text(role, [...path, index], findings));
  else if (value !== undefined) text(value, path, findings);
}

function checkOverlay(
  written: JsonObject,
  path: readonly string[],
  findings: Findings,
  options: SourceOptions & SystemOptions,
  files: FileReference[],
): void {
  const overlay = withoutAppends(written);
  checkKeys(overlay, KEYS, path, findings, "warning");
  if (Object.hasOwn(overlay, "description")) text(overlay.description, [...path, "description"], findings);
  checkRole(overlay.model_role, [...path, "model_role"], findings);
  checkSession(overlay, path, findings, { ...options, overlay: true });
  for (const section of ["providers", "tools", "hooks"] as const) {
    checkList(overlay, section, path, findings, options);
  }
  if (Object.hasOwn(overlay, "system")) {
    checkSystem(overlay.system, path, findings, options, files);
  }
  if (Object.hasOwn(overlay, "instruction")) text(overlay.instruction, [...path, "instruction"], findings);
  if (Object.hasOwn(overlay, "agents")) checkFilter(overlay.agents, [...path, "agents"], findings);
  checkSpawn(overlay, path, findings);
  if (Object.hasOwn(overlay, "limits")) checkLimits(overlay.limits, [...path, "limits"], findings);
  if (Object.hasOwn(overlay, "permissions")) {
    checkPermissions(overlay.permissions, [...path, "permissions"], findings);
  }
  if (Object.hasOwn(overlay, "provider_preferences")) {
    checkPreferences(overlay.provider_preferences, path, findings);
  }
}

/** Returns the overlay with `tools+` (append, see merge.ts) as `tools`, so that both are checked alike. */
function withoutAppends(written: JsonObject): JsonObject {
  if (!Object.keys(written).some((key) => key.endsWith("+"))) return written;
  const overlay: JsonObject = {};
  for (const [key, value] of Object.entries(written)) {
    const plain = key.endsWith("+") ? key.slice(0, -1) : key;
    const before = overlay[plain];
    overlay[plain] = Array.isArray(before) && Array.isArray(value) ? [...before, ...value] : value;
  }
  return overlay;
}

/** Warns about names in an agent filter that no agent has; they are typos or leftovers. */
function checkKnown(filter: unknown, agents: JsonObject, path: Path, findings: Findings): void {
  if (!Array.isArray(filter)) return;
  for (const [index, name] of filter.entries()) {
    if (typeof name !== "string" || Object.hasOwn(agents, name)) continue;
    const message = `The plan has no agent ${describe(name)}: it has ${
      Object.keys(agents).map(describe).join(", ")
    }`;
    findings.warn([...path, index], "unknown_agent", message);
  }
}

function checkFilter(value: unknown, path: Path, findings: Findings): void {
  const listed = Array.isArray(value) && value.every((name) => typeof name === "string");
  if (value === "all" || value === "none" || listed) return;
  const message = `Cannot read ${formatPath(path)}: must be "all", "none" or a list of names: received ${
    describe(value)
  }`;
  findings.error(path, "type", message);
}

function checkPreferences(value: unknown, path: readonly string[], findings: Findings): void {
  const problem = preferenceProblem(value, "provider_preferences");
  if (problem === null) return;
  findings.error([...path, "provider_preferences"], "type", `Cannot read ${problem}`);
}

/**
 * Checks the `spawn` section of the plan or overlay at `path`: which tools sub-agents inherit. Other keys
 * belong to applications and are not checked.
 */
export function checkSpawn(plan: JsonObject, path: Path, findings: Findings): JsonObject | undefined {
  if (!Object.hasOwn(plan, "spawn")) return undefined;
  const at = [...path, "spawn"];
  const spawn = object(plan.spawn, at, findings, "write spawn: {exclude_tools: [tool-task]}");
  for (const key of ["exclude_tools", "tools"]) {
    if (spawn && Object.hasOwn(spawn, key)) {
      texts(spawn[key], [...at, key], findings, "write a list of module ids");
    }
  }
  return spawn;
}
