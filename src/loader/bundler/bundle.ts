/**
 * Bundles files into one ES module with esbuild, in a virtual file system without disk or network. Runs in
 * the bundler's process; knows no policies, pins or caches.
 */
import { createHash } from "node:crypto";
import type * as Esbuild from "esbuild-wasm/esm/browser.js";
import { type Sealed, sealImports } from "./imports.ts";
import { type Declared, NOTHING_DECLARED, readDeclared } from "./static_manifest.ts";
import { kindOfAttribute, kindOfUrl, mayImport, mediaTypeOf, resolveSpecifier } from "../fetch/specifiers.ts";
import { originalPlaces, type SourceMap, withMap } from "./source_map.ts";
import type { BundleAnswer, BundleProblem, BundleRequest, GraphFile, RefusedImport } from "../types.ts";

/**
 * Name of the WebAssembly in the compiled program, gzipped: the compile task puts it next to the program's
 * code. Under `deno run`, `wasm_source.js` imports the package's own file instead.
 */
const WASM_ASSET = "esbuild.wasm.gz";

/** Name of the entry for esbuild, which reads a star in a name as a pattern; a URL may contain one. */
const ENTRY = "entry";
const FILES = "graph";
const SDK = "sdk";
const META = "meta";
const META_NAME = "preamp_import_meta";
const META_SPECIFIER = "preamp:import-meta";

/** Most refused imports, and most problems, that are reported. */
const MAX_REPORTED = 100;
/** Most characters of a reported text, which may quote a source. */
const MAX_TEXT = 1_000;
/** Most missing files in one answer; the next answer lists more. */
const MAX_MISSING = 1_000;
/** Most characters of a module's declaration. */
const MAX_DECLARED = 256 * 1024;
/** Most exports of a module. */
const MAX_EXPORTS = 10_000;

/** Loads and initialises esbuild on this thread. */
export async function startEsbuild(wasm: WebAssembly.Module | BufferSource): Promise<typeof Esbuild> {
  const wasmModule = wasm instanceof WebAssembly.Module ? wasm : await WebAssembly.compile(wasm);
  const esbuild = await import("esbuild-wasm/esm/browser.js");
  await esbuild.initialize({ wasmModule, worker: false });
  return esbuild;
}

/** Resolves to the WebAssembly in the compiled program. @throws {Error} if it was compiled without it. */
export async function includedWasm(): Promise<ArrayBuffer> {
  const file = await Deno.open(new URL(WASM_ASSET, import.meta.url));
  return await new Response(file.readable.pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

/**
 * Bundles a graph; resolves to the bundle, missing files or problems.
 *
 * @throws {Error} if esbuild itself fails; it cannot be used again.
 */
export async function bundleGraph(esbuild: typeof Esbuild, request: BundleRequest): Promise<BundleAnswer> {
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

function build(esbuild: typeof Esbuild, graph: Graph): Promise<Esbuild.BuildResult<{ write: false }>> {
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
    ...(graph.page ? { jsxImportSource: graph.page.jsx, minify: true } : {}),
    tsconfigRaw: "{}",
    define: { "import.meta": META_NAME },
    plugins: [{ name: "graph", setup: (build: Esbuild.PluginBuild) => graph.setup(build) }],
  });
}

function problemsOf(problems: readonly BundleProblem[]): BundleAnswer {
  return { kind: "problems", problems };
}

/** Returns whether a message reports a failure of esbuild itself: a panic, or an error without a location. */
function isFailure({ text, location, pluginName }: Esbuild.Message): boolean {
  return text.startsWith("panic:") ||
    location === null && pluginName === "" && !text.startsWith("Cannot read directory");
}

/** Returns the messages of a failed build; rethrows any other error. */
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
    const message = `it exports ${sealed.exports.length} names, at most ${MAX_EXPORTS} are allowed`;
    return problemsOf([{ message, url: graph.entry, line: 1, column: 1 }]);
  }
  return {
    kind: "bundle",
    code: withMap(sealed.code, map),
    inputs: [...graph.loaded],
    inline: [...graph.inline.values()],
    exports: sealed.exports,
    uses: [...graph.uses],
    declared: declaredBy(sealed),
    imports_refused: placesOf(text, sealed.refused.slice(0, MAX_REPORTED), map),
  };
}

/** Returns the module's declaration; null if it cannot be read or is too long. */
function declaredBy({ code, exports }: Sealed): Declared | null {
  if (!exports.includes("module")) return NOTHING_DECLARED;
  const declared = readDeclared(code);
  return declared && JSON.stringify(declared).length <= MAX_DECLARED ? declared : null;
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

/** Virtual file system of one request. */
class Graph {
  /** Missing files, with the first file that imports each. */
  readonly missing = new Map<string, string>();
  /** Files of the request that the bundle contains. */
  readonly loaded = new Set<string>();
  /** Files from data: URLs, by URL. */
  readonly inline = new Map<string, GraphFile>();
  /** Parts of the SDK that the bundle uses. */
  readonly uses = new Set<string>();
  /** URL of the entry file. */
  readonly entry: string;
  readonly page: BundleRequest["page"];
  readonly #request: BundleRequest;
  /** Changed texts of files, see {@link Graph.patchPatterns}. */
  readonly #patched = new Map<string, string>();
  readonly #files: ReadonlyMap<string, Uint8Array>;
  /**
   * Maps esbuild's short names to data: URLs, which may be megabytes long and would be repeated in the
   * bundle.
   */
  readonly #urls = new Map<string, string>();
  readonly #names = new Map<string, string>();
  #refused = 0;

  constructor(request: BundleRequest) {
    this.entry = request.entry;
    this.page = request.page;
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
      return this.#refuse(path, { text, notes: [{ text: 'use with {type: "json"}, "text" or "bytes"' }] });
    }
    const { imports = {} } = this.page ?? {};
    if (Object.hasOwn(imports, path)) return this.#file(imports[path]!, from);
    const resolved = resolveSpecifier(path, from, this.#request.esm_host);
    if (resolved.kind === "sdk") return { path: resolved.name, namespace: SDK, sideEffects: false };
    if (resolved.kind === "url") return this.#file(resolved.url, from);
    if (kind === "dynamic-import" || kind.startsWith("require")) return { path, external: true }; // throws when it is executed
    return this.#refuse(path, { text: `Cannot import ${resolved.fact}`, notes: [{ text: resolved.hint }] });
  }

  /**
   * Reports an import that cannot be resolved. perf: esbuild copies the line with each error, so further ones
   * are not reported.
   */
  #refuse(path: string, error: Esbuild.PartialMessage): Esbuild.OnResolveResult {
    return ++this.#refused > MAX_REPORTED ? { path, external: true } : { errors: [error] };
  }

  #file(requested: string, from: string): Esbuild.OnResolveResult {
    const { redirects, failed } = this.#request;
    const url = Object.hasOwn(redirects, requested) ? redirects[requested]! : requested;
    if (url.startsWith("file:") && !from.startsWith("file:") && this.#files.has(url)) {
      // another file of the graph imports it, so that it was fetched
      const text = `Cannot import ${
        JSON.stringify(requested.slice(0, MAX_TEXT))
      }: only files may import files`;
      return this.#refuse(requested, { text, notes: [{ text: "import it by its https:// URL" }] });
    }
    if (this.#files.has(url) || url.startsWith("data:")) return { path: this.#nameOf(url), namespace: FILES };
    if (Object.hasOwn(failed, requested)) {
      return this.#refuse(requested, { text: failed[requested]!, detail: { failed_url: requested } });
    }
    if (!this.missing.has(requested)) this.missing.set(requested, this.#nameOf(from));
    return { path: requested, external: true };
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
    const text = this.#patched.get(url) ?? new TextDecoder().decode(bytes); // removes the byte order mark
    return { contents: mayImport(loader) ? text + appendedCode(text) : text, loader };
  }

  /**
   * Changes imports of patterns (`import(`./${name}.ts`)`), for which esbuild searches matching files in a
   * folder. With one changed character esbuild treats them as computed imports, which are then refused.
   * Returns false if there are other errors too.
   */
  patchPatterns(messages: readonly Esbuild.Message[]): boolean {
    const patterns = messages.filter(isPattern);
    if (
      patterns.length === 0 || messages.some((message) => !isPattern(message) && !isMissingFolder(message))
    ) {
      return false;
    }
    for (const { location } of patterns) {
      const url = this.#urlOfName(location!.file); // isPattern() checked it
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

  /**
   * Returns the URL of a source, which esbuild prefixes with the namespace. A data: URL keeps its short name.
   */
  urlOfSource(source: string): string {
    return source.startsWith(`${FILES}:`) ? source.slice(FILES.length + 1) : source;
  }

  problemOf({ text, location, notes, detail }: Esbuild.Message): BundleProblem {
    const failed_url = (detail as { failed_url?: string } | undefined)?.failed_url; // set in #file()
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

/** Resolves to the bytes of a data: URL; undefined if it is invalid. */
async function decodeData(url: string): Promise<Uint8Array | undefined> {
  try {
    return await (await fetch(url)).bytes(); // no network access
  } catch {
    return undefined; // reported with the location of the import
  }
}

/** Returns the entry of a data: URL. The URL is shortened, because it may have megabytes. */
function inlineFile(url: string, bytes: Uint8Array): GraphFile {
  const sha256 = createHash("sha256").update(bytes).digest("hex");
  return { url: `data:${mediaTypeOf(url)},${sha256}`, sha256, bytes: bytes.length };
}

function isPattern({ text, location, pluginName }: Esbuild.Message): boolean {
  return location !== null && pluginName === "" && /^Could not resolve (import|require)\("/.test(text);
}

/** Returns whether a message is the second one that esbuild reports for an import of a pattern. */
function isMissingFolder({ text, location }: Esbuild.Message): boolean {
  return location === null && text.startsWith("Cannot read directory");
}

/** Returns the offset of a line and column, counted from 1. Lines end as in ECMAScript. */
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

/** Returns code to append to a file: imports are hoisted and pragmas apply anywhere, so no line moves. */
function appendedCode(text: string): string {
  let ending = "";
  if (text.includes("import") && text.includes("meta")) {
    ending += `\nimport ${META_NAME} from "${META_SPECIFIER}";`;
  }
  // as in TypeScript: a named factory implies the classic transform
  const classic = text.includes("@jsx ") && !text.includes("@jsxRuntime") &&
    !text.includes("@jsxImportSource");
  return classic ? `${ending}\n/** @jsxRuntime classic */` : ending;
}

/** Converts a column of esbuild (UTF-8 bytes from 0) to characters from 1. */
function columnOf(line: string, bytes: number): number {
  return new TextDecoder().decode(new TextEncoder().encode(line).subarray(0, bytes)).length + 1;
}

/** Returns a module that exports `import.meta` of a file, with the file's own URL. */
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
