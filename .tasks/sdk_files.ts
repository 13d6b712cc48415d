/**
 * Collects the SDK as self-contained files, which `preamp module types` writes into an author's folder, so
 * that editors, `deno check` and `deno test` need no network: its sources, and each imported package as one
 * file with its types.
 */

const ROOT = new URL("../", import.meta.url);
const SOURCES = new URL("src/", ROOT);
const SDK = new URL("sdk/", SOURCES);
/** Entry points in an author's `deno.json`. */
const ENTRIES = ["mod.ts", "base.ts", "loop.ts", "context.ts", "provider.ts", "web.ts", "testing.ts"];

/** Path of each imported package among the files. */
const PACKAGES: Readonly<Record<string, string>> = {
  "zod": "zod/mod.js",
  "@cfworker/json-schema": "json_schema/mod.js",
};

/** Writes the files as gzipped JSON, path → text; read by `src/cli/author_files.ts`. */
export async function writeSdkFiles(output: URL): Promise<void> {
  const files: Record<string, string> = {};
  for (const file of await sdkFiles()) {
    const text = await Deno.readTextFile(new URL(file, SOURCES));
    files[named(file)] = withoutPackages(named(text), file.split("/").length - 1);
  }
  await addPackage("zod", "zod", files);
  await addPackage("@cfworker/json-schema", "json_schema", files);
  const json = new Blob([JSON.stringify(files)]).stream();
  await Deno.writeFile(output, json.pipeThrough(new CompressionStream("gzip")));
}

/** Returns a path, or a source with paths, in which the folder `sdk` is named `preamp`. */
function named(text: string): string {
  return text.replace(/^sdk\//, "preamp/").replaceAll(/(["'](?:\.\.\/)+)sdk\//g, "$1preamp/");
}

/** Resolves to the sources that the entry points reach: of the SDK, and the kernel that its test kit runs. */
async function sdkFiles(): Promise<string[]> {
  const found = new Set<string>();
  for (const entry of ENTRIES) {
    const { modules } = JSON.parse(await output(["info", "--json", new URL(entry, SDK).href])) as {
      modules: { specifier: string }[];
    };
    for (const { specifier } of modules) {
      if (specifier.startsWith(SOURCES.href)) found.add(specifier.slice(SOURCES.href.length));
    }
  }
  return [...found].sort();
}

/**
 * Returns a source with its imports of packages as relative ones; `depth`: folders up to where the packages
 * are.
 */
function withoutPackages(text: string, depth: number): string {
  let result = text;
  for (const [name, file] of Object.entries(PACKAGES)) {
    for (const [before, after] of [["from ", ""], ["import(", ")"]]) {
      result = result.replaceAll(
        `${before}"${name}"${after}`,
        `${before}"${"../".repeat(depth)}${file}"${after}`,
      );
    }
  }
  return result;
}

/** Adds a package as one file of JavaScript, and its declarations as they are. */
async function addPackage(name: string, folder: string, files: Record<string, string>): Promise<void> {
  const entry = new URL(import.meta.resolve(name));
  const base = new URL(".", entry);
  const code = await output(["bundle", "--quiet", "--minify", "--platform=browser", entry.href]);
  files[`${folder}/mod.js`] = `// @ts-self-types="./${declarationsOf(entry, base)}"\n${code}`;
  await addDeclarations(new URL(declarationsOf(entry, base), base), base, folder, files);
}

function declarationsOf(entry: URL, base: URL): string {
  return entry.href.slice(base.href.length).replace(/\.js$/, ".d.ts");
}

async function addDeclarations(
  url: URL,
  base: URL,
  folder: string,
  files: Record<string, string>,
): Promise<void> {
  const path = `${folder}/${url.href.slice(base.href.length)}`;
  if (files[path] !== undefined) return;
  const text = await Deno.readTextFile(url);
  // Deno reads declarations by their own names
  files[path] = text.replaceAll(/((?:from|import)\s*\(?\s*["']\.[^"']*)\.js(["'])/g, "$1.d.ts$2")
    .replace(/\/\/# sourceMappingURL=.*\n?/, "");
  for (const [, specifier] of files[path].matchAll(/(?:from|import)\s*\(?\s*["'](\.[^"']*\.d\.ts)["']/g)) {
    await addDeclarations(new URL(specifier!, url), base, folder, files);
  }
}

async function output(args: readonly string[]): Promise<string> {
  const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), { args: [...args], cwd: ROOT })
    .output();
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  if (!success) throw new Error(`Cannot make the SDK's files: deno ${args.join(" ")}\n${text(stderr)}`);
  return text(stdout);
}
