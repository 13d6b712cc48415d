/**
 * Finds and expands `${VAR}` references: `${VAR}`, `${VAR:default}`, `${VAR:-default}`, and `$${` for a
 * literal `${`. `${X-Run-…}` is a header of the request that starts the run.
 * Values of variables are not scanned for further references.
 * In a plan, references are expanded in every `config`. `${PLAN_DIR}` and `${WORKSPACE}` are folders: they
 * are expanded when the plan is compiled, in `permissions` and in texts for the model too. Other references
 * in such a text are errors: the values of variables are secrets.
 */
import { formatPath, type Path } from "../sdk/value_path.ts";
import { isObject, type JsonObject } from "../sdk/json.ts";
import type { Permissions } from "../sdk/contracts.ts";
import type { ModuleSpec, MountPlan } from "../sdk/plan.ts";

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
  /** References to variables that are not set and have no default. */
  missing: EnvReference[];
  /** Values of the variables that were read; the redactor treats them as secrets. */
  secrets: string[];
}

/** `$${`, or text in braces. A `${` that is not closed is plain text. */
const BRACES = /\$\$\{|\$\{([^}]*)\}/g;

/**
 * A variable's name, then nothing, `:default` or `:-default` (as in a shell). Names are those of POSIX (XBD
 * §8.1), and lower case. Other text in braces, such as `${user.name}`, belongs to another template language
 * and is plain text.
 */
const REFERENCE = /^([A-Za-z_][A-Za-z0-9_]*|X-Run-[A-Za-z0-9-]+)(?::-?(.*))?$/s;

/**
 * Returns whether a reference is to a header of the request that starts the run, such as
 * `${X-Run-Github-Token}`. Other headers are not for plans: a proxy may have added them.
 */
export function isRequestHeader(name: string): boolean {
  return name.startsWith("X-Run-");
}

/** Returns a text with each reference replaced. */
function replaceEnv(text: string, replace: (name: string, fallback: string | undefined) => string): string {
  return replaceBraces(text, (found, inner) => {
    if (inner === undefined) return "${";
    const [, name, fallback] = REFERENCE.exec(inner) ?? [];
    return name === undefined ? found : replace(name, fallback);
  });
}

/** Returns a text with each {@link BRACES} replaced; `inner` is undefined for `$${`. */
function replaceBraces(text: string, replace: (found: string, inner: string | undefined) => string): string {
  if (!text.includes("${")) return text;
  const end = text.lastIndexOf("}") + 1; // perf: searching the end of each open brace takes quadratic time
  const open = text.slice(end).replaceAll("$${", (found) => replace(found, undefined));
  return text.slice(0, end).replaceAll(BRACES, replace) + open;
}

/** Returns every reference in a value, in document order. */
export function findEnv(value: unknown): EnvReference[] {
  const found: EnvReference[] = [];
  visitEnv(value, (name, path) => found.push({ name, path: formatPath(path) }));
  return found;
}

/** Calls `found` for every reference in a value, except in places that `skip` excludes. */
function visitEnv(
  value: unknown,
  found: (name: string, path: Path) => void,
  skip?: (path: Path) => boolean,
): void {
  mapTexts(value, (text, path) => {
    replaceEnv(text, (name) => {
      found(name, path);
      return "";
    });
    return undefined;
  }, skip);
}

/**
 * Returns a copy of a value with each text replaced, except in places that `skip` excludes. A field that
 * becomes undefined is left out; a list entry becomes empty text, so that the others keep their index.
 * `path` is valid during a call only.
 */
function mapTexts(
  value: unknown,
  replace: (text: string, path: Path) => string | undefined,
  skip: (path: Path) => boolean = () => false,
): unknown {
  const path: (string | number)[] = [];
  function map(item: unknown): unknown {
    if (typeof item === "string") return replace(item, path);
    if (Array.isArray(item)) {
      return item.map((entry, index) => {
        const mapped = descend(index, entry);
        return mapped === undefined ? "" : mapped;
      });
    }
    if (!isObject(item)) return item;
    const result: JsonObject = {};
    for (const key of Object.keys(item)) {
      const field = descend(key, item[key]);
      if (field !== undefined) result[key] = field;
    }
    return result;
  }
  function descend(step: string | number, item: unknown): unknown {
    path.push(step);
    const mapped = skip(path) ? undefined : map(item);
    path.pop();
    return mapped;
  }
  return map(value);
}

/**
 * Returns a copy of a config with its references replaced. An unset variable without a default is reported
 * in `missing`. A field that consists of such a variable is left out, so that `if (!config.api_key)` works;
 * elsewhere the variable becomes empty text. Keys are not expanded.
 *
 * @param place Place of the config in the plan, for `missing`.
 */
export function expandEnv(
  config: JsonObject,
  lookup: (name: string) => string | undefined,
  place: string = "",
): Expansion {
  const missing: EnvReference[] = [];
  const secrets = new Set<string>();
  const value = mapTexts(config, (text, path) => {
    let unset = false;
    const result = replaceEnv(text, (name, fallback) => {
      const value = lookup(name);
      if (value !== undefined) secrets.add(value);
      else if (fallback === undefined) {
        unset = true;
        missing.push({ name, path: within(place, path) });
      }
      return value ?? fallback ?? "";
    });
    return unset && /^\$\{[^}]*\}$/.test(text) ? undefined : result;
  }) as JsonObject; // an object remains one
  secrets.delete("");
  return { value, missing, secrets: [...secrets] };
}

/** Returns a path below a place, such as `tools[0].config.token`. */
function within(place: string, path: Path): string {
  const rest = formatPath(path);
  return place === "" || rest.startsWith("[") ? place + rest : `${place}.${rest}`;
}

/** A reference in a plan. */
export interface PlanEnvReference extends EnvReference {
  /**
   * False where references are not expanded, such as in `source`. A reference there is a mistake or an
   * attack.
   */
  expanded: boolean;
  /** The kind of the text that contains it, if models or people read that text. */
  text?: "instruction" | "description";
  /** The path as steps, to locate the reference in the text. */
  at: Path;
}

/** Folders that a plan can name: the one of its file, and the one that a person works in. */
export const FOLDER_VARIABLES = ["PLAN_DIR", "WORKSPACE"] as const;

/** Absolute paths of the folders, without a slash at the end. Absent: the plan has no such folder. */
export type PlanFolders = { readonly [Name in typeof FOLDER_VARIABLES[number]]?: string };

/** Returns whether a variable is one of the {@link FOLDER_VARIABLES}. */
export function isFolderVariable(name: string): name is keyof PlanFolders {
  return (FOLDER_VARIABLES as readonly string[]).includes(name);
}

/** Returns a plan with its folders in configs and permissions. They are no secrets. */
export function withFolders(plan: MountPlan, folders: PlanFolders): MountPlan {
  const { session, providers, tools, hooks, permissions } = plan;
  const specOf = (spec: ModuleSpec): ModuleSpec => ({
    ...spec,
    // a path may contain "${", and a config is expanded again
    config: mapTexts(spec.config, (text) => replaceFolders(text, folders, "$${")) as JsonObject,
    ...(spec.permissions && { permissions: foldersIn(spec.permissions, folders) }),
  });
  return {
    ...plan,
    session: {
      ...session,
      orchestrator: specOf(session.orchestrator),
      context: specOf(session.context),
    },
    providers: providers.map(specOf),
    tools: tools.map(specOf),
    hooks: hooks.map(specOf),
    ...(permissions && { permissions: foldersIn(permissions, folders) }),
  };
}

/** Returns a text for the model with its folders, and with `${` for each `$${`. */
export function textFor(text: string, folders: PlanFolders): string {
  return replaceEnv(replaceFolders(text, folders, "$${"), (name) => `\${${name}}`);
}

/** Returns permissions with the folders that they name. */
export function foldersIn(permissions: Permissions, folders: PlanFolders): Permissions {
  return mapTexts(permissions, (text) => replaceFolders(text, folders, "${")) as Permissions; // of the same form
}

function replaceFolders(text: string, folders: PlanFolders, brace: "${" | "$${"): string {
  return replaceBraces(text, (found, inner) => {
    const name = REFERENCE.exec(inner ?? "")?.[1];
    const folder = name !== undefined && isFolderVariable(name) ? folders[name] : undefined;
    return folder === undefined ? found : folder.replaceAll("${", () => brace);
  });
}

const SECTIONS: ReadonlySet<unknown> = new Set(["providers", "tools", "hooks"]);
const SINGLE: ReadonlySet<unknown> = new Set(["orchestrator", "context"]);
/** Returns the references of a plan as written. Skips `session.metadata`, which only applications read. */
export function findPlanEnv(plan: unknown): PlanEnvReference[] {
  const found: PlanEnvReference[] = [];
  visitEnv(
    plan,
    (name, path) => {
      const place = inPlan(path);
      const text = textAt(place);
      const expanded = isIn(place, "config") ||
        isFolderVariable(name) && (isIn(place, "permissions") || text === "instruction");
      found.push({ name, path: formatPath(path), expanded, ...(text ? { text } : {}), at: [...path] });
    },
    (path) => {
      const place = inPlan(path);
      return place.length === 2 && place[0] === "session" && place[1] === "metadata";
    },
  );
  return found;
}

/**
 * Returns the path in the partial plan of an agent, where `tools+` appends to `tools`; other paths are
 * unchanged.
 */
function inPlan(path: Path): Path {
  if (path[0] !== "agents") return path;
  const [section, ...rest] = path.slice(2);
  return section === undefined ? [] : [String(section).replace(/\+$/, ""), ...rest];
}

function textAt(path: Path): PlanEnvReference["text"] {
  const [section, key, more] = path;
  if (section === "description" && key === undefined) return "description";
  const is_inline = key === undefined || section === "system" && key === "instruction" && more === undefined;
  return (section === "system" || section === "instruction") && is_inline ? "instruction" : undefined;
}

/** Returns whether a path is in the `config` or the `permissions` of a module. */
function isIn(path: Path, key: "config" | "permissions"): boolean {
  if (path[0] === key) return key === "permissions"; // the grant of all tools
  if (SINGLE.has(path[0])) return path[1] === key;
  if (path[0] === "session") return SINGLE.has(path[1]) && path[2] === key;
  return SECTIONS.has(path[0]) && path[2] === key;
}
