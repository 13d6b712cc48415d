/**
 * Writes the SDK for module authors: its sources and the packages they import, into `.preamp/sdk` of a folder. The
 * compile task includes them in the executable as one file. A program that runs from its sources does not need them.
 */
import manifest from "../../deno.json" with { type: "json" };

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
async function readSdkFiles(base: string = import.meta.url): Promise<Record<string, string>> {
  const file = await Deno.open(new URL(SDK_ASSET, base));
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
