/**
 * The page, and the script and style of the documentation, as files to answer: from the executable, from the
 * cache on disk, or built by the first request. Kept in memory once they are there.
 */
import { createHash } from "node:crypto";
import type { BundleScript } from "../../app/page_bundle.ts";
import type { Clock } from "../../sdk/contracts.ts";
import { isObject } from "../../sdk/json.ts";
import { escapeHtml } from "../../text/escape.ts";
import type { BuiltPage, CompressedFile, PageName } from "./build.ts";

/** Milliseconds after a failed build until the next one. */
const RETRY_MS = 10_000;

/** One file of the page. */
export interface PageFile {
  readonly type: string;
  readonly gzip: Uint8Array<ArrayBuffer>;
  readonly br: Uint8Array<ArrayBuffer>;
}

/** The page, ready to answer. */
export interface LoadedPage {
  /** Paths of the script and the style below `/`. */
  readonly script: string;
  readonly style: string;
  /** Files by name, which contains the digest of the content. */
  readonly files: ReadonlyMap<string, PageFile>;
}

/** Options of {@link Page}. */
export interface PageOptions {
  readonly name: PageName;
  /** Folder of the cache on disk, as a URL that ends in a slash; null: memory only. */
  readonly cache: URL | null;
  /** Bundles the script. */
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
    const { clock } = this.#options;
    if (this.#page && clock.monotonic() < this.#retry_at) return this.#page;
    this.#retry_at = Infinity;
    return this.#page = this.#loaded().catch((error) => {
      this.#retry_at = clock.monotonic() + RETRY_MS;
      throw error;
    });
  }

  async #loaded(): Promise<LoadedPage> {
    const { name, cache, bundle } = this.#options;
    const ahead = new URL(`${name}.json`, import.meta.url); // written by the tasks `compile` and `page`
    if (Deno.build.standalone) return loadedPage(name, JSON.parse(await Deno.readTextFile(ahead)));
    const { buildPage, readSources } = await import("./build.ts");
    const sources = await readSources();
    const cached = cache && new URL(`${name}.json`, cache);
    for (const file of [ahead, cached]) {
      const found = file && await readBuilt(name, file, sources.key);
      if (found) return found;
    }
    const built = await buildPage(name, sources, bundle);
    if (cached) await writeCached(cached, built);
    return loadedPage(name, built);
  }
}

/** Resolves to the page in a file; undefined if it was built from other sources, or cannot be read. */
async function readBuilt(page: PageName, file: URL, key: string): Promise<LoadedPage | undefined> {
  try {
    const found: unknown = JSON.parse(await Deno.readTextFile(file));
    const valid = isObject(found) && found.key === key && isCompressed(found.script) &&
      isCompressed(found.style);
    return valid ? loadedPage(page, found as unknown as BuiltPage) : undefined;
  } catch {
    return undefined; // missing, unreadable or damaged: the page is built again
  }
}

function isCompressed(file: unknown): boolean {
  return isObject(file) && typeof file.gzip === "string" && typeof file.br === "string";
}

/** Keeps the page for the next start. Without a writable disk, every start builds it. */
async function writeCached(file: URL, page: BuiltPage): Promise<void> {
  const temporary = new URL(`${file.href}.${crypto.randomUUID()}`);
  try {
    await Deno.mkdir(new URL(".", file), { recursive: true, mode: 0o700 });
    await Deno.writeTextFile(temporary, JSON.stringify(page), { mode: 0o600, createNew: true });
    await Deno.rename(temporary, file); // atomic
  } catch {
    await Deno.remove(temporary).catch(() => {}); // it may not exist
  }
}

function loadedPage(page: PageName, { script, style }: BuiltPage): LoadedPage {
  const files = new Map<string, PageFile>();
  const add = ({ gzip, br }: CompressedFile, extension: string, type: string) => {
    const digest = createHash("sha256").update(br).digest("hex").slice(0, 16);
    const name = `${page}.${digest}.${extension}`;
    files.set(name, { type, gzip: Uint8Array.fromBase64(gzip), br: Uint8Array.fromBase64(br) });
    return `page/${name}`;
  };
  return {
    script: add(script, "js", "text/javascript; charset=utf-8"),
    style: add(style, "css", "text/css; charset=utf-8"),
    files,
  };
}

/**
 * Returns the HTML of the page. Without a base path all URLs are relative, so that a proxy may add a prefix
 * which ends in a slash. With one, `/agents` and `/agents/` are both the page. The header is drawn before the
 * script is there, which takes it over.
 */
export function pageHtml({ script, style }: LoadedPage, basePath: string): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Preamp</title>
${basePath === "" ? "" : `<base href="${escapeHtml(basePath)}/">\n`}\
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${style}">
<script type="module" src="${script}"></script>
</head><body><div id="app"><div class="shell"><header class="top"><h1>preamp</h1></header></div></div>
<noscript>This page needs JavaScript. Without it, use the HTTP API: <a href="docs">documentation</a>.</noscript>
</body></html>
`;
}
