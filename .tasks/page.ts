/**
 * `deno task page`: builds the page for browsers, and the script of the documentation, into
 * `src/server/page`, where a server that runs from source finds them (src/docs/operating.md#the-page).
 * `deno task compile` puts them beside its bundle.
 */
import { bundleScript } from "../src/app/page_bundle.ts";
import { buildPage, readSources } from "../src/server/page/build.ts";

/** Writes the built files to a folder; returns them. */
export async function writePages(folder: URL): Promise<URL[]> {
  const sources = await readSources();
  return await Promise.all((["page", "docs"] as const).map(async (name) => {
    const file = new URL(`${name}.json`, folder);
    await Deno.writeTextFile(file, JSON.stringify(await buildPage(name, sources, bundleScript)));
    return file;
  }));
}

if (import.meta.main) await writePages(new URL("../src/server/page/", import.meta.url));
