/** The `agents` section: each entry a partial plan that is laid over its parent's when it is spawned (behaviour.md §2.4). */
import { isObject, type JsonObject } from "../sdk/json.ts";
import type { CheckOptions, FileReference } from "./check.ts";
import { checkLimits } from "./check_limits.ts";
import { checkList } from "./check_lists.ts";
import { checkPermissions } from "./check_permissions.ts";
import { checkSession } from "./check_session.ts";
import { checkSystem } from "./check_system.ts";
import { checkKeys, object, text } from "./fields.ts";
import type { Findings } from "./findings.ts";
import { describe, formatPath, type Path } from "./path.ts";

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

/** Returns the overlays as written, after each was checked as a partial plan. */
export function checkAgents(
  value: unknown,
  present: boolean,
  findings: Findings,
  options: CheckOptions,
  files: FileReference[],
): JsonObject {
  if (!present) return {};
  const agents = object(value, ["agents"], findings, "write agents: {name: {description, tools, …}}");
  for (const name of Object.keys(agents ?? {})) {
    const path = ["agents", name];
    const overlay = object(agents?.[name], path, findings, "write {description, system, tools, …}");
    if (overlay) checkOverlay(overlay, path, findings, options, files);
  }
  return agents ?? {};
}

function checkOverlay(
  written: JsonObject,
  path: readonly string[],
  findings: Findings,
  options: CheckOptions,
  files: FileReference[],
): void {
  const overlay = withoutAppends(written);
  checkKeys(overlay, KEYS, path, findings, "warning");
  if (Object.hasOwn(overlay, "description")) text(overlay.description, [...path, "description"], findings);
  checkSession(overlay, path, findings, { ...options, overlay: true });
  for (const section of ["providers", "tools", "hooks"] as const) {
    checkList(overlay, section, path, findings, options);
  }
  if (Object.hasOwn(overlay, "system")) {
    const system = checkSystem(overlay.system, [...path, "system"], findings, {
      files: options.files ?? false,
    });
    if (system && "file" in system) files.push({ owner: path, file: system.file });
  }
  if (Object.hasOwn(overlay, "instruction")) text(overlay.instruction, [...path, "instruction"], findings);
  if (Object.hasOwn(overlay, "agents")) checkFilter(overlay.agents, [...path, "agents"], findings);
  if (Object.hasOwn(overlay, "spawn")) object(overlay.spawn, [...path, "spawn"], findings);
  if (Object.hasOwn(overlay, "limits")) checkLimits(overlay.limits, [...path, "limits"], findings);
  if (Object.hasOwn(overlay, "permissions")) {
    checkPermissions(overlay.permissions, [...path, "permissions"], findings);
  }
  if (Object.hasOwn(overlay, "provider_preferences")) {
    checkPreferences(overlay.provider_preferences, path, findings);
  }
}

/** `tools+` is `tools` that is appended (merge.ts); both are checked alike. */
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

function checkFilter(value: unknown, path: Path, findings: Findings): void {
  const listed = Array.isArray(value) && value.every((name) => typeof name === "string");
  if (value === "all" || value === "none" || listed) return;
  const message = `Cannot read ${formatPath(path)}: must be "all", "none" or a list of names: received ${
    describe(value)
  }`;
  findings.error(path, "type", message);
}

function checkPreferences(value: unknown, path: Path, findings: Findings): void {
  const valid = Array.isArray(value) &&
    value.every((item) =>
      isObject(item) && typeof item.provider === "string" &&
      (item.model === undefined || typeof item.model === "string")
    );
  if (valid) return;
  const message = `Cannot read provider_preferences: must be a list of {provider, model}: received ${
    describe(value)
  }`;
  findings.error([...path, "provider_preferences"], "type", message);
}
