/**
 * Finds what a security reviewer must look at before a plan runs
 * (src/docs/security.md#before-a-run-explain). Flags have stable codes and the path in the plan. Pure.
 */
import type { Permissions } from "../sdk/contracts.ts";
import type { ModuleSpec, MountPlan } from "../sdk/plan.ts";
import { LIMIT_NAMES } from "./check/check_limits.ts";
import type { PermissionName } from "./check/check_permissions.ts";
import { type DroppedEntry, entriesOf, type GrantEntry } from "./permissions/grants.ts";

/** One red flag. Codes are stable; clients must accept unknown ones. */
export interface RedFlag {
  code: string;
  message: string;
  /** Place in the plan, such as `tools[0].permissions.run`. */
  path: string;
}

/** Input of `moduleFlags`. */
export interface FlaggedModule {
  spec: ModuleSpec;
  tier: "inline" | "worker" | "process";
  /** Path of the block that grants: the module's own, or the plan's default. */
  grant_path: string;
  asked: Permissions;
  /** Entries of the grant that the module does not receive. */
  dropped: readonly DroppedEntry[];
  /** URL of the entry file; absent for built-in modules. */
  url?: string;
  pinned: boolean;
}

/** Returns the flags of one module: its source, its tier, its grant. */
export function moduleFlags(module: FlaggedModule): RedFlag[] {
  return [...sourceFlags(module), ...tierFlags(module), ...grantFlags(module)];
}

function sourceFlags({ spec: { module, path, source }, url, pinned }: FlaggedModule): RedFlag[] {
  if (source.kind !== "url") return [];
  const flags: RedFlag[] = [];
  const at = `${path}.source`;
  const requested = new URL(source.url);
  if (requested.protocol === "http:") {
    flags.push({
      code: "source_http",
      path: at,
      message: `"${module}" comes over http, so anyone on the network path can change it`,
    });
  }
  if (requested.protocol === "data:") {
    flags.push({ code: "source_inline", path: at, message: `"${module}" is code inside the plan` });
  }
  const web = requested.protocol === "http:" || requested.protocol === "https:";
  if (web && !pinned) {
    const message =
      `"${module}" is not pinned: its server can change the code at each load; pin it with preamp plan lock`;
    flags.push({ code: "source_unpinned", path: at, message });
  }
  if (web && url !== undefined && new URL(url).origin !== requested.origin) {
    const message = `"${module}" is redirected from ${requested.origin} to ${new URL(url).origin}`;
    flags.push({ code: "source_redirected", path: at, message });
  }
  return flags;
}

function tierFlags({ spec: { module, path, source }, tier }: FlaggedModule): RedFlag[] {
  if (source.kind === "builtin" || tier === "process") return [];
  return [
    tier === "inline"
      ? {
        code: "isolation_inline",
        path,
        message:
          `"${module}" runs inside this process: it has all permissions of the process, whatever the grant`,
      }
      : {
        code: "isolation_worker",
        path,
        message:
          `"${module}" runs in a worker: its permissions are limited, but it shares the memory and cannot be stopped`,
      },
  ];
}

/** The meaning of a permission that is granted whole. */
const WHOLE: Readonly<Record<PermissionName, string>> = {
  net: "may reach every host",
  read: "may read every file",
  write: "may write every file",
  env: "may read every environment variable",
  run: "may start any program, which has all permissions of this user",
  sys: "may read all facts about this machine",
  ffi: "may load native libraries, which ignore all permissions",
  import: "may import code from anywhere",
};

/** Who withholds a permission that the plan grants. */
const WITHOUT: Readonly<Record<DroppedEntry["by"], string>> = {
  policy: "the policy does not allow",
  process: "this process does not have",
};

function grantFlags({ spec: { module }, grant_path, asked, dropped }: FlaggedModule): RedFlag[] {
  const flags = entriesOf(asked).flatMap((entry) => {
    const found = entryFlag(entry);
    return found
      ? [{
        code: found.code,
        path: `${grant_path}.${entry.permission}`,
        message: `"${module}" ${found.fact}`,
      }]
      : [];
  });
  for (const { permission, entry, by } of dropped) {
    const label = entry === true ? `all of ${permission}` : `${permission} ${JSON.stringify(entry)}`;
    flags.push({
      code: "permission_refused",
      path: `${grant_path}.${permission}`,
      message: `"${module}" is granted ${label}, which ${WITHOUT[by]}`,
    });
  }
  return flags;
}

function entryFlag({ permission, entry }: GrantEntry): { code: string; fact: string } | undefined {
  if (permission === "run" || permission === "ffi") {
    const fact = entry === true
      ? WHOLE[permission]
      : permission === "run"
      ? `may start ${JSON.stringify(entry)}, which has all permissions of this user`
      : `may load the native library ${JSON.stringify(entry)}, which ignores all permissions`;
    return { code: `permission_${permission}`, fact };
  }
  if (entry === true) return { code: `permission_all_${permission}`, fact: WHOLE[permission] };
  switch (permission) {
    case "net":
    case "import":
      return isWideHost(entry)
        ? { code: `permission_wildcard_${permission}`, fact: `may reach all of ${JSON.stringify(entry)}` }
        : undefined;
    case "env":
      return entry.includes("*")
        ? { code: "permission_wildcard_env", fact: `may read every variable of ${JSON.stringify(entry)}` }
        : undefined;
    case "read":
    case "write":
      return isBroadPath(entry)
        ? {
          code: `permission_broad_${permission}`,
          fact: `may ${permission} all below ${JSON.stringify(entry)}`,
        }
        : undefined;
    default:
      return undefined;
  }
}

/** Returns true for a wildcard, an address range, or the address that means all. */
function isWideHost(entry: string): boolean {
  return entry.includes("*") || entry.includes("/") || /^(0\.0\.0\.0|\[::\]|::)(:|$)/.test(entry);
}

/** Returns true for a root, a home, a first-level folder, the plan's own folder or one above it. */
function isBroadPath(entry: string): boolean {
  const path = entry.replaceAll("\\", "/");
  const steps = path.split("/").filter((step) => step !== "" && step !== ".");
  if (steps.length === 0 || steps.includes("..")) return true;
  const absolute = path.startsWith("/") || /^[a-z]:$/i.test(steps[0]!);
  const home = /^(home|users)$/i.test(steps[0]!) && steps.length === 2;
  return absolute && (steps.length === 1 || home);
}

/** Returns the flags of the plan as a whole. */
export function planFlags(plan: MountPlan, modules: readonly FlaggedModule[]): RedFlag[] {
  const flags: RedFlag[] = [];
  const missing = LIMIT_NAMES.filter((name) => plan.limits[name] === undefined);
  if (missing.length > 0) {
    const message = `the plan sets no ${missing.join(", ")}: the policy's limits apply`;
    flags.push({ code: "limits_missing", path: "limits", message });
  }
  const risky = modules.find(({ asked }) =>
    entriesOf(asked).some(({ permission }) =>
      permission === "write" || permission === "run" || permission === "ffi"
    )
  );
  if (risky && !plan.hooks.some(({ module }) => module === "hooks-approval")) {
    const message =
      `"${risky.spec.module}" may change things outside, and no hooks-approval asks for approval first`;
    flags.push({ code: "approval_missing", path: "hooks", message });
  }
  return flags;
}
