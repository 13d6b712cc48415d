/** Places in a document: a list of keys and indexes inside, `tools[0].permissions.net` for people. */

/** A place in a document, from its root. */
export type Path = readonly (string | number)[];

/** Returns a place as people read it: `tools[0].config["a.b"]`; empty for the root. */
export function formatPath(path: Path): string {
  let text = "";
  for (const step of path) {
    if (typeof step === "number") text += `[${step}]`;
    else if (isPlainKey(step)) text += text === "" ? step : `.${step}`;
    else text += `[${JSON.stringify(shorten(step, 60))}]`;
  }
  return text;
}

/**
 * Returns a value as an error message shows it, at most about 80 characters: text and numbers in JSON form, `a list`,
 * `an object`. Control characters are escaped.
 */
export function describe(value: unknown): string {
  if (value === undefined) return "nothing";
  if (Array.isArray(value)) return value.length === 0 ? "an empty list" : "a list";
  if (typeof value === "object" && value !== null) return "an object";
  if (typeof value === "string") return JSON.stringify(shorten(value, 80));
  return String(value);
}

/** Returns the kind of a value and nothing of what it holds: for places where a secret may stand. */
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
