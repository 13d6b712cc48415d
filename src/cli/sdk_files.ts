/**
 * The SDK as files for authors: its sources and the packages they import, in `.preamp/sdk` of a folder. The compile task puts them
 * beside the program's own code as one file; a program that runs from its sources has none, because it is them.
 */
import manifest from "../../deno.json" with { type: "json" };

/** Name of the included file. */
const SDK_ASSET = "sdk.json.gz";
const FOLDER = ".preamp/sdk/";

/** What a `deno.json` says about the files, relative to its folder. */
export const SDK_IMPORTS: Readonly<Record<string, string>> = {
  "preamp": `./${FOLDER}preamp/mod.ts`,
  "preamp/loop": `./${FOLDER}preamp/loop.ts`,
  "preamp/context": `./${FOLDER}preamp/context.ts`,
  "preamp/testing": `./${FOLDER}preamp/testing.ts`,
  "zod": `./${FOLDER}zod/mod.js`,
};

/** Resolves to the files, path → text. @throws {Error} when the program was compiled without them. */
async function readSdkFiles(base: string = import.meta.url): Promise<Record<string, string>> {
  const file = await Deno.open(new URL(SDK_ASSET, base));
  return await new Response(file.readable.pipeThrough(new DecompressionStream("gzip"))).json();
}

/** Writes the files into `.preamp/sdk` of a folder, in place of those of another version. Git ignores them. */
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
