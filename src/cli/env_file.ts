/** Reads `.env` of the working directory, for `preamp run` and `preamp chat`. */
import { UsageError } from "./arguments.ts";
import { filePath } from "./paths.ts";
import type { Io } from "./terminal/io.ts";

const FILE = ".env";

/** Variables that change how programs are started: a file of a folder may not set them. */
const REFUSED = /^(LD_|DYLD_|DENO_|NODE_|GIT_)|^(PATH|HOME|SHELL|BASH_ENV|ENV|IFS)$/i;

/** Names of addresses, and of keys that are sent to them. */
const ADDRESS = /_(BASE_URL|ENDPOINT|HOST)$/;
const KEY = /_(API_KEY|AUTH_TOKEN)$/;

/**
 * Returns whether a variable is the address of a vendor whose key is set already: a file of a folder, which
 * others may have written, does not decide where the key of a person is sent.
 */
function leadsKeyAway(name: string, set: readonly string[]): boolean {
  if (!ADDRESS.test(name)) return false;
  const words = new Set(name.replace(ADDRESS, "").split("_"));
  return set.some((key) => KEY.test(key) && key.replace(KEY, "").split("_").some((word) => words.has(word)));
}

/**
 * Sets the variables of `.env` that are not set yet. Resolves to warnings about variables that it may not
 * set. Node's `loadEnvFile` reads the file, because older Denos lack `parseEnv`. In Deno it replaces
 * variables that are set, so they are restored.
 *
 * @throws {UsageError} for a file that is not a list of variables.
 */
export async function loadEnvFile({ cwd }: Pick<Io, "cwd">): Promise<string[]> {
  const url = new URL(FILE, cwd);
  const is_file = await Deno.stat(url).then(({ isFile }) => isFile, () => false); // it may be a folder of Python
  if (!is_file) return [];
  const { default: process } = await import("node:process");
  const before = Deno.env.toObject();
  try {
    process.loadEnvFile(filePath(url));
  } catch (error) {
    // the error may have a secret
    throw new UsageError(`Cannot read ${FILE}: each line must be NAME=value`, { cause: error });
  }
  const warnings: string[] = [];
  for (const [name, value] of Object.entries(Deno.env.toObject()).sort()) {
    const earlier = before[name];
    if (earlier !== undefined) {
      if (earlier !== value) Deno.env.set(name, earlier);
    } else if (REFUSED.test(name) || leadsKeyAway(name, Object.keys(before))) {
      Deno.env.delete(name);
      warnings.push(`The variable ${name} of ${FILE} is ignored: set it in the shell`);
    }
  }
  return warnings;
}
