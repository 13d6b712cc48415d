/**
 * Finds the entry file of a folder: the one that its `deno.json` exports, else `mod.ts`. A `deno.json` that names the entry belongs
 * to the module's graph, so that digest and lock cover it.
 */
import { PreampError } from "../../sdk/errors.ts";
import { isObject } from "../../sdk/json.ts";
import type { FileFetcher } from "./file_fetcher.ts";
import { displayUrl } from "../display_url.ts";
import type { FetchedFile, GraphRequest } from "../types.ts";

/** Largest `deno.json` in bytes. */
const MAX_BYTES = 256 * 1024;

/** Entry of a folder. */
export interface FolderEntry {
  readonly entry: GraphRequest;
  /** The folder's `deno.json`; null if it does not exist. */
  readonly config: FetchedFile | null;
  /** Whether `deno.json` names the entry. */
  readonly decides: boolean;
}

/** Returns the URL of a folder's `deno.json`. */
export function configUrl(folder: string): string {
  return new URL("deno.json", folder).href;
}

/**
 * Resolves to the entry of a folder, whose URL ends in a slash.
 * @throws {PreampError} `module_invalid` if `deno.json` is invalid; as `FileFetcher.fetch` if it exists and cannot be fetched.
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
    throw problem("it is not valid JSON", "write JSON without comments, or name the module's file itself");
  }
  const exports = isObject(data) ? data.exports : undefined;
  if (exports === undefined) return undefined;
  const main = isObject(exports) ? exports["."] : exports;
  if (typeof main !== "string" || !main.startsWith("./")) {
    throw problem('"exports" does not name a file', 'write "exports": "./mod.ts", or {".": "./mod.ts"}');
  }
  const entry = new URL(main, url);
  if (!entry.href.startsWith(new URL(".", url).href)) {
    throw problem('"exports" names a file outside of its folder', 'write "exports": "./mod.ts"');
  }
  entry.hash = "";
  return entry.href;
}
