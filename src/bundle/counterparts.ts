/**
 * Which module of ours runs for a module of Amplifier, with which config and permissions; and why another one
 * is left out. One table row per module.
 */
import { parseSource } from "../plan/source/source.ts";
import { isObject, type JsonObject } from "../sdk/json.ts";
import { describe } from "../sdk/value_path.ts";
import { approvalConfig, denialOf } from "./approval.ts";
import type { Report } from "./report.ts";

/** What a translation may use. */
export interface TranslationContext {
  readonly report: Report;
  /** Ids of the built-in modules. */
  readonly builtins: ReadonlySet<string>;
  /** Where the entry is written, for messages. */
  readonly where: string;
  /** Returns the folders of skills that can be used, as the plan names them. */
  skillFolders(references: readonly unknown[]): Promise<string[]>;
  /** Resolves to a local module as the plan names it; null if it is not code for this program. */
  entryOf(source: string): Promise<string | null>;
  /** Resolves to the keys of a built-in module's config; null: any. */
  keysOf(module: string): Promise<ReadonlySet<string> | null>;
  /** Adds rules to hooks-approval. */
  addRules(rules: readonly JsonObject[]): void;
}

interface Row {
  /** Id of our module; default: the same. */
  module?: string;
  /** Permissions that its tools need. */
  permissions?: JsonObject;
  /** Returns the config here. Default: as written. */
  config?(config: JsonObject, context: TranslationContext): JsonObject | Promise<JsonObject>;
}

const WORKSPACE = ["${WORKSPACE}"];

const RUNS: Readonly<Record<string, Row>> = {
  "loop-streaming": { config: loopConfig },
  "loop-basic": { config: loopConfig },
  "loop-events": { config: loopConfig },
  "context-simple": { config: contextConfig },
  "context-persistent": { config: contextConfig },
  "tool-filesystem": { permissions: { read: WORKSPACE, write: WORKSPACE }, config: filesConfig },
  "tool-apply-patch": {
    module: "tool-filesystem",
    permissions: { read: WORKSPACE, write: WORKSPACE },
    config: () => ({ dialect: "patch" }),
  },
  "tool-search": { permissions: { read: WORKSPACE } },
  "tool-bash": { permissions: { read: WORKSPACE, run: ["bash"] }, config: shellConfig },
  "tool-web": { permissions: { net: true } },
  "tool-skills": { permissions: { read: WORKSPACE }, config: skillsConfig },
  "tool-task": { config: taskConfig },
  "tool-delegate": { module: "tool-task", config: delegateConfig },
  "hooks-approval": { config: (config, { report, where }) => approvalConfig(config, report, where) },
  "hooks-status-context": { permissions: { read: WORKSPACE } },
  "hooks-redaction": { config: () => ({}) },
  "provider-anthropic": { config: providerConfig },
  "provider-openai": { config: providerConfig },
  "provider-gemini": { config: providerConfig },
  "provider-ollama": { config: providerConfig },
  "provider-azure": { config: providerConfig },
  "provider-azure-openai": { module: "provider-azure", config: providerConfig },
};

/** Why a module is left out. `note`: nothing is missing. */
const LEFT_OUT: Readonly<Record<string, { level: "note" | "warning"; reason: string }>> = {
  "hooks-streaming-ui": { level: "note", reason: "the terminal and the page show what it shows" },
  "hooks-todo-display": { level: "note", reason: "the terminal and the page show the todo list" },
  "hooks-logging": {
    level: "note",
    reason: "the log of each run has every event: preamp runs, or hooks-logging with a path",
  },
  "hooks-session-naming": { level: "warning", reason: "sessions are named by their first prompt" },
  "hooks-progress-monitor": {
    level: "warning",
    reason: "limits of a run bound its calls, and ten identical calls are said to the model",
  },
  "hooks-deprecation": { level: "warning", reason: "it only shows a message" },
  "hooks-notify": { level: "note", reason: "notifications belong to the program that starts runs" },
  "hooks-notify-push": { level: "note", reason: "notifications belong to the program that starts runs" },
  "tool-lsp": { level: "warning", reason: "there is no language server; search and the shell remain" },
  "tool-recipes": {
    level: "warning",
    reason: "there is no runner of recipes: their steps are prompts of one session",
  },
};

/** Returns the id here of a module that is named in a list, such as `exclude_tools`. */
export function moduleIdOf(id: string): string {
  return RUNS[id]?.module ?? id;
}

/**
 * Resolves to the module of a plan for an entry of a bundle; to null when it is left out. Reports what is
 * changed or left out.
 */
export async function translate(spec: JsonObject, context: TranslationContext): Promise<JsonObject | null> {
  const { report, builtins, where } = context;
  const id = typeof spec.module === "string" ? spec.module : String(spec.instance_id ?? spec.id);
  const leaveOut = (level: "note" | "warning", reason: string, hint?: string): null => {
    const message = `${id} of ${where} is left out: ${reason}`;
    if (level === "note") report.note(message, hint);
    else report.warn(message, hint);
    return null;
  };
  const row = Object.hasOwn(RUNS, id) ? RUNS[id]! : {};
  const module = row.module ?? id;
  const written = isObject(spec.config) ? spec.config : {};
  const is_elsewhere = id === "hooks-logging" && written.path === undefined; // its file is a template
  if (builtins.has(module) && !isOurSource(spec.source) && !is_elsewhere) {
    const config = await knownKeys(
      row.config ? await row.config(written, context) : written,
      module,
      context,
    );
    if (module === "tool-mcp" && config.servers === undefined && config.mcpServers === undefined) {
      return leaveOut(
        "warning",
        "it names no server",
        "preamp plan import --mcp .amplifier/mcp.json -o servers.yaml makes a plan of them; then run with both: -p plan.yaml -p servers.yaml",
      );
    }
    const { source: _, config: __, module: ___, id: ____, ...rest } = spec;
    const instance = spec.instance_id ?? spec.id;
    return {
      module,
      ...rest,
      ...(instance === undefined || instance === id ? {} : { instance_id: instance }),
      ...(Object.keys(config).length === 0 ? {} : { config }),
      ...(spec.permissions === undefined && row.permissions ? { permissions: withFolders(row, config) } : {}),
    };
  }
  const entry = typeof spec.source === "string" ? await context.entryOf(spec.source) : null;
  if (entry !== null || isOurSource(spec.source)) {
    return { ...spec, module: id, ...(entry === null ? {} : { source: entry }) };
  }
  const known = Object.hasOwn(LEFT_OUT, id) ? LEFT_OUT[id] : undefined;
  if (known) {
    const message = typeof written.message === "string" ? written.message : "";
    const said = id === "hooks-deprecation" && message !== "" ? `, which is ${describe(message)}` : "";
    return leaveOut(known.level, `${known.reason}${said}`);
  }
  const gate = id.startsWith("hooks-") ? "; a hook may have been a gate: look at what it refused" : "";
  const from = spec.source === undefined ? "" : ` (${describe(spec.source)})`;
  return leaveOut(
    "warning",
    `it is not built in, and its source${from} is not a module for this program${gate}`,
    `write it in TypeScript: preamp module new; then set its source to the URL or path of mod.ts`,
  );
}

/** Returns whether a source is code for this program: a file in TypeScript or JavaScript, or a package. */
function isOurSource(source: unknown): boolean {
  if (typeof source !== "string" || source.startsWith("file:")) return false;
  if (/^(?:npm|jsr|data):/.test(source)) return true;
  const parsed = parseSource(source);
  return "source" in parsed && parsed.source.kind === "url" && parsed.source.folder !== true;
}

/** Resolves to a config without the keys that the module does not have, each of which is reported. */
async function knownKeys(
  config: JsonObject,
  module: string,
  { report, where, keysOf }: TranslationContext,
): Promise<JsonObject> {
  const keys = await keysOf(module);
  if (keys === null) return config;
  const unknown = Object.keys(config).filter((key) => !keys.has(key));
  if (unknown.length > 0) {
    report.warn(
      `${unknown.join(", ")} of ${module} in ${where} ${
        unknown.length === 1 ? "has" : "have"
      } no counterpart`,
    );
  }
  return Object.fromEntries(Object.entries(config).filter(([key]) => keys.has(key)));
}

/** Returns the permissions of a row, with the folders that a config names. */
function withFolders({ permissions = {} }: Row, { skills }: JsonObject): JsonObject {
  if (!Array.isArray(skills) || skills.length === 0 || !Array.isArray(permissions.read)) {
    return { ...permissions };
  }
  return { ...permissions, read: [...permissions.read, ...skills] };
}

function loopConfig({ extended_thinking, stream_delay: _, ...config }: JsonObject): JsonObject {
  const thinks = extended_thinking === true && config.reasoning_effort === undefined;
  return { ...config, ...(thinks ? { reasoning_effort: "medium" } : {}) };
}

function contextConfig(
  { auto_compact, ...config }: JsonObject,
  { report, where }: TranslationContext,
): JsonObject {
  if (auto_compact === false) {
    report.warn(
      `auto_compact: false of ${where} is left out: a context is compacted before it would overflow`,
    );
  }
  return config;
}

/** Keys of a list of paths → the permission that grants them. */
const PATHS = { allowed_read_paths: "read", allowed_write_paths: "write" } as const;

function filesConfig(config: JsonObject, { report, where }: TranslationContext): JsonObject {
  const { require_approval: _, ...rest } = config;
  for (const [key, permission] of Object.entries(PATHS)) {
    if (rest[key] === undefined) continue;
    report.warn(
      `${key} of ${where} is left out: the grant here is the workspace`,
      `set permissions.${permission} of tool-filesystem to ${JSON.stringify(rest[key])}`,
    );
    delete rest[key];
  }
  for (const key of ["denied_read_paths", "denied_write_paths", "allowed_write_files"]) {
    if (rest[key] === undefined) continue;
    report.warn(
      `${key} of ${where} cannot be kept, and what it denied is allowed`,
      "name the folders that remain in permissions of tool-filesystem",
    );
    delete rest[key];
  }
  return rest;
}

/** Keys of a list of commands. Those that are denied become rules of hooks-approval. */
function shellConfig(config: JsonObject, { report, where, addRules }: TranslationContext): JsonObject {
  const { timeout, working_dir, denied_commands, allowed_commands, ...rest } = config;
  for (const key of ["require_approval", "safety_profile", "safety_overrides", "max_concurrent"]) {
    delete rest[key];
  }
  for (const command of Array.isArray(denied_commands) ? denied_commands : []) {
    const rules = denialOf(command);
    if (rules) addRules(rules);
    else report.warn(`The denied command ${describe(command)} of ${where} is asked about, and not denied`);
  }
  if (Array.isArray(allowed_commands) && allowed_commands.length > 0) {
    report.note(`allowed_commands of ${where} is left out: a person is asked about each command`);
  }
  return {
    ...rest,
    ...(typeof timeout === "number" ? { timeout_s: timeout } : {}),
    ...(typeof working_dir === "string" ? { root: working_dir } : {}),
  };
}

async function skillsConfig(config: JsonObject, context: TranslationContext): Promise<JsonObject> {
  const { skills, visibility } = config;
  const enabled = isObject(visibility) && typeof visibility.enabled === "boolean"
    ? { visibility: { enabled: visibility.enabled } }
    : {};
  const references = typeof skills === "string" ? [skills] : Array.isArray(skills) ? skills : [];
  const folders = await context.skillFolders(references);
  return { ...(folders.length === 0 ? {} : { skills: folders }), ...enabled };
}

function taskConfig(config: JsonObject): JsonObject {
  const mapped: JsonObject = { ...config };
  for (const key of ["exclude_tools", "inherit_tools"]) {
    const ids = config[key];
    if (Array.isArray(ids)) mapped[key] = [...new Set(ids.map((id) => moduleIdOf(String(id))))];
  }
  return mapped;
}

function delegateConfig(config: JsonObject, { report, where }: TranslationContext): JsonObject {
  const settings = isObject(config.settings) ? config.settings : {};
  const features = isObject(config.features) ? config.features : {};
  const feature = (name: string) => isObject(features[name]) ? features[name] as JsonObject : {};
  const inherits = feature("context_inheritance");
  if (feature("self_delegation").enabled === false) {
    report.warn(`self_delegation of ${where} cannot be turned off: an agent may give a task to itself`);
  }
  if (inherits.max_turns !== undefined) {
    report.note(`max_turns of ${where} is left out: a call may inherit at most 100 turns, by default 5`);
  }
  if (Array.isArray(settings.exclude_hooks) && settings.exclude_hooks.length > 0) {
    report.warn(`exclude_hooks of ${where} is left out: agents have the hooks of the plan`);
  }
  const listed = (key: string) => Array.isArray(settings[key]) ? { [key]: settings[key] } : {};
  const filter = { ...listed("exclude_tools"), ...listed("inherit_tools") };
  return taskConfig({
    tool_name: "delegate",
    inherit_context: inherits.enabled === false ? "none" : "recent",
    ...(Object.keys(filter).length === 0 ? { exclude_tools: ["tool-task"] } : filter),
  });
}

function providerConfig(config: JsonObject): JsonObject {
  const { effort, thinking_budget_tokens, ...rest } = config;
  return {
    ...rest,
    ...(effort === undefined ? {} : { reasoning_effort: effort }),
    ...(thinking_budget_tokens === undefined ? {} : { thinking_budget: thinking_budget_tokens }),
  };
}
