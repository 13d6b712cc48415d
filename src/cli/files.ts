/** Files that are named on the command line. */
import { didYouMean } from "../text/did_you_mean.ts";
import { fileUrl, isAbsolute } from "./file_url.ts";
import { UsageError } from "./usage_error.ts";

/** Returns the URL of a path, relative to a base; `~/` is the home folder where a shell did not see it. */
export function locate(path: string, base: URL): URL {
  const home = path.startsWith("~/") ? Deno.env.get("HOME") : undefined;
  if (home !== undefined) return fileUrl(`${home}${path.slice(1)}`);
  if (isAbsolute(path)) return fileUrl(path);
  return new URL(encodeURIComponent(path).replaceAll("%2F", "/").replaceAll("%5C", "\\"), base);
}

/** Resolves to the text of a file, or undefined when there is none. @throws {UsageError} when it cannot be read. */
export async function readOptional(url: URL, name: string): Promise<string | undefined> {
  try {
    const bytes = await Deno.readFile(url);
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw new UsageError(`Cannot read ${JSON.stringify(name)}: ${reasonOf(error)}`, { cause: error });
  }
}

/** Resolves to the text of a file. @throws {UsageError} when it is not there, or cannot be read. */
export async function readNamed(url: URL, name: string): Promise<string> {
  const text = await readOptional(url, name);
  if (text !== undefined) return text;
  const meant = await similarName(url);
  throw new UsageError(
    `Cannot read ${JSON.stringify(name)}: there is no such file${
      meant === undefined ? "" : `: did you mean ${JSON.stringify(name.replace(/[^/\\]*$/, meant))}?`
    }`,
  );
}

/** Resolves to the name of a file in the same folder that was probably meant. */
async function similarName(url: URL): Promise<string | undefined> {
  const names: string[] = [];
  try {
    for await (const { name, isDirectory } of Deno.readDir(new URL(".", url))) {
      if (!isDirectory) names.push(name);
    }
  } catch {
    return undefined; // there is no such folder, or it may not be read: there is nothing to suggest
  }
  return didYouMean(decodeURIComponent(url.pathname.split("/").at(-1) ?? ""), names);
}

function reasonOf(error: unknown): string {
  if (error instanceof Deno.errors.PermissionDenied) return "it may not be read by this user";
  if (error instanceof Deno.errors.NotCapable) {
    return "this process may not read it: start it with --allow-read";
  }
  if (error instanceof Deno.errors.IsADirectory) return "it is a folder";
  if (error instanceof TypeError) return "it is not UTF-8 text";
  return error instanceof Error ? error.message : String(error);
}
