/**
 * The entry file of a folder: what its `deno.json` exports, else `mod.ts`. A `deno.json` that decides is a part of the module's
 * graph, so that digest and lock cover it: another one, or none, is another graph.
 */
import { PreampError } from "../../sdk/errors.ts";
import { isObject } from "../../sdk/json.ts";
import type { FileFetcher } from "./file_fetcher.ts";
import { displayUrl } from "../display_url.ts";
import type { FetchedFile, GraphRequest } from "../types.ts";

/** Bytes of a `deno.json` that is read. */
const MAX_BYTES = 256 * 1024;

/** Where a folder's module begins. */
export interface FolderEntry {
  readonly entry: GraphRequest;
  /** The folder's `deno.json`; null when there is none. */
  readonly config: FetchedFile | null;
  /** Whether it says what the entry is. */
  readonly decides: boolean;
}

/** Returns the URL of the file that may say which file of a folder is the entry. */
export function configUrl(folder: string): string {
  return new URL("deno.json", folder).href;
}

/**
 * Resolves to the entry of a folder, a URL that ends in a slash.
 * @throws {PreampError} `module_invalid` when its `deno.json` cannot be read; as `FileFetcher.fetch` for any failure but its
 * absence.
 */
export async function entryOfFolder(
  folder: string,
  fetcher: Pick<FileFetcher, "fetchIfThere">,
  base_url: string | undefined,
): Promise<FolderEntry> {
  const standard = { url: new URL("mod.ts", folder).href };
  const config = await fetcher.fetchIfThere(configUrl(folder), { as: "entry" });
  if (!config) return { entry: standard, config, decides: false };
  const exported = exportOf(config, (fact, hint) => {
    const file = displayUrl(config.url, base_url);
    const message = `Cannot read ${file}: ${fact}`;
    const details = [{ path: file, file, message, hint }];
    return new PreampError("module_invalid", `${message}: ${hint}`, { details });
  });
  return exported === undefined
    ? { entry: standard, config, decides: false }
    : { entry: { url: exported, from: config.url }, config, decides: true };
}

function exportOf(
  { url, bytes }: FetchedFile,
  problem: (fact: string, hint: string) => PreampError,
): string | undefined {
  if (bytes.length > MAX_BYTES) {
    throw problem(`it has ${bytes.length} bytes`, `a module's deno.json may have ${MAX_BYTES}`);
  }
  let data: unknown;
  try {
    data = JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    throw problem("it is not JSON", "write JSON without comments, or name the module's file itself");
  }
  const exports = isObject(data) ? data.exports : undefined;
  if (exports === undefined) return undefined;
  const main = isObject(exports) ? exports["."] : exports;
  if (typeof main !== "string" || !main.startsWith("./")) {
    throw problem('"exports" names no file', 'write "exports": "./mod.ts", or {".": "./mod.ts"}');
  }
  const entry = new URL(main, url);
  if (!entry.href.startsWith(new URL(".", url).href)) {
    throw problem('"exports" leads out of its folder', 'write "exports": "./mod.ts"');
  }
  entry.hash = "";
  return entry.href;
}
