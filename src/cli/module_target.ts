/** The module that a command line names, as a path or a URL: the author's own, loaded with the operator's rights. */
import { createLoader, type Loader } from "../loader/loader.ts";
import { shown } from "../loader/shown.ts";
import type { LoadContext, LoadSpec } from "../loader/types.ts";
import { parseSource } from "../plan/source.ts";
import type { Policy } from "../policy/policy.ts";
import { isObject } from "../sdk/json.ts";
import type { Arguments } from "./arguments.ts";
import { TERMINAL } from "./caller.ts";
import { locate, readOptional } from "./files.ts";
import type { Io } from "./io.ts";
import { UsageError } from "./usage_error.ts";

/** A module that was named. */
export interface ModuleTarget {
  /** As it was written. */
  readonly name: string;
  /** Its entry file. */
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
  const written = /^[a-z][a-z0-9+.-]+:/i.test(name) ? name : (await entryOf(name, io)).href; // a drive has one letter
  const parsed = parseSource(written);
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
  const loader = createLoader();
  try {
    return await use(loader);
  } finally {
    await loader.close();
  }
}

/** Returns a URL as messages show it, relative to the working directory. */
export function told(url: string, io: Io): string {
  return shown(url, io.cwd.href);
}

/** A folder means its `mod.ts`, or what its `deno.json` exports (behaviour.md §3.1). */
async function entryOf(name: string, io: Io): Promise<URL> {
  const url = locate(name, io.cwd);
  const info = await Deno.stat(url).catch((error) => {
    if (error instanceof Deno.errors.NotFound) return null;
    throw new UsageError(`Cannot read ${JSON.stringify(name)}: ${error.message}`, { cause: error });
  });
  if (!info) throw new UsageError(`Cannot read ${JSON.stringify(name)}: there is no such file or folder`);
  if (!info.isDirectory) return url;
  const folder = url.href.endsWith("/") ? url : new URL(`${url.href}/`);
  const entry = new URL("mod.ts", folder);
  if (await Deno.stat(entry).then(() => true, () => false)) return entry;
  const exported = await exportOf(folder);
  if (exported !== undefined) return new URL(exported, folder);
  throw new UsageError(
    `Cannot read ${JSON.stringify(name)}: it has no mod.ts, and no deno.json with "exports"`,
  );
}

async function exportOf(folder: URL): Promise<string | undefined> {
  for (const file of ["deno.json", "jsr.json"]) {
    const text = await readOptional(new URL(file, folder), file);
    if (text === undefined) continue;
    try {
      const { exports } = JSON.parse(text) as { exports?: unknown };
      const main = isObject(exports) ? exports["."] : exports;
      if (typeof main === "string") return main;
    } catch (error) {
      throw new UsageError(`Cannot read ${JSON.stringify(file)}: it is not JSON`, { cause: error });
    }
  }
  return undefined;
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
