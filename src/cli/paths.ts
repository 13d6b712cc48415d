/** Paths of the command line as URLs, the files they name, and the folders of settings. */
import { didYouMean } from "../sdk/did_you_mean.ts";
import { UsageError } from "./arguments.ts";
import type { SourcesFile } from "../app/source_overrides.ts";

/** Returns whether a path is absolute: it starts with `/`, or on Windows with a drive or a share. */
export function isAbsolute(path: string): boolean {
  return path.startsWith("/") || Deno.build.os === "windows" && /^([A-Za-z]:)?[\\/]/.test(path);
}

/** Returns the `file:` URL of an absolute path; a trailing slash is kept. `node:url` is slow to load. */
export function fileUrl(path: string): URL {
  const slashes = Deno.build.os === "windows" ? path.replaceAll("\\", "/") : path;
  const encoded = slashes.split("/").map(encodeURIComponent).join("/").replace(/^([A-Za-z])%3A/, "/$1:");
  return new URL(encoded.startsWith("//") ? `file:${encoded}` : `file://${encoded}`);
}

/** Returns the URL of a path relative to a base; `~/` is the home folder, as in `--plan=~/plan.yaml`. */
export function locate(path: string, base: URL): URL {
  const home = path.startsWith("~/") ? Deno.env.get("HOME") : undefined;
  if (home !== undefined) return fileUrl(`${home}${path.slice(1)}`);
  if (isAbsolute(path)) return fileUrl(path);
  return new URL(encodeURIComponent(path).replaceAll("%2F", "/").replaceAll("%5C", "\\"), base);
}

/** Returns the path of a `file:` URL. */
export function filePath(url: URL): string {
  const path = decodeURIComponent(url.pathname);
  return Deno.build.os === "windows" ? path.replace(/^\/(?=[A-Za-z]:)/, "") : path;
}

/** Resolves to the text of a file, or undefined if it does not exist. @throws {UsageError} when it cannot be read. */
export async function readOptional(url: URL, name: string): Promise<string | undefined> {
  try {
    const bytes = await Deno.readFile(url);
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw new UsageError(`Cannot read ${JSON.stringify(name)}: ${reasonOf(error)}`, { cause: error });
  }
}

/** Resolves to the text of a file. @throws {UsageError} when it does not exist or cannot be read. */
export async function readNamed(url: URL, name: string): Promise<string> {
  const text = await readOptional(url, name);
  if (text !== undefined) return text;
  const meant = await similarName(url);
  throw new UsageError(
    `Cannot read ${JSON.stringify(name)}: there is no such file${
      meant === undefined ? "" : `; did you mean ${JSON.stringify(name.replace(/[^/\\]*$/, meant))}?`
    }`,
  );
}

/** Resolves to a similar file name in the same folder. */
async function similarName(url: URL): Promise<string | undefined> {
  const names: string[] = [];
  try {
    for await (const { name, isDirectory } of Deno.readDir(new URL(".", url))) {
      if (!isDirectory) names.push(name);
    }
  } catch {
    return undefined; // the folder does not exist or cannot be read: no suggestion
  }
  return didYouMean(decodeURIComponent(url.pathname.split("/").at(-1) ?? ""), names);
}

function reasonOf(error: unknown): string {
  if (error instanceof Deno.errors.PermissionDenied) return "this user may not read it";
  if (error instanceof Deno.errors.NotCapable) {
    return "this process may not read it; start it with --allow-read";
  }
  if (error instanceof Deno.errors.IsADirectory) return "it is a folder";
  if (error instanceof TypeError) return "it is not UTF-8 text";
  return error instanceof Error ? error.message : String(error);
}

/** Working directory and variables of a command. */
export interface Environment {
  /** URL of the working directory, with a slash at the end. */
  readonly cwd: URL;
  env(name: string): string | undefined;
}

/** Returns `$PREAMP_HOME`, else `~/.preamp`, as a URL that ends in a slash; null if there is no home folder. */
export function homeOf({ env, cwd }: Environment): URL | null {
  const named = env("PREAMP_HOME");
  if (named) return locate(`${named.replace(/\/+$/, "")}/`, cwd);
  const user = env("HOME") || env("USERPROFILE");
  return user ? new URL(".preamp/", fileUrl(`${user}/`)) : null;
}

/** The files with source overrides of a command. */
export interface SourceFiles {
  /** `.preamp/sources.yaml` in the working directory. */
  project: SourcesFile;
  /** `$PREAMP_HOME/sources.yaml`; undefined if there is no home folder. */
  user: SourcesFile | undefined;
}

/** Returns the files with source overrides. */
export function sourceFilesOf(io: Environment): SourceFiles {
  const home = homeOf(io);
  return {
    project: { url: new URL(".preamp/sources.yaml", io.cwd), base_url: io.cwd },
    user: home ? { url: new URL("sources.yaml", home), base_url: home } : undefined,
  };
}
