/**
 * Writes the SDK for module authors: its sources and the packages they import, into `.preamp/sdk` of a folder. The
 * compile task includes them in the executable as one file. A program that runs from its sources does not need them. A `deno.json` maps "preamp" to them for editors and tests.
 */
import manifest from "../../deno.json" with { type: "json" };
import { isObject } from "../sdk/json.ts";
import { readOptional } from "./paths.ts";

/** Name of the included file. */
const SDK_ASSET = "sdk.json.gz";
const FOLDER = ".preamp/sdk/";

/** The `imports` of a `deno.json` for these files, relative to its folder. */
export const SDK_IMPORTS: Readonly<Record<string, string>> = {
  "preamp": `./${FOLDER}preamp/mod.ts`,
  "preamp/base": `./${FOLDER}preamp/base.ts`,
  "preamp/loop": `./${FOLDER}preamp/loop.ts`,
  "preamp/context": `./${FOLDER}preamp/context.ts`,
  "preamp/provider": `./${FOLDER}preamp/provider.ts`,
  "preamp/testing": `./${FOLDER}preamp/testing.ts`,
  "zod": `./${FOLDER}zod/mod.js`,
};

/** Resolves to the files, path → text. @throws {Error} if the program was compiled without them. */
async function readSdkFiles(): Promise<Record<string, string>> {
  const file = await Deno.open(new URL(SDK_ASSET, import.meta.url));
  return await new Response(file.readable.pipeThrough(new DecompressionStream("gzip"))).json();
}

/** Writes the files into `.preamp/sdk` of a folder and removes those of another version. Git ignores them. */
export async function writeSdkFiles(folder: URL): Promise<void> {
  const files = await readSdkFiles();
  const target = new URL(FOLDER, folder);
  await Deno.remove(target, { recursive: true }).catch((error) => {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  });
  const all = { ...files, ".gitignore": "*\n", "version": `${manifest.version}\n` };
  for (const [path, text] of Object.entries(all)) {
    const url = new URL(path, target);
    await Deno.mkdir(new URL(".", url), { recursive: true });
    await Deno.writeTextFile(url, text);
  }
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

/** Returns the text of a `deno.json` with these imports. */
export function denoJson(imports: Readonly<Record<string, string>>): string {
  const document = { exports: "./mod.ts", imports, exclude: [".preamp"], fmt: { lineWidth: 110 } };
  return `${JSON.stringify(document, null, 2)}\n`;
}
