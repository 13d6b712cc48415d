/**
 * Rewrites a plan for another folder: sources name vendored files, and relative paths still lead to the same
 * places. Pure; the plan itself is not changed.
 */
import { parsePath, pathFrom, pathText } from "./permissions/permission_entry.ts";
import { lockedName } from "./lock.ts";
import { isObject, type JsonObject } from "../sdk/json.ts";

/** What replaces the parts of a plan that depend on its folder. */
export interface VendorTargets {
  /** URL of the plan's file. */
  readonly base_url: string;
  /** URL of the file that the rewritten plan is written to. */
  readonly target_url: string;
  /** Whether vendored modules get `isolation: inline`, unless the plan asks for another isolation. */
  readonly inline: boolean;
  /** Returns what replaces a source as written and its pin; undefined for a source that stays. */
  module(source: unknown): { readonly source: string; readonly integrity: string } | undefined;
  /** Returns what replaces the file of `system: {file}`. */
  file(file: string): string;
}

/** Returns the rewritten plan, its agents included. */
export function vendoredPlan(written: JsonObject, targets: VendorTargets): JsonObject {
  const plan = vendoredPart(written, targets);
  const { agents } = written;
  if (isObject(agents)) {
    plan.agents = mapValues(
      agents,
      (overlay) => isObject(overlay) ? vendoredPart(overlay, targets) : overlay,
    );
  }
  pinSlots(plan, written, targets);
  return plan;
}

const INLINE = { isolation: "inline" };

const LISTS: ReadonlySet<string> = new Set(["providers", "tools", "hooks"]);
const SLOTS = ["orchestrator", "context"] as const;

/** Rewrites a plan or an overlay; keys such as `tools+` append to a list. */
function vendoredPart(part: JsonObject, targets: VendorTargets): JsonObject {
  return mapValues(part, (value, key) => {
    const name = key.replace(/\+$/, "");
    if (LISTS.has(name) && Array.isArray(value)) return value.map((spec) => vendoredSpec(spec, targets));
    if (name === "session" && isObject(value)) return vendoredSession(value, targets);
    if (name === "permissions") return vendoredPermissions(value, targets);
    if (name === "system" && isObject(value) && typeof value.file === "string") {
      return { ...value, file: targets.file(value.file) };
    }
    return value;
  });
}

function vendoredSession(session: JsonObject, targets: VendorTargets): JsonObject {
  return mapValues(session, (value, key) => {
    if (SLOTS.some((slot) => key === slot)) return vendoredSpec(value, targets);
    if (SLOTS.some((slot) => key === `${slot}_source`)) return targets.module(value)?.source ?? value;
    return value;
  });
}

/**
 * Turns `orchestrator_source` and `context_source` into specs, because only a spec has an `integrity`. Where
 * an agent changes the same slot the form as written stays, because the two forms merge differently.
 */
function pinSlots(plan: JsonObject, written: JsonObject, targets: VendorTargets): void {
  const { session } = written;
  if (!isObject(session) || !isObject(plan.session)) return;
  for (const slot of SLOTS) {
    const vendored = targets.module(session[`${slot}_source`]);
    if (typeof session[slot] !== "string" || vendored === undefined || isChangedByAgent(written, slot)) {
      continue;
    }
    const block = written[slot];
    const config = isObject(block) && isObject(block.config) ? { config: block.config } : {};
    plan.session[slot] = { module: session[slot], ...vendored, ...targets.inline && INLINE, ...config };
    delete plan.session[`${slot}_source`];
    delete plan[slot];
  }
}

function isChangedByAgent({ agents }: JsonObject, slot: string): boolean {
  return isObject(agents) &&
    Object.values(agents).some((overlay) =>
      isObject(overlay) && (Object.hasOwn(overlay, slot) ||
        isObject(overlay.session) &&
          (Object.hasOwn(overlay.session, slot) || Object.hasOwn(overlay.session, `${slot}_source`)))
    );
}

function vendoredSpec(spec: unknown, targets: VendorTargets): unknown {
  if (!isObject(spec)) return spec;
  const permissions = spec.permissions === undefined
    ? {}
    : { permissions: vendoredPermissions(spec.permissions, targets) };
  const vendored = spec.source === undefined ? undefined : targets.module(spec.source);
  const trusted = vendored && targets.inline && spec.isolation === undefined;
  return { ...spec, ...vendored, ...trusted && INLINE, ...permissions };
}

const PATH_PERMISSIONS: ReadonlySet<string> = new Set(["read", "write", "ffi"]);

function vendoredPermissions(permissions: unknown, targets: VendorTargets): unknown {
  if (!isObject(permissions)) return permissions;
  return mapValues(permissions, (value, name) => {
    if (!PATH_PERMISSIONS.has(name) || !Array.isArray(value)) return value;
    return value.map((entry) => typeof entry === "string" ? movedPath(entry, targets) : entry);
  });
}

/** Returns a relative path as it is written in the target's folder. */
function movedPath(entry: string, { base_url, target_url }: VendorTargets): string {
  const path = entry.includes("${") || entry.startsWith("file:") ? undefined : parsePath(entry);
  const folder = parsePath(decodeURIComponent(lockedName(new URL(".", base_url).href, target_url)));
  return path === undefined || path.absolute || folder === undefined
    ? entry
    : pathText(pathFrom(folder, path));
}

/** Returns an object with each value replaced. */
function mapValues(object: JsonObject, replace: (value: unknown, key: string) => unknown): JsonObject {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, replace(value, key)]));
}
