/**
 * Files for authors: templates, and the SDK, its sources and the packages they import, as `.preamp/sdk` of a
 * folder. The compile task includes both in the executable, each as one file. A program that runs from its
 * sources reads the templates from `templates/`, and its authors import its own SDK.
 */
import manifest from "../../deno.json" with { type: "json" };
import { isObject } from "../sdk/json.ts";
import { UsageError } from "./arguments.ts";
import { locate, readOptional, writeFailure } from "../settings/paths.ts";
import type { Io } from "./terminal/io.ts";

/** Names of the files in the executable: templates as JSON, the SDK as gzipped JSON, both path → text. */
const TEMPLATES_ASSET = "templates.json";
const SDK_ASSET = "sdk.json.gz";
const SDK_FOLDER = ".preamp/sdk/";

/** The values of a template's placeholders. */
export interface Words {
  /** Id, such as `tool-clock`. */
  id: string;
  /** Name in snake_case, such as `clock`; for a tool the name that models use. */
  name: string;
}

/**
 * Resolves to files of a template, by their names in the author's folder. The template of a module has its
 * tests in `tests.ts`, so that they do not run with the tests of this program.
 */
export async function readTemplate(
  folder: string,
  names: readonly string[],
  { id, name }: Words = { id: "", name: "" },
): Promise<Record<string, string>> {
  const read = Deno.build.standalone ? await embeddedTemplates() : readSource;
  const files = await Promise.all(names.map(async (file) => {
    const text = await read(`${folder}/${file === "mod_test.ts" ? "tests.ts" : file}`);
    return [file, text.replaceAll("__ID__", id).replaceAll("__NAME__", name)] as const;
  }));
  return Object.fromEntries(files);
}

async function readSource(path: string): Promise<string> {
  return await Deno.readTextFile(new URL(`templates/${path}`, import.meta.url));
}

async function embeddedTemplates(): Promise<(path: string) => string> {
  const files: Record<string, string> = JSON.parse(
    await Deno.readTextFile(new URL(TEMPLATES_ASSET, import.meta.url)),
  );
  return (path) => files[path]!; // the compile task includes all files
}

/** Returns a folder that a command line names, as a URL. */
export function folderUrl(path: string, { cwd }: Io): URL {
  return locate(`${path.replace(/(?<=.)\/+$/, "")}/`, cwd);
}

/**
 * Writes new files. @param dir Name of the folder in messages.
 * @throws {UsageError} when one of them exists; nothing is written then.
 */
export async function writeNew(
  folder: URL,
  dir: string,
  files: Readonly<Record<string, string>>,
): Promise<void> {
  const there: string[] = [];
  for (const file of Object.keys(files)) {
    if (await isThere(new URL(file, folder))) there.push(dir === "." ? file : `${dir}/${file}`);
  }
  if (there.length > 0) {
    throw new UsageError(
      `Cannot write ${there.join(", ")}: it already exists, and nothing was written; use another folder`,
    );
  }
  try {
    for (const [file, text] of Object.entries(files)) {
      const url = new URL(file, folder);
      await Deno.mkdir(new URL(".", url), { recursive: true });
      await Deno.writeTextFile(url, text, { createNew: true });
    }
  } catch (error) {
    throw writeFailure(dir, error);
  }
}

/** Resolves to whether there is a file. */
export async function isThere(url: URL): Promise<boolean> {
  return await Deno.lstat(url).then(() => true, () => false);
}

/** Returns the command that starts this program from any folder. */
export function program(): string {
  if (Deno.build.standalone) return "preamp";
  const main = new URL("../../main.ts", import.meta.url);
  return `deno run -A ${main.protocol === "file:" ? decodeURIComponent(main.pathname) : main.href}`;
}

/** The `imports` of a `deno.json` for the files of {@link writeSdkFiles}, relative to its folder. */
export const SDK_IMPORTS: Readonly<Record<string, string>> = {
  "preamp": `./${SDK_FOLDER}preamp/mod.ts`,
  "preamp/base": `./${SDK_FOLDER}preamp/base.ts`,
  "preamp/loop": `./${SDK_FOLDER}preamp/loop.ts`,
  "preamp/context": `./${SDK_FOLDER}preamp/context.ts`,
  "preamp/provider": `./${SDK_FOLDER}preamp/provider.ts`,
  "preamp/web": `./${SDK_FOLDER}preamp/web.ts`,
  "preamp/testing": `./${SDK_FOLDER}preamp/testing.ts`,
  "zod": `./${SDK_FOLDER}zod/mod.js`,
};

/**
 * Writes the SDK into `.preamp/sdk` of a folder and removes the files of another version; git ignores them.
 * Only the executable has these files. Resolves to the folder's name.
 */
export async function writeSdkFiles(folder: URL): Promise<string> {
  const asset = await Deno.open(new URL(SDK_ASSET, import.meta.url));
  const json = new Response(asset.readable.pipeThrough(new DecompressionStream("gzip")));
  const files: Record<string, string> = await json.json();
  const target = new URL(SDK_FOLDER, folder);
  await Deno.remove(target, { recursive: true }).catch((error) => {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  });
  const all = { ...files, ".gitignore": "*\n", "version": `${manifest.version}\n` };
  for (const [path, text] of Object.entries(all)) {
    const url = new URL(path, target);
    await Deno.mkdir(new URL(".", url), { recursive: true });
    await Deno.writeTextFile(url, text);
  }
  return SDK_FOLDER;
}

/** Resolves to whether the nearest deno.json of a folder maps "preamp". */
export async function isMapped(folder: URL): Promise<boolean> {
  for (let at = folder;; at = new URL("../", at)) {
    for (const file of ["deno.json", "deno.jsonc"]) {
      const text = await readOptional(new URL(file, at), file).catch(() => undefined); // not readable: treated as absent
      if (text !== undefined) return maps(text);
    }
    if (at.pathname === new URL("../", at).pathname) return false;
  }
}

function maps(config: string): boolean {
  try {
    const { imports } = JSON.parse(config) as { imports?: unknown };
    return isObject(imports) && Object.hasOwn(imports, "preamp");
  } catch {
    return config.includes('"preamp"'); // it has comments or is not JSON: Deno reports that better
  }
}

/** Returns the text of a `deno.json` with these imports. @param exports Its module, if it is one. */
export function denoJson(imports: Readonly<Record<string, string>>, exports?: string): string {
  const module = exports === undefined ? {} : { exports };
  const document = { ...module, imports, exclude: [".preamp"], fmt: { lineWidth: 110 } };
  return `${JSON.stringify(document, null, 2)}\n`;
}

/**
 * Returns the imports of the SDK: the files written beside the module, or the sources that this program runs
 * from.
 */
export function sdkImports(): Readonly<Record<string, string>> {
  if (Deno.build.standalone) return SDK_IMPORTS;
  const { imports } = manifest;
  const parts = ["base", "loop", "context", "provider", "testing"];
  const own = (part: string) => new URL(`../sdk/${part}.ts`, import.meta.url).href;
  return {
    preamp: own("mod"),
    ...Object.fromEntries(parts.map((part) => [`preamp/${part}`, own(part)])),
    zod: imports.zod,
    "@cfworker/json-schema": imports["@cfworker/json-schema"], // imported by the loop; an import map has no scopes here
  };
}
