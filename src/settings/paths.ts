/** Paths that a person writes as URLs, the files they name, and the folder of this program. */
import { didYouMean } from "../sdk/findings.ts";
import { readVariable } from "../process/environment.ts";
import { errorMessage } from "../sdk/errors.ts";
import { UsageError } from "./errors.ts";

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
  const home = path.startsWith("~/") ? readVariable("HOME") : undefined;
  if (home !== undefined) return fileUrl(`${home}${path.slice(1)}`);
  if (isAbsolute(path)) return fileUrl(path);
  return new URL(encodeURIComponent(path).replaceAll("%2F", "/").replaceAll("%5C", "\\"), base);
}

export function filePath(url: URL): string {
  const path = decodeURIComponent(url.pathname);
  return Deno.build.os === "windows" ? path.replace(/^\/(?=[A-Za-z]:)/, "") : path;
}

/**
 * Resolves to the text of a file, or undefined if it does not exist. @throws {UsageError} when it cannot be
 * read.
 */
export async function readOptional(url: URL, name: string): Promise<string | undefined> {
  try {
    const bytes = await Deno.readFile(url);
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw new UsageError(`Cannot read ${JSON.stringify(name)}: ${reasonOf(error, "read")}`, { cause: error });
  }
}

/** Resolves to the text of a file. @throws {UsageError} when it does not exist or cannot be read. */
async function readNamed(url: URL, name: string): Promise<string> {
  const text = await readOptional(url, name);
  if (text !== undefined) return text;
  const meant = await similarName(url);
  const { addressHint } = await import("../plan/source/source.ts"); // loaded for this error only
  const advice = meant !== undefined
    ? `; did you mean ${JSON.stringify(name.replace(/[^/\\]*$/, meant))}?`
    : addressHint(name) === undefined
    ? ""
    : "; download a file of another host first, such as with curl -fLO";
  throw new UsageError(`Cannot read ${JSON.stringify(name)}: there is no such file${advice}`);
}

/** Name of stdin in messages. */
export const STDIN_NAME = "<stdin>";

/** A text and its place. */
export interface InputText {
  /** The file as it was named; `<stdin>`. */
  name: string;
  url: URL;
  text: string;
}

/**
 * Resolves to the text of a file; `-` is stdin. @throws {UsageError} when it does not exist or cannot be
 * read, or if stdin has more than `max_bytes`.
 */
export async function readInput(
  name: string,
  io: Pick<Environment, "cwd"> & { readonly in: { text(max_bytes?: number): Promise<string> } },
  max_bytes?: number,
): Promise<InputText> {
  if (name !== "-") {
    if (/^https?:\/\//i.test(name)) {
      const fact = "it is a URL, and files are read from this machine; download it and look at it first";
      const url = JSON.stringify(name);
      throw new UsageError(`Cannot read ${url}: ${fact}: curl -fLO ${url}`);
    }
    const url = name.startsWith("file://") && URL.canParse(name) ? new URL(name) : locate(name, io.cwd);
    return { name, url, text: await readNamed(url, name) };
  }
  try {
    return { name: STDIN_NAME, url: new URL("stdin", io.cwd), text: await io.in.text(max_bytes) };
  } catch (error) {
    throw new UsageError(`Cannot read stdin: ${reasonOf(error, "read")}`, { cause: error });
  }
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

/** Returns why a file cannot be read or written. */
function reasonOf(error: unknown, verb: "read" | "write"): string {
  if (error instanceof Deno.errors.PermissionDenied) return `this user may not ${verb} it`;
  if (error instanceof Deno.errors.NotCapable) {
    return `this process may not ${verb} it; start it with --allow-${verb}`;
  }
  if (error instanceof Deno.errors.IsADirectory) return "it is a folder";
  if (error instanceof Deno.errors.NotFound) return "its folder does not exist";
  if (error instanceof TypeError) return "it is not UTF-8 text; convert it, such as with iconv";
  return errorMessage(error);
}

/** Replaces a file atomically, and creates its folder. @throws {UsageError} when it cannot be written. */
export async function replaceFile(url: URL, text: string, name: string): Promise<void> {
  const temporary = new URL(`${url.href}.${crypto.randomUUID()}`);
  try {
    await Deno.mkdir(new URL(".", url), { recursive: true });
    await Deno.writeTextFile(temporary, text, { createNew: true });
    await Deno.rename(temporary, url);
  } catch (error) {
    await Deno.remove(temporary).catch(() => {}); // it may not exist
    throw writeFailure(name, error);
  }
}

/** Returns the error for a file or folder that cannot be written. */
export function writeFailure(name: string, error: unknown): UsageError {
  const reason = reasonOf(error, "write");
  return new UsageError(`Cannot write ${JSON.stringify(name)}: ${reason}`, { cause: error });
}

/** Working directory and variables of a command. */
export interface Environment {
  /** URL of the working directory, with a slash at the end. */
  readonly cwd: URL;
  env(name: string): string | undefined;
}

/** Returns whether a variable is 1 or true. @throws {UsageError} unless it is one of these, 0 or false. */
export function flagVariable({ env }: Pick<Environment, "env">, name: string): boolean {
  const value = env(name) ?? "";
  if (value === "" || value === "0" || value === "false") return false;
  if (value === "1" || value === "true") return true;
  throw new UsageError(`Cannot use ${name}: must be 1 or 0, but is ${JSON.stringify(value)}`);
}

/**
 * Returns `$PREAMP_HOME`, else `~/.preamp`, as a URL that ends in a slash; null if there is no home folder.
 * It is the same in every folder, so that no folder brings its own.
 *
 * @throws {UsageError} for a relative `$PREAMP_HOME`.
 */
export function homeOf({ env, cwd }: Environment): URL | null {
  const named = env("PREAMP_HOME");
  if (named && !isAbsolute(named) && !named.startsWith("~/")) {
    throw new UsageError(
      `Cannot use PREAMP_HOME: must be an absolute path, the same in every folder, but is ${
        JSON.stringify(named)
      }`,
    );
  }
  if (named) return locate(`${named.replace(/\/+$/, "")}/`, cwd);
  const user = env("HOME") || env("USERPROFILE");
  return user ? new URL(".preamp/", fileUrl(`${user}/`)) : null;
}
