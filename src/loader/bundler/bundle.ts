/**
 * Many files → one ES module, by esbuild, from bytes that are given: a virtual name space without disk or network. Runs in
 * the bundler child; knows nothing of policies, hashes or caches.
 */
import { createHash } from "node:crypto";
import type * as Esbuild from "esbuild-wasm/esm/browser.js";
import { type Sealed, sealImports } from "./seal_imports.ts";
import { type Declared, NOTHING_DECLARED, readDeclared } from "./static_manifest.ts";
import { kindOfAttribute, kindOfUrl, mayImport, mediaTypeOf } from "../fetch/media_type.ts";
import { originalPlaces, type SourceMap } from "./source_map.ts";
import { resolveSpecifier } from "../fetch/specifiers.ts";
import type { BundleAnswer, BundleProblem, BundleRequest, GraphFile, RefusedImport } from "../types.ts";

/** esbuild, initialised. */
export type Builder = Pick<typeof Esbuild, "build">;

/** What esbuild calls the entry: it takes a star in a name for a pattern, and a URL may hold one. */
const ENTRY = "entry";
const FILES = "graph";
const SDK = "sdk";
const META = "meta";
const META_NAME = "preamp_import_meta";
const META_SPECIFIER = "preamp:import-meta";

/** Refused imports that are reported; all of them are refused. As many problems of the files. */
const MAX_REPORTED = 100;
/** Characters of one text in a report: it may quote a source. */
const MAX_TEXT = 1_000;
/** Missing files of one answer; what else is missing is in the next one. */
const MAX_MISSING = 1_000;
/** Characters of what a module says of itself. */
const MAX_DECLARED = 256 * 1024;
/** Names that a module may export. */
const MAX_EXPORTS = 10_000;

/**
 * Returns the bundle of a graph, what is missing, or what is wrong with it.
 *
 * @throws {Error} when esbuild itself fails: it cannot be used again.
 */
export async function bundleGraph(esbuild: Builder, request: BundleRequest): Promise<BundleAnswer> {
  const graph = new Graph(request);
  let result: Esbuild.BuildResult<{ write: false }>;
  try {
    result = await build(esbuild, graph).catch((error) => {
      if (!graph.patchPatterns(messagesOf(error))) throw error;
      return build(esbuild, graph);
    });
  } catch (error) {
    const messages = messagesOf(error);
    const failure = messages.find(isFailure);
    if (failure) throw new Error(failure.text);
    return problemsOf(messages.slice(0, MAX_REPORTED).map((message) => graph.problemOf(message)));
  }
  if (graph.missing.size > 0) {
    const urls = [...graph.missing].slice(0, MAX_MISSING).map(([url, from]) => ({ url, from }));
    return { kind: "missing", urls };
  }
  return await seal(result.outputFiles, graph);
}

function build(esbuild: Builder, graph: Graph): Promise<Esbuild.BuildResult<{ write: false }>> {
  return esbuild.build({
    entryPoints: [ENTRY],
    bundle: true,
    write: false,
    outfile: "bundle.js",
    format: "esm",
    platform: "neutral",
    target: "esnext",
    charset: "utf8",
    minifyWhitespace: true, // Deno reads a data: module more than once: shorter links sooner
    sourcemap: "external",
    sourcesContent: false,
    legalComments: "none",
    logLevel: "silent",
    jsx: "automatic",
    tsconfigRaw: "{}",
    define: { "import.meta": META_NAME },
    plugins: [{ name: "graph", setup: (build: Esbuild.PluginBuild) => graph.setup(build) }],
  });
}

function problemsOf(problems: readonly BundleProblem[]): BundleAnswer {
  return { kind: "problems", problems };
}

/** Returns true for a message that is about esbuild, not about a source: a panic in it, or an error without any place. */
function isFailure({ text, location, pluginName }: Esbuild.Message): boolean {
  return text.startsWith("panic:") ||
    location === null && pluginName === "" && !text.startsWith("Cannot read directory");
}

/** Returns the messages of a failed build; throws an error of another kind again. */
function messagesOf(error: unknown): readonly Esbuild.Message[] {
  const messages = (error as { errors?: readonly Esbuild.Message[] }).errors;
  if (!Array.isArray(messages)) throw error;
  return messages;
}

async function seal(outputs: readonly Esbuild.OutputFile[], graph: Graph): Promise<BundleAnswer> {
  const text = outputs.find(({ path }) => path.endsWith("/bundle.js"))?.text ?? "";
  const map = JSON.parse(outputs.find(({ path }) => path.endsWith(".map"))?.text ?? "{}") as SourceMap; // esbuild's own
  map.sources = map.sources.map((source) => graph.urlOfSource(source));
  const sealed = await sealImports(text);
  if (sealed.exports.length > MAX_EXPORTS) {
    const message = `a module may export ${MAX_EXPORTS} names: it exports ${sealed.exports.length}`;
    return problemsOf([{ message, url: graph.entry, line: 1, column: 1 }]);
  }
  return {
    kind: "bundle",
    code: withMap(sealed.code, map),
    inputs: [...graph.loaded],
    inline: [...graph.inline.values()],
    exports: sealed.exports,
    uses: [...graph.uses],
    declared: await declaredBy(sealed),
    imports_refused: placesOf(text, sealed.refused.slice(0, MAX_REPORTED), map),
  };
}

/** What is too long to be handed on is as if it could not be read. */
async function declaredBy({ code, exports }: Sealed): Promise<Declared | null> {
  if (!exports.includes("module")) return NOTHING_DECLARED;
  const declared = await readDeclared(code);
  return declared && JSON.stringify(declared).length <= MAX_DECLARED ? declared : null;
}

function withMap(code: string, map: SourceMap): string {
  const bytes = new TextEncoder().encode(JSON.stringify(map));
  return `${code}\n//# sourceMappingURL=data:application/json;base64,${bytes.toBase64()}\n`;
}

function placesOf(
  code: string,
  refused: readonly { offset: number; specifier: string | null }[],
  map: SourceMap,
): RefusedImport[] {
  const places = refused.map(({ offset }) => {
    const start = code.lastIndexOf("\n", offset - 1) + 1;
    return { line: countLines(code, start), column: offset - start };
  });
  const originals = originalPlaces(map, places);
  return refused.map(({ specifier }, index) => {
    const place = originals[index];
    return {
      specifier: specifier?.slice(0, MAX_TEXT) ?? null,
      url: place?.source ?? "",
      line: place?.line ?? 1,
      column: place?.column ?? 1,
    };
  });
}

function countLines(code: string, end: number): number {
  let lines = 0;
  for (let at = code.indexOf("\n"); at !== -1 && at < end; at = code.indexOf("\n", at + 1)) lines++;
  return lines;
}

/** One request as esbuild sees it. */
class Graph {
  /** Files that were needed and are not there, by the file that needs them first. */
  readonly missing = new Map<string, string>();
  /** Files that went in. */
  readonly loaded = new Set<string>();
  /** Code that lies in the URL of an import, by that URL. */
  readonly inline = new Map<string, GraphFile>();
  /** Parts of the SDK that went in. */
  readonly uses = new Set<string>();
  /** URL of the entry file. */
  readonly entry: string;
  readonly #request: BundleRequest;
  /** Texts that are read in place of a file's, see {@link Graph.patchPatterns}. */
  readonly #patched = new Map<string, string>();
  readonly #files: ReadonlyMap<string, Uint8Array>;
  /** esbuild's name of a file → its URL: a data: URL may be megabytes long, and names are repeated in the bundle. */
  readonly #urls = new Map<string, string>();
  readonly #names = new Map<string, string>();

  constructor(request: BundleRequest) {
    this.entry = request.entry;
    this.#request = request;
    this.#files = new Map(request.files.map(({ url, bytes }) => [url, bytes]));
  }

  setup(build: Esbuild.PluginBuild): void {
    build.onResolve({ filter: /.*/ }, (found) => this.#resolve(found));
    build.onLoad({ filter: /.*/, namespace: FILES }, (found) => this.#load(found));
    build.onLoad({ filter: /.*/, namespace: SDK }, ({ path }) => {
      this.uses.add(path);
      return { contents: `module.exports = globalThis[Symbol.for("preamp.sdk")][${JSON.stringify(path)}]` };
    });
    build.onLoad({ filter: /.*/, namespace: META }, ({ path }) => ({ contents: metaOf(path) }));
  }

  #resolve({ path, kind, importer, with: attributes }: Esbuild.OnResolveArgs): Esbuild.OnResolveResult {
    if (kind === "entry-point") return this.#file(this.entry, this.entry);
    const from = this.#urls.get(importer) ?? importer;
    if (path === META_SPECIFIER) return { path: from, namespace: META, sideEffects: false };
    if (kindOfAttribute(attributes.type) === null) {
      const text = `Cannot import ${JSON.stringify(path)} as ${JSON.stringify(attributes.type)}`;
      return { errors: [{ text, notes: [{ text: 'take with {type: "json"}, "text" or "bytes"' }] }] };
    }
    const resolved = resolveSpecifier(path, from, this.#request.esm_host);
    if (resolved.kind === "sdk") return { path: resolved.name, namespace: SDK, sideEffects: false };
    if (resolved.kind === "url") return this.#file(resolved.url, from);
    if (kind === "dynamic-import" || kind.startsWith("require")) return { path, external: true }; // told when it is reached
    return { errors: [{ text: `Cannot import ${resolved.fact}`, notes: [{ text: resolved.hint }] }] };
  }

  #file(asked: string, from: string): Esbuild.OnResolveResult {
    const { redirects, failed } = this.#request;
    const url = Object.hasOwn(redirects, asked) ? redirects[asked]! : asked;
    if (this.#files.has(url) || url.startsWith("data:")) return { path: this.#nameOf(url), namespace: FILES };
    if (Object.hasOwn(failed, asked)) {
      return { errors: [{ text: failed[asked]!, detail: { failed_url: asked } }] };
    }
    if (!this.missing.has(asked)) this.missing.set(asked, this.#nameOf(from));
    return { path: asked, external: true };
  }

  async #load({ path, with: attributes }: Esbuild.OnLoadArgs): Promise<Esbuild.OnLoadResult> {
    const url = this.#urls.get(path) ?? path;
    const bytes = this.#files.get(url) ?? await decodeData(url);
    if (!bytes) {
      const text = `Cannot load ${path}: it cannot be decoded`;
      return { errors: [{ text, notes: [{ text: "write data:text/javascript;base64,…" }] }] };
    }
    if (this.#files.has(url)) this.loaded.add(url);
    else this.inline.set(url, inlineFile(url, bytes));
    const loader = kindOfAttribute(attributes.type) ?? kindOfUrl(url);
    if (loader === "binary") return { contents: bytes, loader };
    const text = this.#patched.get(url) ?? new TextDecoder().decode(bytes); // without the byte order mark
    return { contents: mayImport(loader) ? text + appendedCode(text) : text, loader };
  }

  /**
   * Imports of computed paths (`import(`./${name}.ts`)`) make esbuild look for files that match. There is no folder to look
   * in: one letter of each path is changed, so that it is taken for any other computed import, which sealing then refuses.
   * Returns false when these are not the only errors.
   */
  patchPatterns(messages: readonly Esbuild.Message[]): boolean {
    const patterns = messages.filter(isPattern);
    if (patterns.length === 0 || messages.some((one) => !isPattern(one) && !isMissingFolder(one))) {
      return false;
    }
    for (const { location } of patterns) {
      const url = this.#urlOfName(location!.file); // isPattern() says it has one
      const bytes = this.#files.get(url);
      if (!bytes) return false;
      const text = this.#patched.get(url) ?? new TextDecoder().decode(bytes);
      const at = offsetOf(text, location!.line, columnOf(location!.lineText, location!.column)) + 1;
      if (text[at] !== ".") return false;
      this.#patched.set(url, `${text.slice(0, at)}:${text.slice(at + 1)}`);
    }
    return true;
  }

  #nameOf(url: string): string {
    if (!url.startsWith("data:")) return url;
    let name = this.#names.get(url);
    if (name === undefined) {
      name = `data:${mediaTypeOf(url)},${this.#names.size + 1}`;
      this.#names.set(url, name);
      this.#urls.set(name, url);
    }
    return name;
  }

  #urlOfName(source: string): string {
    const name = this.urlOfSource(source);
    return this.#urls.get(name) ?? name;
  }

  /** Returns the URL of a source as esbuild writes it: with the name space before it. A data: URL stays short. */
  urlOfSource(source: string): string {
    return source.startsWith(`${FILES}:`) ? source.slice(FILES.length + 1) : source;
  }

  problemOf({ text, location, notes, detail }: Esbuild.Message): BundleProblem {
    const failed_url = (detail as { failed_url?: string } | undefined)?.failed_url; // our own, or nothing
    const hints = notes.filter((note) => note.location === null).map((note) => note.text);
    const url = location ? this.urlOfSource(location.file) : undefined;
    const typed = url !== undefined && URL.canParse(url) && kindOfUrl(url) === "js" &&
      failed_url === undefined &&
      hints.length === 0 && !text.startsWith("No matching export");
    const hint = hints.join("; ") || (typed ? "a file in TypeScript must end in .ts or .tsx" : "");
    return {
      message: text.slice(0, MAX_TEXT),
      ...(hint === "" ? {} : { hint: hint.slice(0, MAX_TEXT) }),
      ...(url === undefined || !location ? {} : {
        url,
        line: location.line,
        column: columnOf(location.lineText, location.column),
      }),
      ...(failed_url === undefined ? {} : { failed_url }),
    };
  }
}

/** Resolves to the bytes of a data: URL; undefined when it holds none. */
async function decodeData(url: string): Promise<Uint8Array | undefined> {
  try {
    return await (await fetch(url)).bytes(); // touches no network
  } catch {
    return undefined; // reported with the place of the import
  }
}

/** The code itself is a part of the file that imports it, and may be megabytes: its URL is not kept. */
function inlineFile(url: string, bytes: Uint8Array): GraphFile {
  const sha256 = createHash("sha256").update(bytes).digest("hex");
  return { url: `data:${mediaTypeOf(url)},${sha256}`, sha256, bytes: bytes.length };
}

function isPattern({ text, location, pluginName }: Esbuild.Message): boolean {
  return location !== null && pluginName === "" && /^Could not resolve (import|require)\("/.test(text);
}

/** What esbuild says besides, when it looks for files that match a pattern. */
function isMissingFolder({ text, location }: Esbuild.Message): boolean {
  return location === null && text.startsWith("Cannot read directory");
}

/** Returns the offset of a place, line and column from 1; lines end as ECMAScript says. */
function offsetOf(text: string, line: number, column: number): number {
  let start = 0;
  const ends = text.matchAll(/\r\n|[\n\r\u2028\u2029]/g);
  for (let at = 1; at < line; at++) {
    const end = ends.next().value;
    if (!end) break;
    start = end.index + end[0].length;
  }
  return start + column - 1;
}

/** What is added at the end of a file, where it moves nothing: imports are hoisted, and pragmas count wherever they are. */
function appendedCode(text: string): string {
  let ending = "";
  if (text.includes("import") && text.includes("meta")) {
    ending += `\nimport ${META_NAME} from "${META_SPECIFIER}";`;
  }
  // as in TypeScript: whoever names a factory means the classic transform
  const classic = text.includes("@jsx ") && !text.includes("@jsxRuntime") &&
    !text.includes("@jsxImportSource");
  return classic ? `${ending}\n/** @jsxRuntime classic */` : ending;
}

/** esbuild counts columns in UTF-8 bytes from 0; people in letters from 1. */
function columnOf(line: string, bytes: number): number {
  return new TextDecoder().decode(new TextEncoder().encode(line).subarray(0, bytes)).length + 1;
}

/** What `import.meta` is in a file: its own URL, never the bundle's. */
function metaOf(url: string): string {
  const path = url.startsWith("file:") ? decodeURIComponent(new URL(url).pathname) : undefined;
  const place = path === undefined
    ? ""
    : `, filename: ${JSON.stringify(path)}, dirname: ${
      JSON.stringify(path.slice(0, path.lastIndexOf("/")) || "/")
    }`;
  return `const url = ${JSON.stringify(url)};\n` +
    `export default { url, main: false, resolve: (specifier) => new URL(specifier, url).href${place} };`;
}
