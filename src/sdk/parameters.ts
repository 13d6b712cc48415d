/**
 * Counts the declared parameters of a function from its source, because `length` stops at the first default.
 */

import { cut, find, includes, push, sourceOf, trim } from "./primordials.ts";

/** Property in which a proxy function states the number of parameters of the original. */
export const PARAMETERS: unique symbol = Symbol.for("preamp.parameters");

/**
 * Returns the number of declared parameters, including those with defaults. A rest parameter or the use of
 * `arguments` counts as any number.
 */
// deno-lint-ignore ban-types -- accepts every function
export function declaredParameters(fn: Function): number {
  const stated = (fn as unknown as { [PARAMETERS]?: unknown })[PARAMETERS];
  if (typeof stated === "number") return stated;
  const source = sourceOf(fn);
  if (includes(source, "[native code]")) return Number.MAX_SAFE_INTEGER;
  const list = parameterList(source);
  if (list === null) return Math.max(fn.length, 1);
  for (let at = 0; at < list.length; at++) {
    if (cut(list[at]!, 0, 3) === "...") return Number.MAX_SAFE_INTEGER;
  }
  if (/\barguments\b/.test(source)) {
    return Number.MAX_SAFE_INTEGER;
  }
  return Math.max(fn.length, list.length);
}

/**
 * Returns the parameters in the source of a function, split at top-level commas; null for an arrow function
 * without parentheses.
 */
function parameterList(source: string): string[] | null {
  const arrow = find(source, "=>", 0);
  const open = find(source, "(", 0);
  if (open < 0 || (arrow >= 0 && arrow < open)) return null;
  const parts: string[] = [];
  let depth = 0;
  let quote = "";
  let part = "";
  for (let index = open + 1; index < source.length; index++) {
    const char = source[index]!;
    if (quote) {
      if (char === "\\") index++;
      else if (char === quote) quote = "";
      continue;
    }
    if (char === "/" && (source[index + 1] === "/" || source[index + 1] === "*")) {
      index = endOfComment(source, index);
      continue;
    }
    if (char === '"' || char === "'" || char === "`") quote = char;
    else if (includes("([{", char)) depth++;
    else if (char === ")" && depth === 0) break;
    else if (includes(")]}", char)) depth--;
    else if (char === "," && depth === 0) {
      if (trim(part)) push(parts, trim(part));
      part = "";
      continue;
    }
    part += char;
  }
  if (trim(part)) push(parts, trim(part));
  return parts;
}

/** Returns the index of the last character of the comment that begins at `start`. */
function endOfComment(source: string, start: number): number {
  const closing = source[start + 1] === "/" ? "\n" : "*/";
  const end = find(source, closing, start + 2);
  return end < 0 ? source.length : end + closing.length - 1;
}
