/** `tool-skills`: skills, instructions for kinds of tasks, which the model loads when it needs them. */
import { FileAccess, FileError } from "../files/access.ts";
import { walkFiles } from "../files/walk.ts";
import { AllowedTools } from "./allowed_tools.ts";
import { MAX_SKILL_BYTES, readSkill, type Skill, SKILL_FILE, skillName } from "./skill_file.ts";
import {
  type Coordinator,
  defineTool,
  type Found,
  type GrantedPermissions,
  type HookResult,
  isObject,
  type JsonObject,
  type JsonSchema,
  type ModuleInfo,
  type MountReturn,
  PreampError,
  readConfig,
  type TextFile,
  type Tool,
  toolFailure,
} from "preamp/base";

/** Folders of skills where the config names none, from the first readable folder. They may be missing. */
const USUAL_FOLDERS = [".agents/skills", ".claude/skills", ".amplifier/skills", "skills"];

const CONFIG_SCHEMA: JsonSchema = {
  type: "object",
  properties: {
    skills: {
      type: "array",
      items: { type: "string", format: "path", minLength: 1 },
      description: `Folders of skills, or single skills; default: ${USUAL_FOLDERS.join(", ")}`,
    },
    visibility: {
      type: "object",
      properties: {
        enabled: { type: "boolean", default: true, description: "List the skills to the model" },
      },
      default: {},
    },
  },
};

export const module: ModuleInfo = {
  id: "tool-skills",
  type: "tool",
  version: "1.0.0",
  description: "Gives the model the instructions of SKILL.md files when it needs them.",
  config_schema: CONFIG_SCHEMA,
  permissions: { read: ["${WORKSPACE}"] },
};

interface SkillSettings {
  skills?: string[];
  visibility: { enabled?: boolean };
}

/**
 * Finds the skills and mounts `skill`. Reports each file that is no valid skill as a warning.
 *
 * @throws {PreampError} `module_invalid` when the plan grants no `read`, or a folder is on the network.
 */
export async function mount(coordinator: Coordinator, config: JsonObject): Promise<MountReturn> {
  const settings = readConfig<SkillSettings>(CONFIG_SCHEMA, config, ({ skills = [] }, refuse) => {
    const at = skills.findIndex((path) => /\b(?:https?|ssh|git):\//.test(path));
    if (at >= 0) refuse(["skills", at], "must be a folder on this machine: clone it, and name that folder");
  });
  const { permissions } = coordinator;
  const access = new FileAccess(permissions);
  if (access.root === null && !(permissions.read === true && settings.skills)) {
    throw new PreampError(
      "module_invalid",
      `Cannot mount ${module.id}: its folders are unknown: give its entry permissions such as ` +
        "{ read: [${WORKSPACE}] }",
    );
  }
  const { skills, problems } = await findSkills(access, settings.skills);
  for (const message of problems) {
    await coordinator.hooks.emit("user:notification", { message, level: "warning", source: module.id });
  }
  const allowed = new AllowedTools(coordinator);
  const library = { access, skills, problems, allowed };
  const tool = skillTool(library, settings.visibility.enabled ?? true);
  await coordinator.mount("tools", tool, tool.name);
  coordinator.hooks.register("prompt:submit", (_event, data) => {
    allowed.beginTurn();
    return coordinator.parent_id === null ? withSkill(library, data) : null; // a model writes that of a sub-agent
  }, { name: module.id });
  // before rules that ask: what is denied here needs no question
  coordinator.hooks.register("tool:pre", (_event, { tool_name }) => {
    const reason = tool_name === tool.name ? null : allowed.refusal(String(tool_name));
    return reason === null ? null : { action: "deny", reason };
  }, { priority: -20, name: module.id, fail_closed: true });
  return { name: module.id, version: module.version, provides: [tool.name] };
}

/** Resolves to the skills, with the commands that start them. */
export async function finds(config: JsonObject, permissions: GrantedPermissions): Promise<Found[]> {
  const { skills } = await findSkills(
    new FileAccess(permissions),
    readConfig<SkillSettings>(CONFIG_SCHEMA, config).skills,
  );
  return [...skills.values()].map(({ name, description, commands }) => ({
    label: `skill ${name}`,
    commands: commands.map((command) => ({ name: command, summary: description })),
  }));
}

/** Resolves to the files of the skills. */
export async function texts(config: JsonObject, permissions: GrantedPermissions): Promise<TextFile[]> {
  const access = new FileAccess(permissions);
  const { skills } = await findSkills(access, readConfig<SkillSettings>(CONFIG_SCHEMA, config).skills);
  const found: TextFile[] = [];
  for (const { name, folder } of skills.values()) {
    try {
      const { bytes, checked: { path } } = await access.read(`${folder}/${SKILL_FILE}`, MAX_SKILL_BYTES);
      const sha256 = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes as BufferSource)).toHex();
      found.push({ label: `skill ${name}`, path, sha256, bytes: bytes.length });
    } catch (error) {
      if (!(error instanceof FileError)) throw error; // it was changed since it was found
    }
  }
  return found;
}

/** Folders that are looked into. */
const MAX_FOLDERS = 500;
/** Problems that are reported one by one. */
const MAX_PROBLEMS = 20;

/** Resolves to the skills of folders by name; of two with one name, the first counts. */
async function findSkills(access: FileAccess, paths: readonly string[] | undefined) {
  const skills = new Map<string, Skill>();
  const problems: string[] = [];
  const attempt = async (body: () => Promise<void>, is_required = true) => {
    try {
      await body();
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
      if (is_required) problems.push(`Cannot use a skill: ${error.message}`);
    }
  };
  const folders: string[] = [];
  for (const path of paths ?? USUAL_FOLDERS) {
    await attempt(async () => {
      const { path: folder, info } = await access.readable(path);
      if (!info.isDirectory) throw new FileError(`${path} is not a folder`);
      folders.push(...(hasSkill(folder) ? [folder] : foldersIn(folder)));
    }, paths !== undefined);
  }
  const left_out = folders.splice(MAX_FOLDERS).length;
  for (const path of folders) {
    await attempt(async () => {
      const { path: folder, info } = await access.readable(path);
      if (!info.isDirectory || !hasSkill(folder)) return;
      const { skill } = await readSkill(access, folder);
      const first = skills.get(skill.name);
      if (first === undefined) skills.set(skill.name, skill);
      else if (first.folder !== folder) {
        throw new FileError(`${access.display(folder)} has the name of ${access.display(first.folder)}`);
      }
    });
  }
  const more = problems.splice(MAX_PROBLEMS).length;
  if (more > 0) problems.push(`Cannot use ${more} more skills`);
  if (left_out > 0) {
    problems.push(`Cannot look for skills in more than ${MAX_FOLDERS} folders: ${left_out} are left out`);
  }
  return { skills, problems };
}

/** Returns the paths of the folders in a folder, and of links, sorted by name. @throws {FileError} */
function foldersIn(folder: string): string[] {
  try {
    const entries = [...Deno.readDirSync(folder)].filter(({ isFile }) => !isFile);
    return entries.map(({ name }) => `${folder}/${name}`).sort();
  } catch {
    throw new FileError(`${folder} cannot be listed`);
  }
}

function hasSkill(folder: string): boolean {
  try {
    Deno.lstatSync(`${folder}/${SKILL_FILE}`);
    return true;
  } catch {
    return false; // a folder of something else
  }
}

/** The skills of a session. */
interface Library {
  readonly access: FileAccess;
  readonly skills: ReadonlyMap<string, Skill>;
  /** Why other files are no skills. */
  readonly problems: readonly string[];
  readonly allowed: AllowedTools;
}

function skillTool(library: Library, is_listed: boolean): Tool {
  const { skills, problems } = library;
  const list = listOf([...skills.values()].filter((skill) => skill.is_listed), problems);
  return defineTool({
    name: "skill",
    description: "Load the instructions of a skill, before a task that it is for. " +
      (is_listed ? list : "A name that does not exist is answered with the list of skills."),
    input: {
      type: "object",
      properties: { name: { type: "string", description: "Name of the skill" } },
      required: ["name"],
    },
    risk: "low",
    idempotent: true,
    async execute({ name }: { name: string }, call) {
      const skill = skills.get(skillName(name));
      if (!skill?.is_listed) {
        return toolFailure(`There is no skill of this name. ${list}`, { type: "tool_input_invalid" });
      }
      try {
        return await loaded(library, skill, call?.signal);
      } catch (error) {
        if (error instanceof FileError) return toolFailure(error.message, { type: "file_error" });
        throw error;
      }
    },
  });
}

/** Characters of a skill's text that are given at once: less than a result of a tool may have. */
const TEXT_CHARS = 100_000;

/**
 * Resolves to the text of a skill as it is now, with its folder and files, and narrows the turn's tools.
 *
 * @throws {FileError} when it cannot be read.
 */
async function loaded(
  { access, allowed }: Library,
  { folder }: Skill,
  signal: AbortSignal | undefined,
): Promise<string> {
  const { skill, body, first_line } = await readSkill(access, folder);
  allowed.narrow(skill);
  const text = body.length <= TEXT_CHARS ? body : beginningOf(body, first_line, `${folder}/${SKILL_FILE}`);
  return [`Folder: ${folder}`, ...await filesOf(folder, signal), "", text].join("\n");
}

/** Returns the first lines of a text, and where to read on. */
function beginningOf(body: string, first_line: number, path: string): string {
  const end = body.lastIndexOf("\n", TEXT_CHARS);
  const shown = body.slice(0, end > 0 ? end : TEXT_CHARS).toWellFormed();
  const next = first_line + shown.split("\n").length - (end > 0 ? 0 : 1);
  return `${shown}\n[… ${body.length - shown.length} more characters: read ${path} from line ${next} on]`;
}

/**
 * Returns the prompt with the text of the skill that its first word starts: `/release 1.2`. Null for a prompt
 * that starts none.
 */
async function withSkill(library: Library, data: JsonObject): Promise<HookResult | null> {
  const { prompt } = data;
  const [first, ...rest] = Array.isArray(prompt) ? prompt : [prompt];
  const text = isObject(first) ? first.text : first;
  const [, word] = typeof text === "string" ? /^\/([\p{L}\p{N}-]+)(?=\s|$)/u.exec(text) ?? [] : [];
  const skill = [...library.skills.values()].find(({ commands }) => commands.includes(word ?? ""));
  if (!skill || typeof text !== "string") return null;
  let whole: string;
  try {
    const instructions = (await loaded(library, skill, undefined))
      .replaceAll("$ARGUMENTS", () => text.slice(word!.length + 1).trim()); // as other programs replace it
    whole = `${text}\n\n<skill name="${skill.name}">\n${instructions}\n</skill>`;
  } catch (error) {
    if (error instanceof FileError) return { action: "deny", reason: error.message };
    throw error;
  }
  return {
    action: "modify",
    data: { ...data, prompt: isObject(first) ? [{ ...first, text: whole }, ...rest] : whole },
  };
}

/** Characters of the descriptions in the list: beyond it, the longest are cut, all to the same length. */
const LIST_CHARS = 32_000;

/** Returns names and descriptions, one skill a line, and why other files are no skills. */
function listOf(skills: readonly Skill[], problems: readonly string[]): string {
  const longest = cutFor(skills.map(({ description }) => description.length));
  const lines = skills.map(({ name, description }) =>
    `- ${name}: ${
      description.length > longest ? `${description.slice(0, longest).toWellFormed()}…` : description
    }`
  );
  const list = skills.length === 0 ? "There are no skills here." : `Skills:\n${lines.join("\n")}`;
  return problems.length === 0
    ? list
    : `${list}\nNo skills:\n${problems.map((one) => `- ${one}`).join("\n")}`;
}

/** Returns the length to which texts are cut so that they have at most `LIST_CHARS` together. */
function cutFor(lengths: readonly number[]): number {
  let left = LIST_CHARS;
  const sorted = lengths.toSorted((one, other) => one - other);
  for (const [index, length] of sorted.entries()) {
    const share = Math.floor(left / (sorted.length - index));
    if (length > share) return share;
    left -= length;
  }
  return Infinity;
}

/** Files of a skill that are listed with its instructions. */
const MAX_FILES = 100;

/** Resolves to a line for each other file of a skill. */
async function filesOf(folder: string, signal: AbortSignal | undefined): Promise<string[]> {
  const files: string[] = [];
  await walkFiles(folder, ({ relative }) => {
    if (relative === SKILL_FILE) return;
    files.push(files.length < MAX_FILES ? `- ${relative}` : "- …");
    return files.length <= MAX_FILES;
  }, { signal });
  return files.length === 0 ? [] : ["Its other files:", ...files];
}
