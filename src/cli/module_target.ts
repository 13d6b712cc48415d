/** The module that a command line names by path or URL. It is loaded with the operator's rights. */
import { LazyLoader } from "../app/lazy_loader_and_sandbox.ts";
import type { Loader } from "../loader/loader.ts";
import { displayUrl } from "../loader/module_errors.ts";
import type { LoadContext, LoadSpec, ModuleGraph } from "../loader/types.ts";
import { addressHint, parseSource } from "../plan/source/source.ts";
import type { Policy } from "../policy/policy.ts";
import { decodePercent, escapeUnprintable } from "../text/escape.ts";
import { type Arguments, UsageError } from "./arguments.ts";
import { TERMINAL } from "./terminal_caller.ts";
import { locate } from "../settings/paths.ts";
import type { Io } from "./terminal/io.ts";

/** A module named on the command line. */
export interface ModuleTarget {
  /** The argument as written. */
  readonly name: string;
  /** URL of the entry file; for a folder, of its `mod.ts`. */
  readonly url: string;
  /** Id derived from the path, such as `tool-clock` for `tool-clock/mod.ts`. */
  readonly id: string;
  readonly spec: LoadSpec;
  readonly context: LoadContext;
}

/**
 * Resolves to the module that a command line names.
 * @throws {UsageError} for no name, more than one, a missing file, or an unsupported form of source.
 */
export async function readTarget(
  args: Arguments,
  io: Io,
  policy: Policy,
  verb: string,
): Promise<ModuleTarget> {
  const [name, more] = args.rest;
  if (name === undefined) throw new UsageError(`Cannot ${verb} a module: name it by its path or its URL`);
  const refuse = (name: string, why: string) =>
    new UsageError(`Cannot ${verb} ${JSON.stringify(name)}: ${why}`);
  if (more !== undefined) throw refuse(more, "one module at a time");
  const written = /^[a-z][a-z0-9+.-]+:/i.test(name) ? name : await urlOf(name, io); // one letter is a Windows drive
  const parsed = parseSource(written, { esm_host: policy.modules.esm_host });
  if ("problem" in parsed) throw refuse(name, `${parsed.problem}: ${parsed.hint}`);
  const { source } = parsed;
  if (source.kind !== "url") throw refuse(name, "it is not a URL");
  const { origin, namespace } = TERMINAL;
  const context = { origin, namespace, policy, frozen: false, base_url: io.cwd.href };
  return { name, url: source.url, id: idOf(source.url), spec: { source }, context };
}

/** Calls `use` with a loader, and closes the loader and its bundler afterwards. */
export async function withLoader<T>(use: (loader: Loader) => Promise<T>): Promise<T> {
  const loading = new LazyLoader({ cache_dir: null });
  try {
    return await use(await loading.loader());
  } finally {
    await loading.close();
  }
}

/** Returns a URL for messages, relative to the working directory. */
export function displayPath(url: string, io: Io): string {
  return displayUrl(url, io.cwd.href);
}

/** Prints a warning for each import of a graph that throws when it is executed. */
export function warnOfRefusedImports(
  { imports_refused }: Pick<ModuleGraph, "imports_refused">,
  io: Io,
): void {
  for (const { specifier, url, line, column } of imports_refused) {
    const label = specifier === null ? "a computed import" : `import of ${JSON.stringify(specifier)}`;
    const place = escapeUnprintable(`${displayPath(url, io)}:${line}:${column}: ${label}`);
    io.err.write(`warning: ${place} throws when it is executed\n`);
  }
}

/** Returns the URL of a file, or of a folder with a slash at the end. */
async function urlOf(name: string, io: Io): Promise<string> {
  const url = locate(name, io.cwd);
  const info = await Deno.stat(url).catch((error) => {
    const address = addressHint(name);
    const why = error instanceof Deno.errors.NotFound
      ? `there is no such file or folder${address === undefined ? "" : `; ${address}`}`
      : error.message;
    throw new UsageError(`Cannot read ${JSON.stringify(name)}: ${why}`, { cause: error });
  });
  if (!info.isDirectory) return url.href;
  const folder = url.href.endsWith("/") ? url.href : `${url.href}/`;
  const isThere = (file: string) => Deno.stat(new URL(file, folder)).then(() => true, () => false);
  if (await isThere("mod.ts") || await isThere("deno.json")) return folder;
  throw new UsageError(
    `Cannot read ${JSON.stringify(name)}: it has no mod.ts, and no deno.json with "exports"`,
  );
}

/** Names of entry files without their extension. */
export const ENTRY_NAMES: ReadonlySet<string> = new Set(["mod", "index", "main", "bundle"]);

/** Returns the id derived from a URL: the file's name, or the folder's name for an entry file. */
function idOf(url: string): string {
  if (!URL.canParse(url) || url.startsWith("data:")) return "module";
  const parts = decodePercent(new URL(url).pathname).split("/").filter((part) => part !== "");
  const file = (parts.at(-1) ?? "").replace(/\.[a-z]+$/i, "");
  const name = ENTRY_NAMES.has(file) ? parts.at(-2) ?? file : file;
  return name.replaceAll("_", "-").replace(/^amplifier-module-/, "") || "module";
}
