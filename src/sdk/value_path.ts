/**
 * Paths of values in a document: a list of keys and indexes in code, `tools[0].permissions.net` in
 * messages.
 */

/** Path of a value from the document's root. */
export type Path = readonly (string | number)[];

/** A key that needs no quotes. */
const PLAIN_KEY = /^[\w+$-]{1,60}$/;

/** Returns a path for display: `tools[0].config["a.b"]`; empty for the root. */
export function formatPath(path: Path): string {
  let text = "";
  for (const step of path) {
    if (typeof step === "number") text += `[${step}]`;
    else if (PLAIN_KEY.test(step)) text += text === "" ? step : `.${step}`;
    else text += `[${JSON.stringify(shorten(step, 60))}]`;
  }
  return text;
}

/** Returns the last step of a path, as the name of its value in a sentence. */
export function lastStep(path: Path): string {
  const last = path.at(-1);
  if (last === undefined) return "the document";
  return typeof last === "number" ? `entry ${last}` : formatPath([last]);
}

/** A key, an index, or a key in quotes. */
const STEP = /\.?([^.[]+)|\[(-?\d+|"(?:[^"\\]|\\.)*")\]/y;

/**
 * Parses the output of {@link formatPath}; undefined for any other text. Keys that it truncated remain
 * truncated.
 */
export function parsePath(text: string): Path | undefined {
  const path: (string | number)[] = [];
  for (let at = 0; at < text.length; at = STEP.lastIndex) {
    STEP.lastIndex = at;
    const [found, key, step] = STEP.exec(text) ?? [];
    if (found === undefined || key !== undefined && found.startsWith(".") !== at > 0) return undefined;
    try {
      path.push(key ?? JSON.parse(step!)); // one of both is there
    } catch {
      return undefined; // an escape that JSON does not have
    }
  }
  return path;
}

/**
 * Returns a value for an error message, at most about 80 characters: text and numbers as JSON, otherwise `a
 * list`, `an object`. Escapes control characters.
 */
export function describe(value: unknown): string {
  if (value === undefined) return "nothing";
  if (Array.isArray(value)) return value.length === 0 ? "an empty list" : "a list";
  if (typeof value === "object" && value !== null) return "an object";
  if (typeof value === "string") return JSON.stringify(shorten(value, 80));
  if (typeof value === "function") return "a function";
  return String(value);
}

/** Returns the kind of a value without its content, for places that may contain a secret. */
export function describeKind(value: unknown): string {
  if (typeof value === "string") return value === "" ? "empty text" : "text";
  if (typeof value === "number") return "a number";
  if (typeof value === "boolean") return "a boolean";
  return describe(value);
}

function shorten(text: string, max: number): string {
  return text.length <= max ? text : `${text.slice(0, max - 1)}…`;
}
