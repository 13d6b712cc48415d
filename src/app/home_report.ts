/** Finds out whether this process may read `$PREAMP_HOME`, whose files are optional. */

/** Returns whether an error says that this process may not read a file, as which user or by which flags. */
export function mayNotRead(error: unknown): boolean {
  return error instanceof Deno.errors.NotCapable || error instanceof Deno.errors.PermissionDenied;
}

/** Resolves to what is missing without `$PREAMP_HOME`; undefined if it can be read, or does not exist. */
export async function missingHome(home: URL | null): Promise<string | undefined> {
  if (home === null) return undefined;
  try {
    for await (const _ of Deno.readDir(home)) break;
    return undefined;
  } catch (error) {
    return mayNotRead(error)
      ? "this process may not read $PREAMP_HOME: its plans, source overrides and cache count as absent"
      : undefined;
  }
}
