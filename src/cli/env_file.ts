/** Reads `.env` of the working directory, for `preamp run` and `preamp chat`. */
import { parseEnv } from "node:util";
import { errorMessage } from "../sdk/errors.ts";
import { UsageError } from "./arguments.ts";
import { readOptional } from "./paths.ts";
import type { Io } from "./terminal/io.ts";

const FILE = ".env";

/** Variables that change how programs are started: a file of a folder may not set them. */
const REFUSED = /^(LD_|DYLD_|DENO_|NODE_|GIT_)|^(PATH|HOME|SHELL|BASH_ENV|ENV|IFS)$/i;

/**
 * Sets the variables of `.env` that are not set yet; Node's `parseEnv` reads the file. Resolves to warnings
 * about variables that it may not set.
 *
 * @throws {UsageError} for a file that cannot be read.
 */
export async function loadEnvFile(io: Io): Promise<string[]> {
  const url = new URL(FILE, io.cwd);
  const is_file = await Deno.stat(url).then(({ isFile }) => isFile, () => false); // it may be a folder of Python
  const text = is_file ? await readOptional(url, FILE) : undefined;
  if (text === undefined) return [];
  const warnings: string[] = [];
  for (const [name, value = ""] of Object.entries(parseEnv(text))) {
    if (io.env(name) !== undefined) continue;
    if (REFUSED.test(name)) warnings.push(`The variable ${name} of ${FILE} is ignored: set it in the shell`);
    else setVariable(io, name, value);
  }
  return warnings;
}

function setVariable(io: Io, name: string, value: string): void {
  try {
    io.setEnv(name, value);
  } catch (error) {
    throw new UsageError(`Cannot set ${JSON.stringify(name)} of ${FILE}: ${errorMessage(error)}`, {
      cause: error,
    });
  }
}
