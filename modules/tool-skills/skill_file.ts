/**
 * Reads the file of a skill. Published files are read as their authors meant them: a value that is no valid
 * YAML, as in `description: Use when: it rains`, is the text that is written, and no key is required.
 */
import { type FileAccess, FileError } from "../files/access.ts";
import { isObject } from "preamp/base";

/** Name of the file in the folder of a skill. */
export const SKILL_FILE = "SKILL.md";

/** Maximum size of the file. */
export const MAX_SKILL_BYTES = 256 * 1024;

/** A skill as its file states it, without its text. */
export interface Skill {
  /** Lower-case words joined by hyphens: see {@link skillName}. */
  readonly name: string;
  /** One line. */
  readonly description: string;
  /** Absolute path without links. */
  readonly folder: string;
  /** Entries of `allowed-tools`; null: the file has none. */
  readonly allowed_tools: readonly string[] | null;
  /** Whether the model finds it by itself: not with `disable-model-invocation: true`. */
  readonly is_listed: boolean;
  /** Names of its commands in a conversation, the first is its own; none with `user-invocable: false`. */
  readonly commands: readonly string[];
}

const MAX_NAME = 64;

/** Returns a name as lower-case words joined by hyphens: `My_Skill` is `my-skill`. */
export function skillName(text: string): string {
  const words = text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  return words.join("-").slice(0, MAX_NAME).replace(/-$/, "");
}

/**
 * Reads the skill of a folder: what its file states, its text, and the number of the text's first line.
 *
 * @throws {FileError} with the path and the reason: the file cannot be read, its front matter does not end,
 * or neither a key nor its text says what it is for.
 */
export async function readSkill(
  access: FileAccess,
  folder: string,
): Promise<{ skill: Skill; body: string; first_line: number }> {
  const path = `${folder}/${SKILL_FILE}`;
  const { bytes } = await access.read(path, MAX_SKILL_BYTES);
  const refuse = (rule: string) => new FileError(`${access.display(path)} ${rule}`);
  const text = new TextDecoder().decode(bytes).replaceAll(/\r\n?/g, "\n").replace(/^\s+(?=---)/, "");
  const [whole, front = ""] = /^---[ \t]*\n(?:(.*?)\n)?---[ \t]*(?:\n|$)/s.exec(text) ?? [];
  if (whole === undefined && /^---[ \t]*\n/.test(text)) {
    throw refuse("must have a second line of --- after its keys");
  }
  const body = text.slice(whole?.length ?? 0).trim();
  const fields = await fieldsOf(front);
  const name = skillName(oneLine(fields, "name")) || skillName(folder.slice(folder.lastIndexOf("/") + 1));
  const when = oneLine(fields, "when_to_use");
  const description = [oneLine(fields, "description"), when].filter((text) => text !== "").join(" ") ||
    firstSentence(body);
  if (name === "") throw refuse("must have a name with letters or digits");
  if (description === "") throw refuse("must have a description, or a text");
  const shortcut = skillName(oneLine(fields, "shortcut"));
  const is_command = oneLine(fields, "user-invocable").toLowerCase() !== "false";
  const skill = {
    name,
    description,
    folder,
    allowed_tools: fields.has("allowed-tools") ? toolsIn(fields.get("allowed-tools")!.value) : null,
    is_listed: oneLine(fields, "disable-model-invocation").toLowerCase() !== "true",
    commands: is_command ? [...new Set([name, shortcut])].filter((command) => command !== "") : [],
  };
  return { skill, body, first_line: text.slice(0, text.lastIndexOf(body)).split("\n").length };
}

/** A value of the front matter: as YAML reads it, and as it is written. */
interface Field {
  readonly value: unknown;
  readonly written: string;
}

/**
 * Returns the fields of front matter. Where it is no valid YAML, each field is read by itself, so that one
 * value leaves the others as they are.
 */
async function fieldsOf(front: string): Promise<ReadonlyMap<string, Field>> {
  const fields = new Map<string, Field>();
  if (front === "") return fields;
  const { load, FAILSAFE_SCHEMA, YAMLException } = await import("js-yaml");
  const read = (text: string): Record<string, unknown> | null => {
    try {
      const data = load(text, { schema: FAILSAFE_SCHEMA }); // every scalar is a text
      return isObject(data) ? data : null;
    } catch (error) {
      if (error instanceof YAMLException) return null;
      throw error;
    }
  };
  const whole = read(front);
  const indent = /^[ \t]*/.exec(front)![0]; // of all keys, where they have one
  const text = `\n${front}`.replaceAll(`\n${indent}`, "\n").slice(1);
  for (const block of text.split(/\n(?=["']?[\w-]+["']?[ \t]*:(?:\s|$))/)) {
    const [, key, rest] = /^["']?([\w-]+)["']?[ \t]*:(?=\s|$)(.*)$/s.exec(block) ?? [];
    if (key === undefined || fields.has(key)) continue;
    const lines = rest!.split("\n").map((line) => line.trim()).filter((line) => !line.startsWith("#"));
    const written = lines.join(" ").trim().replace(/^[|>][+-]?\s/, "")
      .replace(/^(["'])(.*)\1$|^["']|["']$/gs, "$2");
    const own = whole ?? read(block);
    fields.set(key, { value: own && Object.hasOwn(own, key) ? own[key] : written, written });
  }
  for (const [key, value] of Object.entries(whole ?? {})) {
    if (!fields.has(key)) fields.set(key, { value, written: "" }); // of an object on one line
  }
  return fields;
}

/** Returns a field as one line; one that is a list or an object for YAML, such as `[Beta] …`, as written. */
function oneLine(fields: ReadonlyMap<string, Field>, key: string): string {
  const { value, written } = fields.get(key) ?? { value: "", written: "" };
  const text = typeof value === "string" ? value : value === null ? "" : written;
  return text.replace(/[\s\p{C}]+/gu, " ").trim();
}

/** Returns the first line of a text that says something, without marks of headings and lists. */
function firstSentence(body: string): string {
  const lines = body.split("\n").map((line) => line.replace(/^[#>*\s-]+/, "").trim());
  return (lines.find((line) => /[\p{L}\p{N}]/u.test(line)) ?? "").replace(/[\s\p{C}]+/gu, " ").slice(0, 300);
}

const MAX_TOOLS = 100;

/** Returns the entries of `allowed-tools`: a list, or a text with spaces or commas between them. */
function toolsIn(value: unknown): string[] {
  const text = Array.isArray(value)
    ? value.filter((one) => typeof one === "string").join(",")
    : String(value ?? "");
  return (text.match(/[^\s,()[\]"']+(?:\([^)]*\))?/g) ?? []).slice(0, MAX_TOOLS);
}
