/**
 * Recognises what a file of Amplifier is, by its keys, and splits Markdown with front matter. Imports no
 * parser: every plan is asked about.
 */
import { isObject, type JsonObject } from "../sdk/json.ts";

/** Kinds of files. A `text` is Markdown without the keys of another kind. */
export type FileKind = "bundle" | "profile" | "agent" | "mode" | "skill" | "recipe" | "plan" | "text";

/** Keys of a bundle that a plan does not have, at the start of a line. */
const BUNDLE_KEY = /^(?:bundle|includes|profile|mode|steps|stages)[ \t]*:/m;
/** `include` as the first key of agents or context, in both styles of YAML. */
const INCLUDE =
  /^(?:agents|context)[ \t]*:[ \t]*(?:\{[ \t]*|(?:#.*)?\r?\n(?:[ \t]*#.*\r?\n)*[ \t]+)include[ \t]*:/m;

/** Returns whether a document may be something else than a plan. */
export function mayBeBundle(text: string, name: string): boolean {
  if (isMarkdownName(name)) return true;
  if (/^\s*\{/.test(text)) return /"(?:bundle|includes|profile)"\s*:/.test(text);
  return splitFrontMatter(text) !== null || BUNDLE_KEY.test(text) || INCLUDE.test(text);
}

/** A Markdown file in its two parts. */
interface MarkdownParts {
  /** The YAML, with the number of lines that it has in the file. */
  head: string;
  /** The text without spaces around it; may be empty. */
  body: string;
}

/** Returns the parts of a text with front matter; null if it has none. */
export function splitFrontMatter(text: string): MarkdownParts | null {
  const plain = text.startsWith("\uFEFF") ? text.slice(1) : text;
  const start = /^---[ \t]*\r?\n/.exec(plain)?.[0].length;
  if (start === undefined) return null;
  const closing = /^---[ \t]*\r?$/gm;
  closing.lastIndex = start;
  const end = closing.exec(plain);
  if (!end) return null;
  return { head: `\n${plain.slice(start, end.index)}`, body: plain.slice(closing.lastIndex).trim() };
}

/** Returns whether a name is that of a Markdown file. */
export function isMarkdownName(name: string): boolean {
  return /\.(?:md|markdown)$/i.test(name);
}

/** Keys of which an agent has one. */
const AGENT_KEYS = ["meta", "name", "description", "tools", "model", "model_role", "provider_preferences"];

/** Returns the kind of a document, by its keys and by the name of its file. */
export function kindOf(data: JsonObject, name: string, is_markdown: boolean): FileKind {
  if (data.bundle !== undefined) return "bundle";
  if (data.profile !== undefined) return "profile";
  if (isObject(data.mode)) return "mode";
  if (Array.isArray(data.steps) || Array.isArray(data.stages)) return "recipe";
  if (/(^|\/)SKILL\.md$/.test(name)) return "skill";
  const includes = [data.agents, data.context].some((value) =>
    isObject(value) && Array.isArray(value.include)
  );
  if (includes || data.includes !== undefined || is_markdown && data.session !== undefined) return "bundle";
  if (!is_markdown) return "plan";
  return AGENT_KEYS.some((key) => data[key] !== undefined) ? "agent" : "text";
}

/** What a file is that is no plan, and what to do with it; undefined: it is one, or can be made one. */
export const NOT_A_PLAN: Readonly<Partial<Record<FileKind, { fact: string; hint: string }>>> = {
  mode: {
    fact: "it is a mode, which belongs to an agent",
    hint: "keep it in the folder modes/ of a bundle, and name the bundle",
  },
  skill: {
    fact: "it is a skill, which an agent loads",
    hint: "name its folder in a plan: tools: [{ module: tool-skills, config: { skills: [FOLDER] } }]",
  },
  recipe: {
    fact: "it is a recipe of Amplifier, a list of steps, and there is no runner for them here",
    hint: "run its steps as prompts of one session, or write them as a program with the library",
  },
  text: {
    fact: "it is a text without the keys of a bundle or an agent",
    hint: "name it in a plan as system: { file: ./FILE }",
  },
};
