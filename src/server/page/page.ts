/**
 * The page as files to answer: from the executable, from the cache on disk, or built by the first request.
 * Kept in memory once it is there.
 */
import { createHash } from "node:crypto";
import type { BundleScript } from "../../app/page_bundle.ts";
import type { Clock } from "../../sdk/contracts.ts";
import { isObject } from "../../sdk/json.ts";
import { escapeHtml } from "../../text/escape.ts";
import type { PageText } from "./build.ts";

/** Name of the built page in the cache, and beside the executable's code, where the compile task puts it. */
const BUILT = "page.json";

/** Milliseconds after a failed build until the next one. */
const RETRY_MS = 10_000;

/** One file of the page. */
export interface PageFile {
  readonly type: string;
  readonly plain: Uint8Array<ArrayBuffer>;
  readonly gzip: Uint8Array<ArrayBuffer>;
}

/** The page, ready to answer. */
export interface LoadedPage {
  readonly html: string;
  readonly etag: string;
  /** Files by name, which contains the digest of the content. */
  readonly files: ReadonlyMap<string, PageFile>;
}

/** Options of {@link Page}. */
export interface PageOptions {
  /** Folder of the cache on disk, as a URL that ends in a slash; null: memory only. */
  readonly cache: URL | null;
  /** Path prefix of the API, such as `/agents`; empty for none. */
  readonly basePath: string;
  /** Bundles the page's script. */
  readonly bundle: BundleScript;
  readonly clock: Pick<Clock, "monotonic">;
}

/** Loads the page on the first request. */
export class Page {
  readonly #options: PageOptions;
  #page: Promise<LoadedPage> | undefined;
  #retry_at = Infinity;

  constructor(options: PageOptions) {
    this.#options = options;
  }

  /** Resolves to the page. @throws {Error} that says why it cannot be built; for 10 s, the same one. */
  load(): Promise<LoadedPage> {
    const { basePath, clock } = this.#options;
    if (this.#page && clock.monotonic() < this.#retry_at) return this.#page;
    this.#retry_at = Infinity;
    return this.#page = this.#text().then((text) => loadedPage(text, basePath)).catch((error) => {
      this.#retry_at = clock.monotonic() + RETRY_MS;
      throw error;
    });
  }

  async #text(): Promise<PageText> {
    const { cache, bundle } = this.#options;
    if (Deno.build.standalone) return JSON.parse(await Deno.readTextFile(new URL(BUILT, import.meta.url)));
    const { buildPage, readSources } = await import("./build.ts");
    const sources = await readSources();
    const cached = cache && await readCached(cache, sources.key);
    if (cached) return cached;
    const built = await buildPage(sources, bundle);
    if (cache) await writeCached(cache, built);
    return built;
  }
}

/** Resolves to the page in the cache; undefined if it was built from other sources, or cannot be read. */
async function readCached(cache: URL, key: string): Promise<PageText | undefined> {
  try {
    const found: unknown = JSON.parse(await Deno.readTextFile(new URL(BUILT, cache)));
    const valid = isObject(found) && found.key === key && typeof found.script === "string" &&
      typeof found.style === "string";
    return valid ? found as unknown as PageText : undefined;
  } catch {
    return undefined; // missing, unreadable or damaged: the page is built again
  }
}

/** Keeps the page for the next start. Without a writable disk, every start builds it. */
async function writeCached(cache: URL, page: PageText): Promise<void> {
  const temporary = new URL(`${BUILT}.${crypto.randomUUID()}`, cache);
  try {
    await Deno.mkdir(cache, { recursive: true, mode: 0o700 });
    await Deno.writeTextFile(temporary, JSON.stringify(page), { mode: 0o600, createNew: true });
    await Deno.rename(temporary, new URL(BUILT, cache)); // atomic
  } catch {
    await Deno.remove(temporary).catch(() => {}); // it may not exist
  }
}

async function loadedPage({ script, style }: PageText, basePath: string): Promise<LoadedPage> {
  const { gzipSync } = await import("node:zlib");
  const files = new Map<string, PageFile>();
  const add = (text: string, extension: string, type: string) => {
    const plain = new TextEncoder().encode(text);
    const name = `${digestOf(text)}.${extension}`;
    files.set(name, { type, plain, gzip: new Uint8Array(gzipSync(plain, { level: 9 })) });
    return `page/${name}`;
  };
  const html = htmlOf({
    script: add(script, "js", "text/javascript; charset=utf-8"),
    style: add(style, "css", "text/css; charset=utf-8"),
    basePath,
  });
  return { html, etag: `"${digestOf(html)}"`, files };
}

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}

/**
 * Returns the HTML. Without a base path all URLs are relative to the page, so that a proxy may add a prefix
 * which ends in a slash. With one, `/agents` and `/agents/` are both the page.
 */
function htmlOf({ script, style, basePath }: { script: string; style: string; basePath: string }): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Preamp</title>
${basePath === "" ? "" : `<base href="${escapeHtml(basePath)}/">\n`}\
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${style}">
<script type="module" src="${script}"></script>
</head><body><div id="app"></div>
<noscript>This page needs JavaScript. Without it, use the HTTP API: <a href="docs">documentation</a>.</noscript>
</body></html>
`;
}
