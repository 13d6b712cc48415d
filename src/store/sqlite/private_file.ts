/** Creates the file of a SQLite store. */

/** The name at the end of a path. `node:path` would take longer to load than the rest of this file needs. */
const NAME = Deno.build.os === "windows" ? /[^\\/]*$/ : /[^/]*$/;

/**
 * Creates the file and its folder if they do not exist. Only this user can read them; SQLite gives the files beside it the
 * same mode.
 */
export async function createPrivateFile(path: string): Promise<void> {
  const folder = path.replace(NAME, "");
  if (folder !== "") await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
  const file = await Deno.open(path, { create: true, write: true, mode: 0o600 });
  file.close();
}
