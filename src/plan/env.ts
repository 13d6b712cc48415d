/**
 * Finds and expands `${VAR}` references: `${VAR}`, `${VAR:default}`, `${VAR:-default}`, and `$${` for a
 * literal `${`. Values of variables are not scanned for further references.
 * In a plan, references are expanded in every `config`, never in text for models.
 */
import { formatPath, type Path } from "../sdk/value_path.ts";
import { isObject, type JsonObject } from "../sdk/json.ts";

/** A reference to an environment variable. */
export interface EnvReference {
  /** Name of the variable. */
  name: string;
  /** Place of the reference in the plan, such as `tools[0].config.token`. */
  path: string;
}

/** The result of expanding a config. */
export interface Expansion {
  value: JsonObject;
  /** Whether the config contains references. */
  refers: boolean;
  /** References to variables that are not set and have no default. */
  missing: EnvReference[];
  /** Values of the variables that were read; the redactor treats them as secrets. */
  secrets: string[];
}

type Part = { text: string } | { name: string; fallback: string | undefined };

/** Returns every reference in a value, in document order. */
export function findEnv(value: unknown): EnvReference[] {
  const found: EnvReference[] = [];
  visitEnv(value, (name, path) => found.push({ name, path: formatPath(path) }));
  return found;
}

/**
 * Calls `found` for every reference in a value, except in places that `skip` excludes. `path` is valid
 * during the call only.
 */
export function visitEnv(
  value: unknown,
  found: (name: string, path: Path) => void,
  skip: (path: Path) => boolean = () => false,
): void {
  const path: (string | number)[] = [];
  function visit(item: unknown): void {
    if (typeof item === "string") {
      if (!item.includes("${")) return;
      for (const part of scan(item)) if ("name" in part) found(part.name, path);
    } else if (Array.isArray(item)) {
      for (let index = 0; index < item.length; index++) descend(index, item[index]);
    } else if (isObject(item)) {
      for (const key of Object.keys(item)) descend(key, item[key]);
    }
  }
  function descend(step: string | number, item: unknown): void {
    path.push(step);
    if (!skip(path)) visit(item);
    path.pop();
  }
  visit(value);
}

/**
 * Returns a copy of a config with its references replaced. An unset variable without a default is reported
 * in `missing`. A field that consists of such a variable is left out, so that `if (!config.api_key)` works;
 * elsewhere the variable becomes empty text. Keys are not expanded.
 *
 * @param path Place of the config in the plan, for `missing`.
 */
export function expandEnv(
  config: JsonObject,
  lookup: (name: string) => string | undefined,
  path: string = "",
): Expansion {
  const missing: EnvReference[] = [];
  let refers = false;
  const secrets = new Set<string>();

  function expand(item: unknown, place: Position): unknown {
    if (typeof item === "string") return expandText(item, place);
    if (Array.isArray(item)) {
      return item.map((entry, index) => expandItem(entry, { within: place, at: index }));
    }
    return isObject(item) ? expandFields(item, place) : item;
  }

  /** Expands a list entry. An unset entry becomes empty text, so that the others keep their index. */
  function expandItem(item: unknown, place: Position): unknown {
    const value = expand(item, place);
    return value === undefined ? "" : value;
  }

  function expandFields(fields: JsonObject, place: Position): JsonObject {
    const result: JsonObject = {};
    for (const key of Object.keys(fields)) {
      const item = fields[key];
      const plain = typeof item === "string"
        ? !item.includes("${")
        : typeof item !== "object" || item === null;
      const value = plain ? item : expand(item, { within: place, at: key });
      if (value !== undefined) result[key] = value;
    }
    return result;
  }

  /** Returns the expanded text; undefined when the whole text is a reference to an unset variable. */
  function expandText(text: string, place: Position): string | undefined {
    if (!text.includes("${")) return text;
    const parts = scan(text);
    let result = "";
    let unset = false;
    for (const part of parts) {
      if ("text" in part) {
        result += part.text;
        continue;
      }
      refers = true;
      const value = lookup(part.name);
      if (value !== undefined) {
        secrets.add(value);
        result += value;
      } else if (part.fallback !== undefined) result += part.fallback;
      else {
        missing.push({ name: part.name, path: placeText(place) });
        unset = true;
      }
    }
    return unset && parts.length === 1 ? undefined : result;
  }

  const value = expandFields(config, { within: null, at: path });
  return {
    value,
    refers,
    missing,
    secrets: [...secrets].filter((value) => value !== ""),
  };
}

/**
 * Place of a value. perf: it is formatted only for missing variables, because formatting costs more than
 * the copy.
 */
interface Position {
  readonly within: Position | null;
  readonly at: string | number;
}

function placeText({ within, at }: Position): string {
  if (within === null) return String(at);
  const outer = placeText(within);
  if (typeof at === "number") return `${outer}[${at}]`;
  return outer === "" ? at : `${outer}.${at}`;
}

/**
 * Splits text at its references. A `${` that is not closed or does not contain a variable name is plain
 * text.
 */
function scan(text: string): Part[] {
  const parts: Part[] = [];
  let literal = "";
  let position = 0;
  for (;;) {
    const start = text.indexOf("${", position);
    if (start === -1) break;
    if (start > position && text[start - 1] === "$") {
      literal += text.slice(position, start - 1) + "${";
      position = start + 2;
      continue;
    }
    const end = text.indexOf("}", start + 2);
    if (end === -1) break;
    const reference = readReference(text.slice(start + 2, end));
    literal += text.slice(position, start);
    if (reference) {
      if (literal) parts.push({ text: literal });
      literal = "";
      parts.push(reference);
    } else literal += text.slice(start, end + 1);
    position = end + 1;
  }
  literal += text.slice(position);
  if (literal || parts.length === 0) parts.push({ text: literal });
  return parts;
}

/** Reads the text between the braces: a name, then nothing, `:default` or `:-default` (as in a shell). */
function readReference(inner: string): { name: string; fallback: string | undefined } | undefined {
  const colon = inner.indexOf(":");
  const name = colon === -1 ? inner : inner.slice(0, colon);
  if (!isVariableName(name)) return undefined;
  if (colon === -1) return { name, fallback: undefined };
  const fallback = inner.slice(colon + 1);
  return { name, fallback: fallback.startsWith("-") ? fallback.slice(1) : fallback };
}

/**
 * Accepts POSIX names (XBD §8.1) and lower case. Other text in braces, such as `${user.name}`, belongs to
 * another template language.
 */
function isVariableName(name: string): boolean {
  if (name === "") return false;
  for (let index = 0; index < name.length; index++) {
    const code = name.charCodeAt(index);
    const letter = code >= 65 && code <= 90 || code >= 97 && code <= 122 || code === 95;
    if (!letter && !(index > 0 && code >= 48 && code <= 57)) return false;
  }
  return true;
}

/** A reference in a plan. */
export interface PlanEnvReference extends EnvReference {
  /**
   * False where references are not expanded, such as in `source`. A reference there is a mistake or an
   * attack.
   */
  expanded: boolean;
  /** The path as steps, to locate the reference in the text. */
  at: Path;
}

const SECTIONS: ReadonlySet<unknown> = new Set(["providers", "tools", "hooks"]);
const SINGLE: ReadonlySet<unknown> = new Set(["orchestrator", "context"]);
const TEXTS: ReadonlySet<unknown> = new Set(["system", "instruction", "description"]);

/**
 * Returns the references of a plan as written. Skips text that only models and people read (`system`,
 * `instruction`, `description`, `session.metadata`), which is never expanded.
 */
export function findPlanEnv(plan: unknown): PlanEnvReference[] {
  const found: PlanEnvReference[] = [];
  visitEnv(
    plan,
    (name, path) => {
      found.push({ name, path: formatPath(path), expanded: isConfig(withoutAgent(path)), at: [...path] });
    },
    (path) => isText(withoutAgent(path)),
  );
  return found;
}

function withoutAgent(path: Path): Path {
  return path[0] === "agents" ? path.slice(2) : path;
}

function isText(path: Path): boolean {
  return path.length === 1 && TEXTS.has(path[0]) ||
    path.length === 2 && path[0] === "session" && path[1] === "metadata";
}

function isConfig(path: Path): boolean {
  if (SINGLE.has(path[0])) return path[1] === "config";
  if (path[0] === "session") return SINGLE.has(path[1]) && path[2] === "config";
  return SECTIONS.has(path[0]) && path[2] === "config";
}
