/**
 * Paths of values in a document: a list of keys and indexes in code, `tools[0].permissions.net` in
 * messages.
 */

/** Path of a value from the document's root. */
export type Path = readonly (string | number)[];

/** Returns a path for display: `tools[0].config["a.b"]`; empty for the root. */
export function formatPath(path: Path): string {
  let text = "";
  for (const step of path) {
    if (typeof step === "number") text += `[${step}]`;
    else if (isPlainKey(step)) text += text === "" ? step : `.${step}`;
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

/**
 * Parses the output of {@link formatPath}; undefined for any other text. Keys that it truncated remain
 * truncated.
 */
export function parsePath(text: string): Path | undefined {
  const path: (string | number)[] = [];
  let at = 0;
  while (at < text.length) {
    if (text[at] === "[") {
      const end = endOfBracket(text, at + 1);
      const step = end < 0 ? undefined : parseStep(text.slice(at + 1, end));
      if (step === undefined) return undefined;
      path.push(step);
      at = end + 1;
    } else {
      if (at > 0 && text[at] !== ".") return undefined;
      const start = at > 0 ? at + 1 : 0;
      at = start;
      while (at < text.length && text[at] !== "." && text[at] !== "[") at++;
      if (at === start) return undefined;
      path.push(text.slice(start, at));
    }
  }
  return path;
}

/** Returns the index of the `]` that ends a step, skipping text in quotes; −1 if it is missing. */
function endOfBracket(text: string, start: number): number {
  let quoted = false;
  for (let at = start; at < text.length; at++) {
    if (quoted && text[at] === "\\") at++;
    else if (text[at] === '"') quoted = !quoted;
    else if (text[at] === "]" && !quoted) return at;
  }
  return -1;
}

function parseStep(text: string): string | number | undefined {
  try {
    const step: unknown = JSON.parse(text);
    return typeof step === "string" || Number.isSafeInteger(step) ? step as string | number : undefined;
  } catch {
    return undefined; // not an output of formatPath
  }
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

function isPlainKey(key: string): boolean {
  if (key === "" || key.length > 60) return false;
  for (let index = 0; index < key.length; index++) {
    const code = key.charCodeAt(index);
    const plain = code >= 97 && code <= 122 || code >= 65 && code <= 90 || code >= 48 && code <= 57 ||
      code === 95 || code === 45 || code === 43 || code === 36;
    if (!plain) return false;
  }
  return true;
}
