/**
 * Explains what a plan may touch before any of its code runs (src/docs/security.md). Pure: works on
 * compiled, authorised and fetched data. The CLI's table and the HTTP response are made from the same
 * object.
 */
import { PERMISSION_NAMES } from "./check/check_permissions.ts";
import { isInline, lockedName } from "./lock.ts";
import {
  askedOf,
  blockOf,
  covers,
  type DroppedEntry,
  entriesOf,
  grantedBeyond,
  type GrantEntry,
} from "./permissions/grants.ts";
import { type FlaggedModule, moduleFlags, planFlags, type RedFlag } from "./red_flags.ts";
import type { ModuleType, Permissions, RunLimits } from "../sdk/contracts.ts";
import type { ModuleSpec, MountPlan } from "../sdk/plan.ts";

/** Tier in which a module runs. */
type Tier = FlaggedModule["tier"];

/** One fetched file of a module. */
export interface ExplainedFile {
  url: string;
  /** Lower-case hex. */
  sha256: string;
  bytes: number;
}

/** One module of the explained plan. */
export interface ExplainedModule {
  module: string;
  type: ModuleType;
  /** Version that the module's file declares; null if it cannot be read without running the file. */
  version: string | null;
  /** The module's description of itself in one sentence; null as for `version`. */
  description: string | null;
  /** Place in the plan, such as `tools[0]`. */
  path: string;
  /** URL of the entry file; null for a built-in module. */
  url: string | null;
  /** Integrity of the module's graph; null for a built-in module. */
  integrity: string | null;
  isolation: Tier;
  files: ExplainedFile[];
  permissions: {
    /** Permissions that the module declares; null if they cannot be read without running it. */
    wanted: Permissions | null;
    /** Permissions that the plan grants. */
    asked: Permissions;
    /** Effective permissions: plan ∩ policy ∩ process. */
    granted: Permissions;
    /**
     * Permissions that the plan grants but that are not effective, entirely or in part. A red flag names
     * who withholds them.
     */
    refused: Permissions;
  };
  red_flags: RedFlag[];
}

/** The result of `explain`. */
export interface Explanation {
  plan_hash: string;
  /** Hash of the lock that was used; null without one. */
  lock_hash: string | null;
  /** In mount order. */
  modules: ExplainedModule[];
  /** Names of the variables that configs receive, sorted. */
  env: string[];
  /** The effective limits. */
  limits: RunLimits;
  /**
   * Deno flags that a process needs for this plan: its grants, its variables, the hosts and files of its
   * modules.
   */
  deno_flags: string[];
  /** Flags of all modules and of the plan itself. */
  red_flags: RedFlag[];
  warnings: { code: string; path?: string; message: string }[];
}

/** Input of `explainPlan` about one module. */
export interface ModuleFacts {
  /** The module, with its path in the plan as written: `agents.helper.tools[0]` for a module of an agent. */
  spec: ModuleSpec;
  tier: Tier;
  /** The plan's grant, and the path of the block that grants it ({@link planGrant}). */
  asked: Permissions;
  grant_path: string;
  /** The effective grant and the dropped entries (`effectiveGrant` of the policy). */
  granted: Permissions;
  dropped: readonly DroppedEntry[];
  /** Whether the lock or the plan pins the module's integrity. */
  pinned: boolean;
  /** Permissions that the module's file declares; null if they cannot be read. */
  declared: Permissions | null;
  /** Version and description that the module's file declares; null where they cannot be read. */
  stated: Pick<ExplainedModule, "version" | "description">;
  /** The fetched graph; absent for a built-in module. */
  graph?: {
    url: string;
    integrity: string;
    files: readonly ExplainedFile[];
    imports_refused: readonly { specifier: string | null; url: string; line: number }[];
  };
}

/** Input of `explainPlan`. */
export interface ExplainInput {
  plan: MountPlan;
  plan_hash: string;
  lock_hash: string | null;
  /** The effective limits. */
  limits: RunLimits;
  env: readonly { name: string }[];
  warnings: readonly { code: string; path?: string; message: string }[];
  modules: readonly ModuleFacts[];
  /** URL of the plan file; local files are named relative to it. */
  base_url?: string;
}

/** Returns what a plan may touch. */
export function explainPlan(input: ExplainInput): Explanation {
  const { plan, base_url } = input;
  const known = input.modules.map((facts) => ({ facts, module: explainModule(facts, input) }));
  const flagged = known.map(({ facts, module }) => flaggedOf(facts, module));
  known.forEach(({ module }, index) => module.red_flags.push(...moduleFlags(flagged[index]!))); // `known` and `flagged` have the same order
  const env = [...new Set(input.env.map(({ name }) => name))].sort();
  return {
    plan_hash: input.plan_hash,
    lock_hash: input.lock_hash,
    modules: known.map(({ module }) => module),
    env,
    limits: input.limits,
    deno_flags: denoFlags([
      ...known.map(({ module }) => module.permissions.asked),
      { env },
      ...known.map(({ facts }) => neededToLoad(facts, base_url)),
    ]),
    red_flags: [...known.flatMap(({ module }) => module.red_flags), ...planFlags(plan, flagged)],
    warnings: [
      ...input.warnings,
      ...known.flatMap(({ facts, module }) => warningsOf(facts, module, base_url)),
    ],
  };
}

/** Returns the plan's grant to a module, and the path of the block that grants it. */
export function planGrant(spec: ModuleSpec, plan: MountPlan): Pick<ModuleFacts, "asked" | "grant_path"> {
  const standard = spec.permissions === undefined && spec.type === "tool" && plan.permissions !== undefined;
  return {
    asked: askedOf(spec, plan) ?? {},
    grant_path: standard ? "permissions" : `${spec.path}.permissions`,
  };
}

function explainModule(
  { spec, tier, asked, granted, dropped, declared, stated, graph }: ModuleFacts,
  { base_url }: ExplainInput,
): ExplainedModule {
  return {
    module: spec.module,
    type: spec.type,
    version: stated.version,
    description: stated.description,
    path: spec.path,
    url: graph ? displayUrl(graph.url, base_url) : null,
    integrity: graph?.integrity ?? null,
    isolation: tier,
    files: (graph?.files ?? []).map(({ url, sha256, bytes }) => ({
      url: displayUrl(url, base_url),
      sha256,
      bytes,
    })),
    permissions: {
      wanted: declared && blockOf(entriesOf(declared)),
      asked: blockOf(entriesOf(asked)),
      granted: blockOf(entriesOf(granted)),
      refused: blockOf(dropped),
    },
    red_flags: [],
  };
}

function flaggedOf(
  { spec, tier, pinned, grant_path, dropped, graph }: ModuleFacts,
  module: ExplainedModule,
): FlaggedModule {
  return {
    spec,
    tier,
    pinned,
    grant_path,
    asked: module.permissions.asked,
    dropped,
    ...(graph ? { url: graph.url } : {}),
  };
}

/**
 * Returns a URL for display: without query (it may contain a signature), without the code of `data:` URLs,
 * files relative to the plan.
 */
function displayUrl(text: string, base_url: string | undefined): string {
  if (isInline(text)) return `${text.slice(0, Math.min(text.indexOf(","), 80))},…`;
  if (text.startsWith("file:")) return lockedName(text, base_url);
  const { origin, pathname, search } = new URL(text);
  return `${origin}${pathname}${search === "" ? "" : "?…"}`;
}

/** Returns the permissions that the process needs to fetch a module. */
function neededToLoad({ spec: { source }, graph }: ModuleFacts, base_url: string | undefined): Permissions {
  const net = new Set<string>();
  const read = new Set<string>();
  const requested = source.kind === "url" ? [source.url] : []; // it may only redirect
  for (const url of [...requested, ...(graph?.files ?? []).map(({ url }) => url)]) {
    if (url.startsWith("file:")) read.add(lockedPath(url, base_url));
    else if (!isInline(url)) {
      net.add(new URL(url).port === "" ? `${new URL(url).host}:${standardPort(url)}` : new URL(url).host);
    }
  }
  return { net: [...net], read: [...read] };
}

function standardPort(url: string): string {
  return url.startsWith("https:") ? "443" : "80";
}

/** Returns a path for a flag: relative to the plan's folder, or absolute. */
function lockedPath(url: string, base_url: string | undefined): string {
  const name = lockedName(url, base_url);
  const path = name.startsWith("file:") ? new URL(name).pathname : name;
  try {
    return decodeURIComponent(path);
  } catch {
    return path; // a lone "%"
  }
}

function warningsOf(
  { spec, declared, graph }: ModuleFacts,
  { permissions: { asked } }: ExplainedModule,
  base_url: string | undefined,
): Explanation["warnings"] {
  const missing = grantedBeyond(declared ?? undefined, asked);
  const wanted = missing.map(({ permission, entry }) =>
    entry === true ? `all of ${permission}` : `${permission} ${entry}`
  );
  return [
    ...(wanted.length === 0 ? [] : [{
      code: "permission_not_granted",
      path: spec.path,
      message: `"${spec.module}" wants ${wanted.join(", ")}, which the plan does not grant`,
    }]),
    ...(graph && declared === null
      ? [{
        code: "permission_unknown",
        path: spec.path,
        message:
          `The permissions that "${spec.module}" wants are unknown: it has no literal "export const module"`,
      }]
      : []),
    ...(graph?.imports_refused ?? []).map(({ specifier, url, line }) => ({
      code: "import_refused",
      path: spec.path,
      message: `${displayUrl(url, base_url)}:${line} imports ${
        specifier === null ? "a computed URL" : JSON.stringify(specifier)
      }: it will throw`,
    })),
  ];
}

/** Returns the fewest flags that grant all of these blocks, entries sorted. */
export function denoFlags(blocks: readonly Permissions[]): string[] {
  const entries = blocks.flatMap((block) => entriesOf(block)).map(sayable);
  return PERMISSION_NAMES.flatMap((permission) => {
    const wanted = entries.filter((entry) => entry.permission === permission);
    if (wanted.length === 0) return [];
    if (wanted.some(({ entry }) => entry === true)) return [`--allow-${permission}`];
    return [`--allow-${permission}=${fewest(wanted).join(",")}`];
  });
}

function fewest(entries: readonly GrantEntry[]): string[] {
  const texts = [...new Set(entries.flatMap(({ entry }) => entry === true ? [] : [entry]))].sort();
  const { permission } = entries[0]!; // called for lists with entries only
  return texts.filter((text, index) =>
    !texts.some((other, at) =>
      at !== index && covers(permission, other, text) && (at < index || !covers(permission, text, other))
    )
  );
}

/**
 * Widens an entry with a comma, because flags separate entries by commas without escapes: a path becomes
 * its folder, any other entry everything.
 */
function sayable({ permission, entry }: GrantEntry): GrantEntry {
  if (entry === true || !entry.includes(",")) return { permission, entry };
  if (permission !== "read" && permission !== "write") return { permission, entry: true };
  const folder = entry.slice(0, entry.lastIndexOf("/", entry.indexOf(",")));
  return { permission, entry: folder === "" ? entry.startsWith("/") ? "/" : "." : folder };
}
