/**
 * Builds a script and a style sheet from files of `app`, when the program runs from source and by
 * `deno task compile` and `page`: those of the page, and those of the documentation.
 */
import { createHash } from "node:crypto";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { PACKAGES } from "./packages.js";
import type { BundleScript, ScriptSources } from "../../app/page_bundle.ts";

/** A file in the forms that it is sent in, as base64. */
export interface CompressedFile {
  readonly gzip: string;
  readonly br: string;
}

/** The built page. */
export interface BuiltPage {
  /** Digest of {@link PageSources}. */
  readonly key: string;
  readonly script: CompressedFile;
  readonly style: CompressedFile;
}

const APP = new URL("./app/", import.meta.url);
const CLIENT = new URL("../../client/", import.meta.url);
/** Files of other folders that the page may import; they import nothing. */
const SHARED = ["docs/search.ts", "sdk/image_types.ts"].map((path) =>
  new URL(`../../${path}`, import.meta.url)
);
/** The program's own file that the page may import, by its name. */
const OWN = { "preamp/client": new URL("mod.ts", CLIENT).href };
const ROOT = new URL("../../../", import.meta.url);
/** Names the versions of the packages. */
const MANIFEST = new URL("deno.json", ROOT);

/** What is built: the page, or the script of the documentation, which needs no packages. */
export type PageName = "page" | "docs";

/** First files of the scripts, and the style sheets. */
const ENTRIES: Readonly<Record<PageName, { readonly script: string; readonly style: string }>> = {
  page: { script: new URL("main.tsx", APP).href, style: new URL("page.css", APP).href },
  docs: { script: new URL("docs/docs.ts", APP).href, style: new URL("docs/docs.css", APP).href },
};

/** Most times that files are added which the bundler misses: further files of packages. */
const MAX_ROUNDS = 8;

/** The best one, 11, saves 6 % more and takes six times as long, in the server's thread. */
const BROTLI_QUALITY = 9;

type SourceFile = ScriptSources["files"][number];

/** The files that the page is built from. */
export interface PageSources {
  /** Digest of all of them, and so of the versions of the packages; the same in every folder. */
  readonly key: string;
  readonly files: readonly SourceFile[];
}

/** Reads the sources of the page. */
export async function readSources(): Promise<PageSources> {
  const files = [
    await readSource(MANIFEST),
    ...await Promise.all(SHARED.map(readSource)),
    ...await readFolder(APP),
    ...await readFolder(CLIENT),
  ];
  const hashes = files.map(({ url, sha256 }) => `${sha256} ${url.slice(ROOT.href.length)}`).sort();
  return { key: createHash("sha256").update(hashes.join("\n")).digest("hex"), files };
}

/**
 * Builds the page or the files of the documentation.
 *
 * @throws {Error} that says which file or package cannot be read or bundled.
 */
export async function buildPage(
  page: PageName,
  { key, files }: PageSources,
  bundle: BundleScript,
): Promise<BuiltPage> {
  const { script, style } = ENTRIES[page];
  const imports: Record<string, string> = { ...OWN };
  for (const [name, download] of page === "docs" ? [] : Object.entries(PACKAGES)) {
    await download();
    imports[name] = import.meta.resolve(name); // a file of Deno's cache, once the package is there
  }
  const known = new Map(files.map((file) => [file.url, file]));
  let missing = Object.values(imports);
  for (let round = 1; round <= MAX_ROUNDS; round++) {
    for (const url of missing) known.set(url, await readSource(new URL(url)));
    const answer = await bundle({ entry: script, files: [...known.values()], imports });
    if ("code" in answer) {
      return { key, script: compressed(answer.code), style: compressed(styleAt(style, known)) };
    }
    missing = answer.missing;
  }
  throw new Error(`Cannot bundle the page: packages import files over more than ${MAX_ROUNDS} levels`);
}

function compressed(text: string): CompressedFile {
  const params = { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY };
  return {
    gzip: gzipSync(text, { level: 9 }).toString("base64"),
    br: brotliCompressSync(text, { params }).toString("base64"),
  };
}

/** Returns a style sheet with those that it imports in place of the imports, such as `@import "./a.css";`. */
function styleAt(url: string, files: ReadonlyMap<string, SourceFile>): string {
  const file = files.get(url);
  if (!file) throw new Error(`Cannot bundle the page: ${url} is missing`);
  const text = new TextDecoder().decode(file.bytes).replaceAll(/\/\*[^]*?\*\/|^ +/gm, "");
  return text.replaceAll(/^@import "(.+)";$/gm, (_, path) => styleAt(new URL(path, url).href, files));
}

async function readFolder(folder: URL): Promise<SourceFile[]> {
  const files: SourceFile[] = [];
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    if (isDirectory) files.push(...await readFolder(new URL(`${name}/`, folder)));
    else if (/\.(tsx?|css)$/.test(name)) files.push(await readSource(new URL(name, folder)));
  }
  return files;
}

async function readSource(url: URL): Promise<SourceFile> {
  const bytes = await Deno.readFile(url);
  return { url: url.href, bytes, sha256: createHash("sha256").update(bytes).digest("hex") };
}
