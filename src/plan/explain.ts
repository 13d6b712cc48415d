/**
 * Explains what a plan may touch before any of its code runs (src/docs/security.md). Pure: works on
 * compiled, authorised and fetched data. The CLI's table and the HTTP response are made from the same
 * object.
 */
import { type MountPlan, PERMISSION_KINDS } from "../sdk/plan.ts";
import type { Tier } from "./check/check_spec.ts";
import type { PlanText } from "./compile.ts";
import { findEnv } from "./env.ts";
import { isInline, lockedName } from "./lock.ts";
import { decodePercent } from "../text/escape.ts";
import { blockOf, entriesOf, grantedBeyond, type GrantEntry } from "./permissions/permission_block.ts";
import { covers } from "./permissions/permission_entry.ts";
import { agentFlags, type FlaggedModule, moduleFlags, planFlags, type RedFlag } from "./red_flags.ts";
import { type ExplainedMode, explainModes } from "./modes.ts";
import { askedCalls, EVERYTHING, type PlanSummary, summaryText } from "./summary.ts";
import type { ModuleServer, ModuleType, Permissions, RunLimits } from "../sdk/contracts.ts";

/** One fetched file of a module. */
export interface ExplainedFile {
  url: string;
  /** Lower-case hex. */
  sha256: string;
  bytes: number;
}

/** A server that a module gets its tools from. */
export interface ExplainedServer extends ModuleServer {
  /** Names of its tools in the lock; null: the lock does not have it. */
  tools: string[] | null;
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
  /**
   * Host that a built-in provider sends prompts to; `module ID` for a provider from a URL, which may send
   * them on; null for a provider that answers by itself, and for other modules.
   */
  prompts_to: string | null;
  /** MCP servers that its config names. */
  servers: ExplainedServer[];
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

export interface Explanation {
  plan_hash: string;
  /** Hash of the lock that was used; null without one. */
  lock_hash: string | null;
  /** Files whose texts steer the model: part of `plan_hash`, and pinned by the lock. */
  texts: { label: string; url: string; sha256: string; bytes: number }[];
  /** Files of the project that would be read now; null without `instructions: project`. */
  instructions: { path: string; sha256: string; bytes: number }[] | null;
  /** The modes that a run can be put in. */
  modes: ExplainedMode[];
  /** What all modules may touch together, also as a sentence. */
  summary: PlanSummary;
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
export interface ModuleFacts extends FlaggedModule {
  /** The effective grant (`effectiveGrant` of the policy). */
  granted: Permissions;
  /** Permissions that the module's file declares; null if they cannot be read. */
  declared: Permissions | null;
  /** Version and description that the module's file declares; null where they cannot be read. */
  stated: Pick<ExplainedModule, "version" | "description">;
  prompts_to: string | null;
  /** The servers of a built-in module. */
  servers?: ExplainedServer[];
  /** Why this host refuses the module, as the second half of a sentence; absent if it does not. */
  refused?: string;
  /** The fetched graph; absent for a built-in module, and for one that this host cannot read. */
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
  texts: readonly PlanText[];
  instructions: readonly { path: string; sha256: string; bytes: number }[] | null;
  /** The effective limits. */
  limits: RunLimits;
  env: readonly { name: string }[];
  warnings: readonly { code: string; path?: string; message: string }[];
  modules: readonly ModuleFacts[];
  /** The plan's agents: their hooks, with their places in the plan as written. */
  agents?: readonly { name: string; hooks: MountPlan["hooks"] }[];
  /** Folder of `instructions: project`. */
  project_folder?: string;
  /** URL of the plan file; local files are named relative to it. */
  base_url?: string;
}

/** Returns what a plan may touch. */
export function explainPlan(input: ExplainInput): Explanation {
  const { plan, plan_hash, lock_hash, limits, base_url } = input;
  const modules = input.modules.map((facts) => explainModule(enforced(facts), base_url));
  const env = [...new Set(input.env.map(({ name }) => name))].sort();
  const facts = {
    prompts_to: [...new Set(modules.flatMap(({ prompts_to }) => prompts_to ?? []))].sort(),
    may: unionOf(modules.map(({ permissions }) => permissions.granted)),
    inside: [...new Set(input.modules.filter(isInside).map(({ spec }) => spec.module))].sort(),
    asks: askedCalls(plan),
  };
  return {
    plan_hash,
    lock_hash,
    texts: input.texts.map((text) => ({ ...text, url: displayUrl(text.url, base_url) })),
    instructions: input.instructions && input.instructions.map((file) => ({ ...file })),
    modes: explainModes(plan),
    summary: { text: summaryText(facts), ...facts },
    modules,
    env,
    limits,
    deno_flags: denoFlags([
      ...modules.map(({ permissions }) => permissions.asked),
      { env },
      ...input.project_folder === undefined ? [] : [{ read: [input.project_folder] }],
      ...input.modules.map((facts) => neededToLoad(facts, base_url)),
    ]),
    red_flags: [
      ...modules.flatMap(({ red_flags }) => red_flags),
      ...planFlags(plan, input.modules),
      ...agentFlags(plan, input.agents ?? []),
    ],
    warnings: [...input.warnings, ...input.modules.flatMap((facts) => warningsOf(facts, base_url))],
  };
}

/** Returns whether a module from a URL or a file runs inside the program. */
function isInside({ spec, tier }: ModuleFacts): boolean {
  return spec.source.kind !== "builtin" && tier === "inline";
}

/** Returns the facts with what is enforced: a module inside the program may do what the program may. */
function enforced(facts: ModuleFacts): ModuleFacts {
  return isInside(facts) ? { ...facts, granted: EVERYTHING, dropped: [] } : facts;
}

function explainModule(facts: ModuleFacts, base_url: string | undefined): ExplainedModule {
  const { spec, tier, asked, granted, dropped, declared, stated, graph } = facts;
  return {
    module: spec.module,
    type: spec.type,
    version: stated.version,
    description: stated.description,
    path: spec.path,
    url: graph ? displayUrl(graph.url, base_url) : urlOf(spec, base_url),
    integrity: graph?.integrity ?? null,
    isolation: tier,
    prompts_to: facts.prompts_to,
    servers: facts.servers ?? [],
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
    red_flags: moduleFlags(facts),
  };
}

/** Returns the URL of a module that was not fetched; null for a built-in one. */
function urlOf({ source }: ModuleFacts["spec"], base_url: string | undefined): string | null {
  return source.kind === "url" ? displayUrl(source.url, base_url) : null;
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
      const { protocol, hostname, port } = new URL(url);
      net.add(`${hostname}:${port || (protocol === "https:" ? 443 : 80)}`);
    }
  }
  return { net: [...net], read: [...read] };
}

/** Returns a path for a flag: relative to the plan's folder, or absolute. */
function lockedPath(url: string, base_url: string | undefined): string {
  const name = lockedName(url, base_url);
  return decodePercent(name.startsWith("file:") ? new URL(name).pathname : name);
}

function warningsOf(
  { spec: { module, path }, asked, declared, graph, refused }: ModuleFacts,
  base_url: string | undefined,
): Explanation["warnings"] {
  const warnings: Explanation["warnings"] = [];
  const warn = (code: string, message: string) => warnings.push({ code, path, message });
  if (refused !== undefined) {
    const remedy = "read its code and vendor it with preamp plan vendor --inline";
    warn("isolation_unavailable", `"${module}" is refused on this host: ${refused}; ${remedy}`);
  }
  const wanted = grantedBeyond(declared ?? undefined, asked)
    // a module that wants the folder of the plan's choice has it when the plan grants any
    .filter(({ permission, entry }) => findEnv(entry).length === 0 || !Array.isArray(asked[permission]))
    .map(({ permission, entry }) => entry === true ? `all of ${permission}` : `${permission} ${entry}`);
  if (wanted.length > 0) {
    warn("permission_not_granted", `"${module}" wants ${wanted.join(", ")}, which the plan does not grant`);
  }
  if (graph && declared === null) {
    const reason = 'it has no literal "export const module"';
    warn("permission_unknown", `The permissions that "${module}" wants are unknown: ${reason}`);
  }
  for (const { specifier, url, line } of graph?.imports_refused ?? []) {
    const label = specifier === null ? "a computed URL" : JSON.stringify(specifier);
    warn("import_refused", `${displayUrl(url, base_url)}:${line} imports ${label}: it will throw`);
  }
  return warnings;
}

/** Returns the fewest flags that grant all of these blocks, entries sorted. */
export function denoFlags(blocks: readonly Permissions[]): string[] {
  const entries = blocks.flatMap((block) => entriesOf(block)).map(sayable);
  return Object.entries(unionOf([blockOf(entries)])).map(([permission, value]) =>
    Array.isArray(value) ? `--allow-${permission}=${value.join(",")}` : `--allow-${permission}`
  );
}

/** Returns the fewest entries that grant all of these blocks, sorted. */
function unionOf(blocks: readonly Permissions[]): Permissions {
  const entries = blocks.flatMap((block) => entriesOf(block));
  return Object.fromEntries(PERMISSION_KINDS.flatMap((permission) => {
    const wanted = entries.filter((entry) => entry.permission === permission);
    if (wanted.length === 0) return [];
    return [[permission, wanted.some(({ entry }) => entry === true) || fewest(wanted)]];
  }));
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
