/**
 * What a plan may touch, said before anything of it runs (plan.md, explain; http.md, plans): pure, from what was compiled,
 * judged and fetched. The table of a reviewer and the answer of HTTP are this one object.
 */
import type { ModuleType, Permissions } from "../sdk/contracts.ts";
import type { ModuleSpec, MountPlan, RunLimits } from "../sdk/plan.ts";
import { denoFlags } from "./permissions/deno_flags.ts";
import { isInline, lockedName } from "./lock.ts";
import { blockOf, type DroppedEntry, entriesOf, grantedBeyond } from "./permissions/grants.ts";
import { type FlaggedModule, moduleFlags, planFlags, type RedFlag } from "./red_flags.ts";

/** Where a module runs. */
type Tier = FlaggedModule["tier"];

/** One file of a module, as it was fetched. */
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
  /** Version that the module states; null when it states none that can be read without running it. */
  version: string | null;
  /** What the module says of itself in one sentence; null as for `version`. */
  description: string | null;
  /** Place in the plan, such as `tools[0]`. */
  path: string;
  /** Where its entry file was found; null for what is compiled in. */
  url: string | null;
  /** Digest of its graph; null for what is compiled in. */
  integrity: string | null;
  isolation: Tier;
  files: ExplainedFile[];
  permissions: {
    /** What the module says it wants; null when it says nothing that can be read without running it. */
    wanted: Permissions | null;
    /** What the plan gives it. */
    asked: Permissions;
    /** What it gets: plan ∩ policy ∩ process. */
    granted: Permissions;
    /** What the plan gives and it does not get, or not whole; a red flag says who has not got it. */
    refused: Permissions;
  };
  red_flags: RedFlag[];
}

/** The answer of `explain`. */
export interface Explanation {
  plan_hash: string;
  /** Hash of the lock that was used; null without one. */
  lock_hash: string | null;
  /** In mount order. */
  modules: ExplainedModule[];
  /** Names of the variables that configs are given, sorted. */
  env: string[];
  /** The ceilings in force. */
  limits: RunLimits;
  /** What a process needs for this plan: its grants, its variables, the places its modules come from. */
  deno_flags: string[];
  /** Those of all modules, and of the plan itself. */
  red_flags: RedFlag[];
  warnings: { code: string; path?: string; message: string }[];
}

/** What is known of one module. */
export interface ModuleFacts {
  /** With its place in the plan as written: `agents.helper.tools[0]` for what an agent brings. */
  spec: ModuleSpec;
  tier: Tier;
  /** What the plan gives it, and the place of the block that says so ({@link planGrant}). */
  asked: Permissions;
  grant_path: string;
  /** What it gets of it, and what it does not (`effectiveGrant` of the policy). */
  granted: Permissions;
  dropped: readonly DroppedEntry[];
  /** Whether lock or plan say its digest. */
  pinned: boolean;
  /** What its file declares; null when that cannot be read. */
  declared: Permissions | null;
  /** What its file says of itself; null where it says nothing that can be read. */
  stated: Pick<ExplainedModule, "version" | "description">;
  /** Absent for what is compiled in. */
  graph?: {
    url: string;
    integrity: string;
    files: readonly ExplainedFile[];
    imports_refused: readonly { specifier: string | null; url: string; line: number }[];
  };
}

/** What a plan is explained from. */
export interface ExplainInput {
  plan: MountPlan;
  plan_hash: string;
  lock_hash: string | null;
  /** The ceilings in force. */
  limits: RunLimits;
  env: readonly { name: string }[];
  warnings: readonly { code: string; path?: string; message: string }[];
  modules: readonly ModuleFacts[];
  /** The plan file: files of this machine are named from there. */
  base_url?: string;
}

/** Returns what a plan may touch. */
export function explainPlan(input: ExplainInput): Explanation {
  const { plan, base_url } = input;
  const known = input.modules.map((facts) => ({ facts, module: explainModule(facts, input) }));
  const flagged = known.map(({ facts, module }) => flaggedOf(facts, module));
  known.forEach(({ module }, index) => module.red_flags.push(...moduleFlags(flagged[index]!))); // one for each
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

/** Returns what the plan gives a module: its own block, for tools without one the plan's default. */
export function askedOf(spec: ModuleSpec, plan: MountPlan): Permissions | undefined {
  return spec.permissions ?? (spec.type === "tool" ? plan.permissions : undefined);
}

/** Returns what a plan gives a module, and where it says so. */
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

/** Without queries, which may hold a signature, and without the code of data: URLs; files by their path from the plan. */
function displayUrl(text: string, base_url: string | undefined): string {
  if (isInline(text)) return `${text.slice(0, Math.min(text.indexOf(","), 80))},…`;
  if (text.startsWith("file:")) return lockedName(text, base_url);
  const { origin, pathname, search } = new URL(text);
  return `${origin}${pathname}${search === "" ? "" : "?…"}`;
}

/** What the process itself needs to fetch a module. */
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

/** A path as flags take it: from the folder of the plan, or from the root. */
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
      message: `"${spec.module}" wants ${wanted.join(", ")}: the plan does not grant it`,
    }]),
    ...(graph && declared === null
      ? [{
        code: "permission_unknown",
        path: spec.path,
        message:
          `What "${spec.module}" wants cannot be told without running it: it has no literal "export const module"`,
      }]
      : []),
    ...(graph?.imports_refused ?? []).map(({ specifier, url, line }) => ({
      code: "import_refused",
      path: spec.path,
      message: `${displayUrl(url, base_url)}:${line} imports ${
        specifier === null ? "what it computes" : JSON.stringify(specifier)
      }: it will throw`,
    })),
  ];
}
