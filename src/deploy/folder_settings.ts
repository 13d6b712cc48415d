/**
 * The settings of a program whose folder has its settings file and its plans. They need no trust: the folder
 * is the program.
 */
import { variableNames } from "../process/environment.ts";
import { filePath } from "../settings/paths.ts";
import { readSettings, type Settings } from "../settings/settings.ts";

/** The settings file of the folder. */
const SETTINGS_FILE = "preamp.yaml";

/**
 * Reads `preamp.yaml` of a folder, if it is there and `PREAMP_CONFIG` names no other file, and the variables.
 * Relative paths start at the folder.
 *
 * @throws {UsageError} for an invalid variable.
 * @throws {DocumentFailure} for an invalid settings file.
 */
export async function folderSettings(
  folder: URL,
  env: (name: string) => string | undefined,
): Promise<Settings> {
  const own = new URL(SETTINGS_FILE, folder);
  const is_there = await Deno.stat(own).then(() => true, (error) => !(error instanceof Deno.errors.NotFound));
  const file = env("PREAMP_CONFIG") || !is_there ? undefined : filePath(own);
  return await readSettings({
    cwd: folder,
    env,
    variables: variableNames,
    flags: {
      has: (name) => name === "config" && file !== undefined,
      value: (name) => name === "config" ? file : undefined,
    },
    openFolder: ({ plans }) =>
      Promise.resolve({
        settings: null,
        variables: new Map(),
        plans: plans === null ? null : { url: new URL("plans/", folder) },
        sources: [],
        warnings: [],
        ignored: null,
      }),
  }, { serves: true, plans: "all" });
}
