/** What `preamp.yaml` says → policy, with errors as good as a plan's: every finding, with line, column and hint (trust.md). */
import { isObject, type JsonObject } from "../sdk/json.ts";
import { checkKeys, object } from "../plan/fields.ts";
import { documentError, Findings, type Locate, toDetail } from "../plan/findings.ts";
import { defaultPolicy, type Policy, type PolicyOverlay } from "./policy.ts";
import { OVERLAY_SECTIONS, readAuthKeys, readSection, SECTIONS, SINGLES } from "./shape.ts";

const KEYS: ReadonlySet<string> = new Set([
  ...Object.keys(SECTIONS),
  ...Object.keys(SINGLES),
  "auth",
  "policies",
]);

/**
 * Returns the policy of data: a parsed document, settings from flags and variables, or one laid over the other.
 *
 * @throws {PreampError} `plan_invalid` with every finding.
 */
export function policyFromData(data: JsonObject, options: { what?: string; locate?: Locate } = {}): Policy {
  const findings = new Findings();
  const policy = readPolicy(data, findings);
  if (findings.errors.length > 0) {
    const details = findings.errors.map((finding) => toDetail(finding, options.locate));
    throw documentError("plan_invalid", options.what ?? "the policy", details);
  }
  return policy;
}

function readPolicy(data: JsonObject, findings: Findings): Policy {
  const policy = defaultPolicy();
  checkKeys(data, KEYS, [], findings, "error");
  for (const [key, rule] of Object.entries(SINGLES)) {
    if (!Object.hasOwn(data, key)) continue;
    const value = rule.read(data[key], [key], findings);
    if (value !== undefined) Object.assign(policy, { [key]: value });
  }
  for (const name of Object.keys(SECTIONS)) {
    if (!Object.hasOwn(data, name)) continue;
    Object.assign(policy[name as keyof Policy], readSection(name, data[name], [name], findings));
  }
  if (Object.hasOwn(data, "policies")) policy.policies = readOverlays(data.policies, findings);
  if (Object.hasOwn(data, "auth")) readAuth(data.auth, policy, findings);
  return policy;
}

function readOverlays(value: unknown, findings: Findings): Record<string, PolicyOverlay> {
  const overlays: Record<string, PolicyOverlay> = {};
  const fields = object(value, ["policies"], findings, "write policies: {name: {limits: {…}}}") ?? {};
  for (const [name, written] of Object.entries(fields)) {
    const path = ["policies", name];
    const overlay: Record<string, unknown> = {};
    const sections = object(written, path, findings);
    if (!sections) continue;
    checkKeys(sections, new Set(OVERLAY_SECTIONS), path, findings, "error");
    for (const section of OVERLAY_SECTIONS) {
      if (Object.hasOwn(sections, section)) {
        overlay[section] = readSection(section, sections[section], [...path, section], findings);
      }
    }
    narrowPermissions(overlay, sections);
    overlays[name] = overlay; // every section was read by the rules of its own type
  }
  return overlays;
}

/** An overlay's `permissions.max` changes only what it names; the reader fills in the rest for the server's own. */
function narrowPermissions(overlay: Record<string, unknown>, written: JsonObject): void {
  const read = isObject(overlay.permissions) ? overlay.permissions.max : undefined;
  const said = isObject(written.permissions) ? written.permissions.max : undefined;
  if (!isObject(overlay.permissions) || !isObject(read) || !isObject(said)) return;
  overlay.permissions.max = Object.fromEntries(
    Object.entries(read).filter(([name]) => Object.hasOwn(said, name)),
  );
}

function readAuth(value: unknown, policy: Policy, findings: Findings): void {
  const auth = object(value, ["auth"], findings, "write auth: {keys: [{name, sha256}]}");
  if (!auth) return;
  checkKeys(auth, new Set(["keys"]), ["auth"], findings, "error");
  if (!Object.hasOwn(auth, "keys")) return;
  policy.auth.keys = readAuthKeys(auth.keys, ["auth", "keys"], findings, Object.keys(policy.policies));
}
