/** `tool-skills`: skills, instructions for kinds of tasks, which the model loads when it needs them. */
import { FileAccess, FileError } from "../files/access.ts";
import { walkFiles } from "../files/walk.ts";
import {
  type Coordinator,
  defineTool,
  type GrantedPermissions,
  isObject,
  type JsonObject,
  type JsonSchema,
  type ModuleInfo,
  type MountReturn,
  PreampError,
  readConfig,
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
  const tool = skillTool(access, skills, settings.visibility.enabled ?? true);
  await coordinator.mount("tools", tool, tool.name);
  return { name: module.id, version: module.version, provides: [tool.name] };
}

/** Resolves to the names of the skills. */
export async function finds(config: JsonObject, permissions: GrantedPermissions): Promise<string[]> {
  const { skills } = await findSkills(
    new FileAccess(permissions),
    readConfig<SkillSettings>(CONFIG_SCHEMA, config).skills,
  );
  return [...skills.keys()].map((name) => `skill ${name}`);
}

interface Skill {
  readonly name: string;
  readonly description: string;
  /** Absolute path without links. */
  readonly folder: string;
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
      const { name, description } = await readSkill(access, folder);
      const first = skills.get(name);
      if (first === undefined) skills.set(name, { name, description, folder });
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

const SKILL_FILE = "SKILL.md";
const MAX_SKILL_BYTES = 64 * 1024;
const MAX_NAME = 64;
const MAX_DESCRIPTION = 1024;
const NAME = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;

/** Reads the skill of a folder. @throws {FileError} when the file breaks a rule of the format. */
async function readSkill(access: FileAccess, folder: string) {
  const path = `${folder}/${SKILL_FILE}`;
  const { bytes } = await access.read(path, MAX_SKILL_BYTES);
  const text = new TextDecoder().decode(bytes).replaceAll("\r\n", "\n");
  const [whole, front] = /^---[ \t]*\n(.*?)\n---[ \t]*(?:\n|$)/s.exec(text) ?? [];
  const refuse = (rule: string) => new FileError(`${access.display(path)} ${rule}`);
  if (whole === undefined) throw refuse("must begin with name and description between two lines of ---");
  const yaml = await import("js-yaml");
  let fields: unknown;
  try {
    fields = yaml.load(front!, { schema: yaml.FAILSAFE_SCHEMA }); // every scalar is a text
  } catch (error) {
    if (!(error instanceof yaml.YAMLException)) throw error;
    throw refuse(`has no valid YAML in line ${(error.mark?.line ?? 0) + 2}: ${error.reason}`);
  }
  const { name, description } = isObject(fields) ? fields : {};
  if (typeof name !== "string" || name.length > MAX_NAME || !NAME.test(name)) {
    throw refuse(`must have a name of lower-case words joined by hyphens, at most ${MAX_NAME} characters`);
  }
  const line = typeof description === "string" ? description.replace(/[\s\p{C}]+/gu, " ").trim() : "";
  if (line === "" || line.length > MAX_DESCRIPTION) {
    throw refuse(`must have a description of 1 to ${MAX_DESCRIPTION} characters: received ${line.length}`);
  }
  return { name, description: line, body: text.slice(whole.length).trim() };
}

function skillTool(access: FileAccess, skills: ReadonlyMap<string, Skill>, is_listed: boolean): Tool {
  const list = listOf([...skills.values()]);
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
      const skill = skills.get(name);
      if (!skill) {
        return toolFailure(`There is no skill of this name. ${list}`, { type: "tool_input_invalid" });
      }
      try {
        const { body } = await readSkill(access, skill.folder);
        return [`Folder: ${skill.folder}`, ...await filesOf(skill.folder, call?.signal), "", body].join("\n");
      } catch (error) {
        if (error instanceof FileError) return toolFailure(error.message, { type: "file_error" });
        throw error;
      }
    },
  });
}

/** Characters of the list: above it, descriptions are cut to equal shares. */
const LIST_CHARS = 16_000;

/** Returns names and descriptions, one skill a line. */
function listOf(skills: readonly Skill[]): string {
  if (skills.length === 0) return "There are no skills here.";
  const lines = skills.map(({ name, description }) => `- ${name}: ${description}`);
  const share = lines.join("\n").length > LIST_CHARS ? Math.floor(LIST_CHARS / lines.length) : Infinity;
  const shown = lines.map((line, index) => {
    const chars = Math.max(share, skills[index]!.name.length + 2); // the whole name
    return line.length > chars ? `${line.slice(0, chars).toWellFormed()}…` : line;
  });
  return `Skills:\n${shown.join("\n")}`;
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
