/** Variables of this process. */

/** Returns a variable; undefined if it is not set, or if this process may not read it. */
export function readVariable(name: string): string | undefined {
  try {
    return Deno.env.get(name);
  } catch {
    return undefined;
  }
}

/**
 * Returns the names of the variables that are set; null if this process may read only some of them, or none.
 */
export function variableNames(): string[] | null {
  try {
    return Object.keys(Deno.env.toObject());
  } catch {
    return null;
  }
}
