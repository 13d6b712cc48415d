/** Creates the file of a SQLite store. */
import { dirname } from "node:path";

/**
 * Creates the file and its folder if they do not exist. Only this user can read them; SQLite gives the files beside it the
 * same mode.
 */
export async function createPrivateFile(path: string): Promise<void> {
  await Deno.mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const file = await Deno.open(path, { create: true, write: true, mode: 0o600 });
  file.close();
}
