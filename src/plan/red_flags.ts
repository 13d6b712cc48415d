/**
 * Finds what a security reviewer must look at before a plan runs
 * (src/docs/security.md#before-a-run-explain). Flags have stable codes and the path in the plan. Pure.
 */
import type { Permissions } from "../sdk/contracts.ts";
import type { ModuleSpec, MountPlan, PermissionKind } from "../sdk/plan.ts";
import { LIMIT_NAMES } from "./check/field_checks.ts";
import { mayAllowMore } from "./diff_module.ts";
import type { Tier } from "./check/check_spec.ts";
import { askedCalls } from "./summary.ts";
import { type DroppedEntry, entriesOf, entryLabel, type GrantEntry } from "./permissions/permission_block.ts";

/** One red flag. Codes are stable; clients must accept unknown ones. */
export interface RedFlag {
  code: string;
  message: string;
  /** Place in the plan, such as `tools[0].permissions.run`. */
  path: string;
}

/** What the flags of a module depend on. */
export interface FlaggedModule {
  /** The module, with its path in the plan as written: `agents.helper.tools[0]` for a module of an agent. */
  spec: ModuleSpec;
  tier: Tier;
  /** The plan's grant, and the path of the block that grants it: the module's own, or the plan's default. */
  asked: Permissions;
  grant_path: string;
  /** Entries of the grant that the module does not receive. */
  dropped: readonly DroppedEntry[];
  /** Whether the lock or the plan pins the module's integrity. */
  pinned: boolean;
  /** The fetched graph, with the URL of its entry file; absent for a built-in module. */
  graph?: { url: string };
}

/** Returns the flags of one module: its source, its tier, its grant. */
export function moduleFlags(module: FlaggedModule): RedFlag[] {
  return [...sourceFlags(module), ...tierFlags(module), ...grantFlags(module)];
}

function sourceFlags({ spec: { module, path, source }, graph, pinned }: FlaggedModule): RedFlag[] {
  if (source.kind !== "url") return [];
  const flags: RedFlag[] = [];
  const add = (code: string, fact: string) =>
    flags.push({ code, path: `${path}.source`, message: `"${module}" ${fact}` });
  const { protocol, origin } = new URL(source.url);
  if (protocol === "http:") {
    add("source_http", "comes over http, so anyone on the network path can change it");
  }
  if (protocol === "data:") add("source_inline", "is code inside the plan");
  if (protocol !== "http:" && protocol !== "https:") return flags;
  if (!pinned) {
    add(
      "source_unpinned",
      "is not pinned: its server can change the code at each load; pin it with preamp plan lock",
    );
  }
  const loaded = graph ? new URL(graph.url).origin : origin;
  if (loaded !== origin) add("source_redirected", `is redirected from ${origin} to ${loaded}`);
  return flags;
}

function tierFlags({ spec: { module, path, source }, tier }: FlaggedModule): RedFlag[] {
  if (source.kind === "builtin" || tier === "process") return [];
  const fact = "runs inside this process: it has all permissions of the process, whatever the grant";
  return [{ code: "isolation_inline", path, message: `"${module}" ${fact}` }];
}

/** The meaning of a permission that is granted whole. */
const WHOLE: Readonly<Record<PermissionKind, string>> = {
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
  const flag = (code: string, { permission }: GrantEntry, fact: string): RedFlag => ({
    code,
    path: `${grant_path}.${permission}`,
    message: `"${module}" ${fact}`,
  });
  return [
    ...entriesOf(asked).flatMap((entry) => {
      const found = entryFlag(entry);
      return found ? [flag(found.code, entry, found.fact)] : [];
    }),
    ...dropped.map((entry) =>
      flag("permission_refused", entry, `is granted ${entryLabel(entry)}, which ${WITHOUT[entry.by]}`)
    ),
  ];
}

/** Names of shells, with or without their folder. */
const SHELL = /(^|[\\/])((ba|z|k|da|a|fi|c|tc)?sh|pwsh|powershell|cmd|busybox)(\.exe)?$/i;

function entryFlag({ permission, entry }: GrantEntry): { code: string; fact: string } | undefined {
  if (entry === true) {
    const whole = permission === "run" || permission === "ffi" ? permission : `all_${permission}`;
    return { code: `permission_${whole}`, fact: WHOLE[permission] };
  }
  const shown = JSON.stringify(entry);
  switch (permission) {
    case "run":
      if (SHELL.test(entry)) {
        return { code: "permission_shell", fact: `may start the shell ${shown}, which can start anything` };
      }
      return { code: "permission_run", fact: `may start ${shown}, which has all permissions of this user` };
    case "ffi":
      return {
        code: "permission_ffi",
        fact: `may load the native library ${shown}, which ignores all permissions`,
      };
    case "net":
    case "import":
      if (!isWideHost(entry)) return undefined;
      return { code: `permission_wildcard_${permission}`, fact: `may reach all of ${shown}` };
    case "env":
      if (!entry.includes("*")) return undefined;
      return { code: "permission_wildcard_env", fact: `may read every variable of ${shown}` };
    case "read":
    case "write":
      if (!isBroadPath(entry)) return undefined;
      return { code: `permission_broad_${permission}`, fact: `may ${permission} all below ${shown}` };
    case "sys":
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

const RISKY: ReadonlySet<string> = new Set(["write", "run", "ffi"]);

/** Hooks of a plan, or of one of its agents. */
type Hooks = Pick<MountPlan, "hooks">;

/**
 * Returns the flags of agents whose own approval rules may allow what the plan asks about or denies.
 *
 * @param agents Paths of their hooks are places in the plan as written.
 */
export function agentFlags({ hooks }: Hooks, agents: readonly (Hooks & { name: string })[]): RedFlag[] {
  const gates = hooks.filter(({ module }) => module === "hooks-approval");
  return agents.flatMap(({ name, hooks: own }) =>
    gates.flatMap((gate) => {
      const changed = own.find(({ module, instance_id }) =>
        module === gate.module && instance_id === gate.instance_id
      );
      if (changed && !mayAllowMore(gate.config, changed.config)) return [];
      const fact = "has approval rules of its own, which may allow what the plan asks about or denies";
      const path = changed?.path ?? `agents.${name}.hooks`;
      return [{ code: "approval_loosened", path, message: `The agent "${name}" ${fact}` }];
    })
  );
}

/** Returns the flags of the plan as a whole. */
export function planFlags(plan: MountPlan, modules: readonly FlaggedModule[]): RedFlag[] {
  const flags: RedFlag[] = [];
  const missing = LIMIT_NAMES.filter((name) => plan.limits[name] === undefined);
  if (missing.length > 0) {
    const message = `the plan sets no ${missing.join(", ")}: the policy's limits apply`;
    flags.push({ code: "limits_missing", path: "limits", message });
  }
  const risky = modules.find(({ asked }) => entriesOf(asked).some(({ permission }) => RISKY.has(permission)));
  if (risky && askedCalls(plan) === null) {
    const message =
      `"${risky.spec.module}" may change things outside, and no hooks-approval asks for approval first`;
    flags.push({ code: "approval_missing", path: "hooks", message });
  }
  return flags;
}
