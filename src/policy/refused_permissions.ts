/**
 * Decides which permissions a plan may not have: those that the policy does not allow, those that a
 * sub-agent's parent does not have, and endpoints of providers that the policy does not list.
 */
import { ENDPOINT_KEYS, hostOf, isProvider } from "../plan/endpoints.ts";
import { findEnv } from "../plan/env.ts";
import {
  askedOf,
  blockOf,
  entriesOf,
  entryLabel,
  type FullPermissions,
  type GrantEntry,
  grantPath,
} from "../plan/permissions/permission_block.ts";
import { covers } from "../plan/permissions/permission_entry.ts";
import { noPermissions, type Permissions } from "../sdk/contracts.ts";
import type { ErrorDetail } from "../sdk/errors.ts";
import { type ModuleSpec, type MountPlan, PERMISSION_KINDS } from "../sdk/plan.ts";
import { describe } from "../sdk/value_path.ts";
import { asWritten, givenBy, holdsAny, readable, readEntry, type Resolve } from "./effective_permissions.ts";

/** Returns reasons to refuse what a module asks for and the policy does not allow. */
export function permissionReasons(
  spec: ModuleSpec,
  plan: MountPlan,
  max: FullPermissions,
  paths?: ExcessPaths,
): ErrorDetail[] {
  return excessPermissions(askedOf(spec, plan), max, paths).map((entry) => {
    const { permission } = entry;
    return {
      path: `${grantPath(spec, plan)}.${permission}`,
      message: `Cannot grant ${entryLabel(entry)} to module "${spec.module}": the policy does not allow it`,
      hint: permission === "run" || permission === "ffi"
        ? "leave it out: a plan in a request never gets run or ffi"
        : "ask for less, or have the operator raise permissions.max",
    };
  });
}

/** The grants of a plan's modules by their paths in the plan. */
interface PlanGrants {
  readonly permissions: Readonly<Record<string, FullPermissions>>;
}

/** Resolvers of the paths of two blocks. Default: as written. */
export interface ExcessPaths {
  asked?: Resolve;
  max?: Resolve;
}

/** Returns the entries of `asked` that no single entry of `max` includes entirely. */
export function excessPermissions(
  asked: Permissions | undefined,
  max: Permissions,
  { asked: resolve = asWritten, max: resolveMax = asWritten }: ExcessPaths = {},
): GrantEntry[] {
  return PERMISSION_KINDS.flatMap((permission) => {
    const wanted = givenBy(asked?.[permission]);
    if (wanted.length === 0 || max[permission] === true) return [];
    const most = readable(permission, max[permission], resolveMax);
    return wanted.filter((written) => {
      const entry = readEntry(permission, written, resolve);
      return entry === undefined || !most.some((allowed) => holdsAny(allowed, entry));
    }).map((entry) => ({ permission, entry }));
  });
}

/** Returns the union of a plan's grants, including the default of tools. */
export function grantedAnywhere({ permissions }: PlanGrants): FullPermissions {
  const all = noPermissions();
  for (const block of Object.values(permissions)) {
    for (const name of PERMISSION_KINDS) all[name] = joined(all[name], block[name]);
  }
  return all;
}

function joined(a: boolean | string[], b: boolean | string[]): boolean | string[] {
  if (a === true || b === true) return true;
  const entries = new Set([a, b].flatMap((block) => Array.isArray(block) ? block : []));
  return entries.size === 0 && a === false ? false : [...entries];
}

/**
 * Returns reasons for each grant of a child that no module of the parent has. Tiers and limits need no
 * comparison, because `authorise` applies the same rules to both.
 *
 * @param resolve Resolves the paths of both. Default: paths are compared as written.
 */
export function exceedsParent(child: PlanGrants, parent: PlanGrants, resolve = asWritten): ErrorDetail[] {
  const most = grantedAnywhere(parent);
  const keyOf = ({ permission, entry }: GrantEntry) => JSON.stringify([permission, entry]);
  const known = new Set(entriesOf(most).map(keyOf));
  // perf: inherited entries are not parsed and compared with all others
  const newIn = (block: FullPermissions) =>
    blockOf(entriesOf(block).filter((entry) => !known.has(keyOf(entry))));
  return Object.entries(child.permissions).flatMap(([path, permissions]) =>
    excessPermissions(newIn(permissions), most, { asked: resolve, max: resolve }).map((entry) => ({
      path: `${path}.permissions.${entry.permission}`,
      message: `Cannot grant ${entryLabel(entry)} to a sub-agent: no module of the parent plan has it`,
      hint: "grant it to a module of the plan too, or leave it out",
    }))
  );
}

/**
 * Returns reasons to refuse the endpoints in the config of a caller's provider. The server's own keys are
 * sent only to the vendors' hosts or where an operator's plan points. A caller that changes the endpoint must
 * bring its own key, and the policy must allow the host.
 */
export function endpointReasons(
  spec: ModuleSpec,
  max: FullPermissions,
): ErrorDetail[] {
  if (!isProvider(spec)) return [];
  const { path: place, config } = spec;
  const { api_key } = config;
  const has_key = typeof api_key === "string" && api_key !== "" && findEnv(api_key).length === 0;
  const reasons: ErrorDetail[] = [];
  for (const key of ENDPOINT_KEYS) {
    const value = config[key];
    if (value === undefined || value === null) continue;
    const path = `${place}.config.${key}`;
    const host = typeof value === "string" && findEnv(value).length === 0 ? hostOf(value) : undefined;
    if (host === undefined) {
      const message = `Cannot use ${key}: must be a URL without variables`;
      reasons.push({ path, message, hint: "write https://host/path" });
    } else if (!mayReach(host, max.net)) {
      const message = `Cannot reach ${
        describe(host)
      } from a caller's plan: the policy's permissions.max.net does not list it`;
      reasons.push({ path, message, hint: "leave it out to use the vendor's own host" });
    }
    if (!has_key) {
      const message =
        `Cannot use ${key} without a key of your own: the server's key is sent to the vendor's host only`;
      reasons.push({ path, message, hint: "add api_key to the same config" });
    }
  }
  return reasons;
}

function mayReach(host: string, net: FullPermissions["net"]): boolean {
  return typeof net === "boolean" ? net : net.some((entry) => covers("net", entry, host));
}
