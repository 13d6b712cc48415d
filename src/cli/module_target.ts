/** The module that a command line names, as a path or a URL: the author's own, loaded with the operator's rights. */
import { LazyLoader } from "../app/lazy_loader.ts";
import type { Loader } from "../loader/loader.ts";
import { displayUrl } from "../loader/display_url.ts";
import type { LoadContext, LoadSpec } from "../loader/types.ts";
import { parseSource } from "../plan/source/source.ts";
import type { Policy } from "../policy/policy.ts";
import type { Arguments } from "./arguments.ts";
import { TERMINAL } from "./caller.ts";
import { locate } from "./files.ts";
import type { Io } from "./terminal/io.ts";
import { UsageError } from "./usage_error.ts";

/** A module that was named. */
export interface ModuleTarget {
  /** As it was written. */
  readonly name: string;
  /** Its entry file; of a folder its `mod.ts`. */
  readonly url: string;
  /** Id by its place, such as `tool-clock` for `tool-clock/mod.ts`. */
  readonly id: string;
  readonly spec: LoadSpec;
  readonly context: LoadContext;
}

/**
 * Resolves to the module that a command line names.
 * @throws {UsageError} when it names none, more than one, a file that is not there, or no form of source we take.
 */
export async function readTarget(
  args: Arguments,
  io: Io,
  policy: Policy,
  verb: string,
): Promise<ModuleTarget> {
  const [name, more] = args.rest;
  if (name === undefined) {
    throw new UsageError(`Cannot ${verb} a module: none was named: write its path or its URL`);
  }
  if (more !== undefined) {
    throw new UsageError(`Cannot ${verb} ${JSON.stringify(more)}: one module at a time`);
  }
  const written = /^[a-z][a-z0-9+.-]+:/i.test(name) ? name : await urlOf(name, io); // a drive has one letter
  const parsed = parseSource(written, { esm_host: policy.modules.esm_host });
  if ("problem" in parsed || parsed.source.kind !== "url") {
    const why = "problem" in parsed ? `${parsed.problem}: ${parsed.hint}` : "it is no URL";
    throw new UsageError(`Cannot ${verb} ${JSON.stringify(name)}: ${why}`);
  }
  const { source } = parsed;
  const { origin, namespace } = TERMINAL;
  const context = { origin, namespace, policy, frozen: false, base_url: io.cwd.href };
  return { name, url: source.url, id: idOf(source.url), spec: { source }, context };
}

/** Gives a loader to `use` and ends it, with its bundler, whatever comes of it. */
export async function withLoader<T>(use: (loader: Loader) => Promise<T>): Promise<T> {
  const loading = new LazyLoader({ cache_dir: null });
  try {
    return await use(await loading.loader());
  } finally {
    await loading.close();
  }
}

/** Returns a URL as messages show it, relative to the working directory. */
export function displayPath(url: string, io: Io): string {
  return displayUrl(url, io.cwd.href);
}

/** Returns the URL of a file, or of a folder with a slash at the end. */
async function urlOf(name: string, io: Io): Promise<string> {
  const url = locate(name, io.cwd);
  const info = await Deno.stat(url).catch((error) => {
    if (error instanceof Deno.errors.NotFound) return null;
    throw new UsageError(`Cannot read ${JSON.stringify(name)}: ${error.message}`, { cause: error });
  });
  if (!info) throw new UsageError(`Cannot read ${JSON.stringify(name)}: there is no such file or folder`);
  if (!info.isDirectory) return url.href;
  const folder = url.href.endsWith("/") ? url.href : `${url.href}/`;
  const isThere = (file: string) => Deno.stat(new URL(file, folder)).then(() => true, () => false);
  if (await isThere("mod.ts") || await isThere("deno.json")) return folder;
  throw new UsageError(
    `Cannot read ${JSON.stringify(name)}: it has no mod.ts, and no deno.json with "exports"`,
  );
}

/** Names of files that are the entry of their folder, without what follows the dot. */
export const ENTRY_NAMES: ReadonlySet<string> = new Set(["mod", "index", "main", "bundle"]);

/** Returns the id that a URL suggests: the file's name, or the folder's when the file is its entry. */
function idOf(url: string): string {
  if (!URL.canParse(url) || url.startsWith("data:")) return "module";
  const parts = decodeURIComponent(new URL(url).pathname).split("/").filter((part) => part !== "");
  const file = (parts.at(-1) ?? "").replace(/\.[a-z]+$/i, "");
  const name = ENTRY_NAMES.has(file) ? parts.at(-2) ?? file : file;
  return name.replaceAll("_", "-").replace(/^amplifier-module-/, "") || "module";
}
