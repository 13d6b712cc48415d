/** Parses `preamp.yaml` into a policy, and reports every finding with line, column and hint. */
import { object } from "../plan/check/field_checks.ts";
import { checkKeys, Findings } from "../sdk/findings.ts";
import { documentError, type Locate, toDetail } from "../plan/check/findings.ts";
import { describe, type Path } from "../sdk/value_path.ts";
import type { Policy, PolicyOverlay } from "./policy.ts";
import { defaultPolicy, OVERLAY_SECTIONS, SECTIONS, SINGLES } from "./settings.ts";
import type { SettingTypes } from "./setting_types.ts";
import { isObject, type JsonObject } from "../sdk/json.ts";

const KEYS: ReadonlySet<string> = new Set([
  ...Object.keys(SECTIONS),
  ...Object.keys(SINGLES),
  "policies",
]);

/** The name that `retention.days` had in earlier versions. */
const LOG_DAYS = "log_days";

/** Settings of earlier versions, which had another tier; their value `process` is what always applies. */
const RETIRED: ReadonlySet<string> = new Set(["urls_from_callers", "urls_from_operator"]);

/**
 * Returns the policy in data: a parsed document, settings from flags and variables, or both merged.
 *
 * @throws {PreampError} `plan_invalid` with every finding.
 */
export function policyFromData(data: JsonObject, options: { label?: string; locate?: Locate } = {}): Policy {
  const findings = new Findings();
  const policy = readPolicy(data, findings);
  if (findings.errors.length > 0) {
    const details = findings.errors.map((finding) => toDetail(finding, options.locate));
    throw documentError("plan_invalid", options.label ?? "the policy", details);
  }
  return policy;
}

function readPolicy(data: JsonObject, findings: Findings): Policy {
  const policy = defaultPolicy();
  checkKeys(data, KEYS, [], findings, "error");
  Object.assign(policy, readFields(SINGLES, data, [], findings, data));
  for (const [name, types] of Object.entries<SettingTypes>(SECTIONS)) {
    const section = readSection(types, data, [name], findings, data);
    Object.assign(policy[name as keyof typeof SECTIONS], section); // Object.entries loses the key type
  }
  if (Object.hasOwn(data, "policies")) policy.policies = readOverlays(data, findings);
  return policy;
}

/**
 * Reads the last key of `path` in `data` as a section of settings. Invalid keys are reported and left out.
 */
function readSection(
  types: SettingTypes,
  data: JsonObject,
  path: Path,
  findings: Findings,
  document: JsonObject,
): Record<string, unknown> | undefined {
  const name = String(path.at(-1));
  if (!Object.hasOwn(data, name)) return undefined;
  if (types.days && !types[LOG_DAYS]) {
    const read = readSection({ ...types, [LOG_DAYS]: types.days }, data, path, findings, document);
    const { [LOG_DAYS]: log_days, ...others } = read ?? {};
    return log_days === undefined ? others : { days: log_days, ...others };
  }
  const fields = object(data[name], path, findings, `write ${name}: {${Object.keys(types)[0]}: …}`);
  if (!fields) return undefined;
  checkKeys(fields, new Set(Object.keys(types)), path, findings, "error", RETIRED);
  for (const key of RETIRED) {
    if (!Object.hasOwn(fields, key) || fields[key] === "process") continue;
    const message = `Cannot set ${describe(key)} to ${
      describe(fields[key])
    }: the tier worker no longer exists`;
    const hint = "leave it out: modules from URLs run in a process; modules.inline trusts a source";
    findings.error([...path, key], "value", message, hint);
  }
  return readFields(types, fields, path, findings, document);
}

function readFields(
  types: SettingTypes,
  fields: JsonObject,
  path: Path,
  findings: Findings,
  document: JsonObject,
): Record<string, unknown> {
  const read: Record<string, unknown> = {};
  for (const [key, type] of Object.entries(types)) {
    if (!Object.hasOwn(fields, key)) continue;
    const value = type.read(fields[key], [...path, key], findings, document);
    if (value !== undefined) read[key] = value;
  }
  return read;
}

function readOverlays(document: JsonObject, findings: Findings): Record<string, PolicyOverlay> {
  const overlays: Record<string, PolicyOverlay> = {};
  const fields = object(document.policies, ["policies"], findings, "write policies: {name: {limits: {…}}}");
  for (const [name, written] of Object.entries(fields ?? {})) {
    const path = ["policies", name];
    const sections = object(written, path, findings);
    if (!sections) continue;
    checkKeys(sections, new Set(OVERLAY_SECTIONS), path, findings, "error");
    const overlay: Record<string, unknown> = {};
    for (const section of OVERLAY_SECTIONS) {
      const types: SettingTypes = SECTIONS[section];
      const read = readSection(types, sections, [...path, section], findings, document);
      if (!read) continue;
      refuseOfServer(types, read, [...path, section], findings);
      overlay[section] = read;
    }
    narrowPermissions(overlay, sections);
    overlays[name] = overlay; // each section was read by its own types
  }
  return overlays;
}

/** Reports settings of the whole server in the policy of a key. */
function refuseOfServer(
  types: SettingTypes,
  read: Record<string, unknown>,
  path: Path,
  findings: Findings,
): void {
  for (const key of Object.keys(read)) {
    const hint = types[key]?.for_keys;
    if (hint === undefined) continue;
    const message = `Cannot set ${describe(key)} for one key: it applies to the whole server`;
    findings.error([...path, key], "value", message, hint);
  }
}

/**
 * Removes the names that an overlay's `permissions.max` does not set; reading fills them in for the
 * server's own.
 */
function narrowPermissions(overlay: Record<string, unknown>, written: JsonObject): void {
  const read = isObject(overlay.permissions) ? overlay.permissions.max : undefined;
  const writtenMax = isObject(written.permissions) ? written.permissions.max : undefined;
  if (!isObject(overlay.permissions) || !isObject(read) || !isObject(writtenMax)) return;
  overlay.permissions.max = Object.fromEntries(
    Object.entries(read).filter(([name]) => Object.hasOwn(writtenMax, name)),
  );
}

/**
 * Parses a policy document. Settings that it lacks have their defaults.
 *
 * @param options `name`: name of the document in errors; default `preamp.yaml`.
 * @throws {PreampError} `plan_invalid`, `plan_limit_exceeded`: a policy is parsed like a plan.
 */
export async function parsePolicy(text: string, options: { name?: string } = {}): Promise<Policy> {
  const label = `the settings file "${options.name ?? "preamp.yaml"}"`;
  const { parseDocument } = await import("../plan/parse/parse.ts"); // not loaded by a server without preamp.yaml
  const { data, locate } = await parseDocument(text, { label });
  return policyFromData(data, { label, locate });
}
