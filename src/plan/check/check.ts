/**
 * Checks plan data and expands every short form (src/docs/plan.md). Returns the checked plan or all
 * findings. Pure: runs, fetches and reads nothing.
 */
import { checkKeys, didYouMean, Findings } from "../../sdk/findings.ts";
import { isObject, type JsonObject } from "../../sdk/json.ts";
import type { ModuleSpec, MountPlan } from "../../sdk/plan.ts";
import { describe, formatPath, type Path } from "../../sdk/value_path.ts";
import { SELF } from "../child_plan.ts";
import { findPlanEnv, isFolderVariable, type PlanEnvReference, type PlanFolders } from "../env.ts";
import { preferenceProblem } from "../model_choice.ts";
import { OVERLAY_PROPERTIES, PLAN_PROPERTIES } from "../plan_schema.ts";
import { escapedPath, type SourceOptions } from "../source/source.ts";
import { checkLimits, MODEL_FORM, object, readModelName, text, texts } from "./field_checks.ts";
import { checkPermissions } from "./check_permissions.ts";
import { checkSession, type PartialSession } from "./check_session.ts";
import { checkList, type LIST_SECTIONS } from "./check_spec.ts";
import { checkMode, checkModes } from "../modes.ts";

/** Options of `checkPlan`. */
export interface CheckOptions extends SourceOptions {
  /**
   * Who wrote the plan. An operator's `${VAR}` outside of `config` is an error here; the policy checks a
   * caller's. Default `operator`.
   */
  origin?: "operator" | "caller";
  /**
   * Whether `system: {file}` is allowed: only in an operator's plan that was read from disk. Default false.
   */
  files?: boolean;
  /** Folders of the plan. A reference to one that it does not have is an error. Default: not checked. */
  folders?: PlanFolders;
}

/** Result of `checkPlan`. `plan` is absent if there are errors. */
export interface Checked {
  plan?: MountPlan;
  /** The modules whose entries have no errors, those of agents left out; also without a plan. */
  specs: readonly ModuleSpec[];
  findings: Findings;
  env: PlanEnvReference[];
  /** Whether the plan names its folders. */
  names_folders: boolean;
  files: FileReference[];
}

/** A text that must still be read from a file. */
export interface FileReference {
  /** Path of its owner: `[]` for the plan, `["agents", name]` for an agent. */
  owner: readonly string[];
  file: string;
}

const SECTIONS: ReadonlySet<string> = new Set(Object.keys(PLAN_PROPERTIES));
const OVERLAY_KEYS: ReadonlySet<string> = new Set(Object.keys(OVERLAY_PROPERTIES));

/** Checks a plan's data. Does not copy the value; the result shares parts of it. */
export function checkPlan(value: unknown, options: CheckOptions = {}): Checked {
  const findings = new Findings();
  const checked: Checked = { findings, specs: [], env: [], names_folders: false, files: [] };
  if (!isObject(value)) {
    const message = `Cannot read the plan: must be an object: received ${describe(value)}`;
    findings.error([], "root_type", message, "start with session:");
    return checked;
  }
  checkSections(value, findings);
  const parts = checkParts(value, [], { ...options, overlay: false }, checked);
  const { providers = [] } = value;
  if (Array.isArray(providers) && providers.length === 0) {
    const message = "The plan has no providers, so no model can answer";
    findings.warn([], "no_providers", message, "add providers: [provider-mock]");
  }
  const modes = value.modes === undefined ? {} : checkModes(value.modes, findings);
  const mode = checkMode(value.mode, modes, findings);
  const agents = Object.hasOwn(value, "agents") ? checkAgents(value.agents, options, checked) : {};
  if (value.roles !== undefined) checkRoles(value, findings);
  const references = findPlanEnv(value);
  if (options.folders) checkFolders(references, options.folders, findings);
  checked.env = references.filter(({ name, expanded }) => !expanded || !isFolderVariable(name));
  checked.names_folders = checked.env.length < references.length;
  // the policy reports a caller's reference in other places
  checkEnvPlaces(
    options.origin === "caller" ? checked.env.filter(({ text }) => text) : checked.env,
    findings,
  );
  const { session: { orchestrator, context }, providers: models, tools, hooks } = parts;
  checked.specs = [orchestrator, context, models, tools, hooks].flatMap((specs) => specs ?? []);
  if (findings.errors.length === 0 && orchestrator && context) {
    checked.plan = {
      ...parts,
      session: { ...parts.session, orchestrator, context },
      agents,
      ...(value.modes === undefined ? {} : { modes }),
      ...(mode === undefined ? {} : { mode }),
    };
  }
  return checked;
}

/** Checks the models of `roles`, and warns of a role that an agent asks for and the plan does not have. */
function checkRoles(plan: JsonObject, findings: Findings): void {
  const hint = `write roles: {coding: ${EXAMPLE_MODEL}}`;
  const roles = object(plan.roles, ["roles"], findings, hint) ?? {};
  for (const [role, written] of Object.entries(roles)) {
    const models = Array.isArray(written) ? written : [written];
    for (const [index, model] of models.entries()) {
      if (typeof model === "string" && readModelName(model) !== null) continue;
      const path = Array.isArray(written) ? ["roles", role, index] : ["roles", role];
      findings.error(
        path,
        "value",
        `Cannot read a model: must be ${MODEL_FORM}: received ${describe(model)}`,
        hint,
      );
    }
  }
  const missing = new Set<string>();
  for (const overlay of Object.values(isObject(plan.agents) ? plan.agents : {})) {
    const asked = [isObject(overlay) ? overlay.model_role : undefined].flat().filter((role) =>
      typeof role === "string"
    );
    if (!asked.some((role) => Object.hasOwn(roles, role))) asked.forEach((role) => missing.add(role));
  }
  for (const role of missing) {
    const message = `No model is set for the role ${describe(role)}: its agents run on the plan's model`;
    findings.warn(["roles"], "role_unknown", message, `add ${role}: PROVIDER/MODEL to roles`);
  }
}

const EXAMPLE_MODEL = "anthropic/claude-sonnet-5-5";

function checkSections(plan: JsonObject, findings: Findings): void {
  for (const key of Object.keys(plan)) {
    if (SECTIONS.has(key)) continue;
    const meant = didYouMean(key, SECTIONS);
    if (meant === undefined) {
      const message = `Unknown sections will be ignored: ${describe(key)}`;
      findings.warn([key], "unknown_sections", message);
    } else {
      const message = `Cannot use section ${describe(key)}: a plan has no such section`;
      findings.error([key], "unknown_key", message, `did you mean "${meant}"?`);
    }
  }
  if (!Object.hasOwn(plan, "session")) {
    const hint = "add session: {orchestrator: loop-streaming, context: context-simple}";
    findings.error([], "session_present", "Cannot read the plan: it has no session", hint);
  }
  if (Object.hasOwn(plan, "preamp") && plan.preamp !== 1) {
    const message = `Cannot read preamp: must be 1, the version of the plan format: received ${
      describe(plan.preamp)
    }`;
    findings.error(["preamp"], "value", message, "write preamp: 1");
  }
}

/** What a plan and an agent's overlay have in common. Sections that are absent or invalid are left out. */
interface Parts extends Omit<MountPlan, "session" | "agents"> {
  session: PartialSession;
}

function checkParts(
  part: JsonObject,
  path: readonly string[],
  options: CheckOptions & { overlay: boolean },
  { findings, files }: Checked,
): Parts {
  const at = (key: string) => [...path, key];
  const list = (section: keyof typeof LIST_SECTIONS) =>
    checkList(part[section], section, at(section), findings, options);
  const { description, system, instructions, spawn, limits, permissions } = part;
  if (description !== undefined) text(description, at("description"), findings);
  const parts = {
    session: checkSession(part, path, findings, options),
    providers: list("providers"),
    tools: list("tools"),
    hooks: list("hooks"),
    system: system === undefined ? undefined : checkSystem(system, path, findings, options, files),
    instructions: instructions === undefined
      ? undefined
      : checkInstructions(instructions, at("instructions"), findings, options),
    spawn: spawn === undefined ? undefined : checkSpawn(spawn, at("spawn"), findings),
    limits: limits === undefined ? {} : checkLimits(limits, at("limits"), findings),
    permissions: permissions === undefined
      ? undefined
      : checkPermissions(permissions, at("permissions"), findings),
  };
  const given = Object.entries(parts).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given) as unknown as Parts; // its optional keys are absent instead of undefined
}

function checkEnvPlaces(env: readonly PlanEnvReference[], findings: Findings): void {
  for (const { name, at, expanded, text } of env) {
    if (expanded) continue;
    const [fact, hint] = text === "instruction"
      ? [
        "the values of variables are secrets, which a text for the model must not have",
        `write the value itself, or $\${${name}} for the characters \${${name}}; \${PLAN_DIR} and \${WORKSPACE} are expanded`,
      ]
      : [
        "variables are expanded in config only",
        text
          ? "write the value itself"
          : "write the value itself; permissions may have ${PLAN_DIR} and ${WORKSPACE}",
      ];
    findings.error(at, "env_place", `Cannot use \${${name}} here: ${fact}`, hint);
  }
}

/** Why a plan has no such folder, and what to write instead. */
const NO_FOLDER = {
  PLAN_DIR: ["the plan has no file", "write absolute paths, or ${WORKSPACE}"],
  WORKSPACE: [
    "no folder is set for plans without a file",
    "write absolute paths; the operator sets the folder with the setting workspace",
  ],
} as const;

function checkFolders(
  references: readonly PlanEnvReference[],
  folders: PlanFolders,
  findings: Findings,
): void {
  for (const { name, at, expanded } of references) {
    if (!expanded || !isFolderVariable(name) || folders[name] !== undefined) continue;
    const [fact, hint] = NO_FOLDER[name];
    findings.error(at, "folder_unknown", `Cannot expand \${${name}}: ${fact}`, hint);
  }
}

/** Maximum number of names that a message lists. */
const MAX_LISTED = 20;

/** Checks each agent as a partial plan, which is merged over its parent. Returns the overlays as written. */
function checkAgents(value: unknown, options: CheckOptions, checked: Checked): JsonObject {
  const { findings } = checked;
  const agents = object(value, ["agents"], findings, "write agents: {name: {description, tools, …}}") ?? {};
  const names = Object.keys(agents);
  for (const name of names) {
    const path = ["agents", name];
    if (name === "include" && Array.isArray(agents.include)) {
      const message = "Cannot read agents.include: it names files of a bundle, and this is a plan as data";
      findings.error(path, "type", message, "make a plan of the bundle: preamp plan import");
      continue;
    }
    if (name === SELF) {
      const message = `Cannot use agent name "${SELF}": it means the plan itself`;
      findings.error(path, "reserved", message, "choose another name");
    }
    const overlay = object(agents[name], path, findings, "write {description, system, tools, …}");
    if (overlay) checkOverlay(withoutAppends(overlay), path, names, options, checked);
  }
  return agents;
}

function checkOverlay(
  overlay: JsonObject,
  path: readonly string[],
  names: readonly string[],
  options: CheckOptions,
  checked: Checked,
): void {
  const { findings } = checked;
  checkKeys(overlay, OVERLAY_KEYS, path, findings, "warning");
  checkParts(overlay, path, { ...options, overlay: true }, checked);
  const { instruction, agents, model_role, provider_preferences } = overlay;
  if (instruction !== undefined) text(instruction, [...path, "instruction"], findings);
  if (agents !== undefined) checkFilter(agents, names, [...path, "agents"], findings);
  if (model_role !== undefined) {
    const check = Array.isArray(model_role) ? texts : text; // a list is in order of preference
    check(model_role, [...path, "model_role"], findings);
  }
  if (provider_preferences === undefined) return;
  const problem = preferenceProblem(provider_preferences, "provider_preferences");
  if (problem === null) return;
  findings.error([...path, "provider_preferences"], "type", `Cannot read ${problem}`);
}

/** Returns the overlay with `tools+` (append, see merge.ts) as `tools`, so that both are checked alike. */
function withoutAppends(written: JsonObject): JsonObject {
  const overlay: JsonObject = {};
  for (const [key, value] of Object.entries(written)) {
    const plain = key.replace(/\+$/, "");
    const before = overlay[plain];
    overlay[plain] = Array.isArray(before) && Array.isArray(value) ? [...before, ...value] : value;
  }
  return overlay;
}

/** Checks which of the plan's agents an agent may spawn. A name that no agent has is a typo or a leftover. */
function checkFilter(filter: unknown, names: readonly string[], path: Path, findings: Findings): void {
  if (filter === "all" || filter === "none") return;
  if (!Array.isArray(filter) || filter.some((name) => typeof name !== "string")) {
    const message = `Cannot read ${formatPath(path)}: must be "all", "none" or a list of names: received ${
      describe(filter)
    }`;
    findings.error(path, "type", message);
    return;
  }
  const listed = names.slice(0, MAX_LISTED).map(describe);
  const known = [...listed, ...names.length > MAX_LISTED ? ["…"] : []].join(", ");
  for (const [index, name] of filter.entries()) {
    if (names.includes(name)) continue;
    const message = `The plan has no agent ${describe(name)}: it has ${known}`;
    findings.warn([...path, index], "unknown_agent", message);
  }
}

/**
 * Checks which tools sub-agents inherit (`spawn`). Other keys belong to applications and are not checked.
 */
function checkSpawn(value: unknown, path: Path, findings: Findings): JsonObject | undefined {
  const spawn = object(value, path, findings, "write spawn: {exclude_tools: [tool-task]}");
  for (const key of ["exclude_tools", "tools"]) {
    if (spawn?.[key] !== undefined) texts(spawn[key], [...path, key], findings, "write a list of module ids");
  }
  return spawn;
}

const SYSTEM_KEYS: ReadonlySet<string> = new Set(["instruction", "file"]);
const SYSTEM_HINT = 'write system: "text", {instruction: "text"} or {file: ./system.md}';

/** Returns the text of the instruction of `owner`; adds the name of a file to `files` instead. */
function checkSystem(
  value: unknown,
  owner: readonly string[],
  findings: Findings,
  options: CheckOptions,
  files: FileReference[],
): string | undefined {
  const path = [...owner, "system"];
  if (typeof value === "string") return text(value, path, findings, SYSTEM_HINT);
  if (!isObject(value)) {
    const message = `Cannot read system: must be text or an object: received ${describe(value)}`;
    findings.error(path, "type", message, SYSTEM_HINT);
    return undefined;
  }
  checkKeys(value, SYSTEM_KEYS, path, findings, "error");
  const { instruction, file } = value;
  if ((instruction === undefined) === (file === undefined)) {
    const received = instruction === undefined ? "neither" : "both";
    const message = `Cannot read system: must have one of instruction and file: received ${received}`;
    findings.error(path, "value", message, SYSTEM_HINT);
    return undefined;
  }
  if (instruction !== undefined) return text(instruction, [...path, "instruction"], findings);
  const name = text(file, [...path, "file"], findings);
  if (name === undefined) return undefined;
  if (options.files) files.push({ owner, file: name });
  else {
    const fact = `only a plan that was read from disk may name a file: received ${describe(name)}`;
    const hint = "send the text itself: system: {instruction: …}";
    findings.error([...path, "file"], "file_refused", `Cannot read system.file: ${fact}`, hint);
  }
  return undefined;
}

/** Returns `project`, for which files of the workspace are read; undefined for `none`. */
function checkInstructions(
  value: unknown,
  path: Path,
  findings: Findings,
  { origin, folders }: CheckOptions,
): "project" | undefined {
  if (value === "none") return undefined;
  const hint = "write instructions: project, or none";
  if (value !== "project") {
    const message = `Cannot read instructions: must be "project" or "none": received ${describe(value)}`;
    findings.error(path, "value", message, hint);
  } else if (origin === "caller") {
    const message =
      "Cannot use instructions: project: it reads files of this machine, which only a plan of the " +
      "operator may";
    findings.error(path, "file_refused", message, "remove it, and send the text in system");
  } else if (folders && folders.WORKSPACE === undefined) {
    const [fact, hint] = NO_FOLDER.WORKSPACE;
    findings.error(path, "folder_unknown", `Cannot read instructions of a project: ${fact}`, hint);
  } else return value;
  return undefined;
}

/** Returns the URL of the file of `system: {file}`: a path relative to the plan's file, or a `file:` URL. */
export function systemFileUrl(file: string, base_url: string | undefined): string {
  if (file.startsWith("file:")) return new URL(file).href;
  return new URL(escapedPath(file.replaceAll("\\", "/")), base_url).href;
}
