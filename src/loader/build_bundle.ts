/**
 * From an entry to a bundle: finds the entry of a folder, bundles, and fetches what the bundler misses, until
 * the bundle is complete.
 */
import { PreampError } from "../sdk/errors.ts";
import { isObject } from "../sdk/json.ts";
import type { FileFetcher } from "./fetch/file_fetcher.ts";
import type { GraphPrefetcher } from "./fetch/prefetch.ts";
import { integrityOf, pathFrom } from "./integrity.ts";
import { displayUrl, problemError } from "./module_errors.ts";
import type {
  BundledCode,
  Bundler,
  BundlerClient,
  FetchedFile,
  GraphRequest,
  LoadContext,
  ModuleBundle,
} from "./types.ts";

/** Input of {@link buildBundle}. */
interface BuildInput {
  /** URL in the plan. */
  readonly requested: string;
  /** URL of the entry file, before redirects. */
  readonly entry: string;
  readonly graph: GraphPrefetcher;
  readonly bundler: Bundler;
  readonly client: BundlerClient;
  readonly context: Pick<LoadContext, "policy" | "base_url">;
  readonly signal: AbortSignal;
  /**
   * Resolves to the bundle of the graph's files, if it was built before. Called in each round, with the entry
   * after redirects.
   */
  known(entry: string): Promise<ModuleBundle | undefined>;
}

/**
 * Most rounds of bundling and fetching missing files. A graph whose imports the lexer does not find needs one
 * for each level.
 */
const MAX_ROUNDS = 64;

/** Resolves to the bundle of a graph. @throws {PreampError} as `Loader.load`. */
export async function buildBundle(
  { requested, entry: entry_url, graph, bundler, client, context, signal, known }: BuildInput,
): Promise<{ bundle: ModuleBundle; is_new: boolean }> {
  const { policy, base_url } = context;
  for (let round = 0; round < MAX_ROUNDS; round++) {
    signal.throwIfAborted();
    const refused = graph.failed.get(entry_url);
    if (refused) throw refused;
    const entry = graph.redirects.get(entry_url) ?? entry_url;
    const before = await known(entry);
    if (before) return { bundle: before, is_new: false };
    const answer = await bundler.bundle({
      entry,
      files: [...graph.files.values()].map(({ url, sha256, bytes }) => ({ url, sha256, bytes })),
      redirects: Object.fromEntries(graph.redirects),
      failed: Object.fromEntries([...graph.failed].map(([url, { message }]) => [url, message])),
      esm_host: policy.modules.esm_host,
    }, client);
    if (answer.kind === "problems") throw problemError(answer.problems, graph.failed, client.name, base_url);
    if (answer.kind === "bundle") {
      return { bundle: bundleOf(requested, entry, graph, answer), is_new: true };
    }
    await graph.fetch(answer.urls);
  }
  throw new PreampError(
    "module_invalid",
    `Cannot load ${client.name}: its imports are nested more than ${MAX_ROUNDS} levels deep`,
  );
}

/** Returns the bundle with its graph, which contains only the files that the bundler used. */
function bundleOf(
  requested: string,
  entry: string,
  graph: GraphPrefetcher,
  { kind: _, inputs, inline, ...bundled }: BundledCode,
): ModuleBundle {
  const fetched = [...inputs.flatMap((url) => graph.files.get(url) ?? []), ...graph.added];
  const files = [
    ...fetched.map(({ url, sha256, bytes }) => ({ url, sha256, bytes: bytes.length })),
    ...inline,
  ];
  const paths = new Map(files.map((file) => [file, pathFrom(entry, file.url, file.sha256)]));
  files.sort((a, b) => paths.get(a)! < paths.get(b)! ? -1 : 1); // paths are unique
  const used = new Set(inputs);
  const requests = graph.requests.filter(({ url }) => used.has(graph.redirects.get(url) ?? url));
  return { requested, url: entry, integrity: integrityOf(entry, files), files, requests, ...bundled };
}

/** Largest `deno.json` in bytes. */
const MAX_BYTES = 256 * 1024;

interface FolderEntry {
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
 * @throws {PreampError} `module_invalid` if `deno.json` is invalid; as `FileFetcher.fetch` if it exists and
 * cannot be fetched.
 */
export async function entryOfFolder(
  folder: string,
  fetcher: Pick<FileFetcher, "fetchIfThere">,
  base_url: string | undefined,
): Promise<FolderEntry> {
  const config = await fetcher.fetchIfThere(configUrl(folder), { as: "entry" });
  const exported = config ? exportOf(config, base_url) : undefined;
  return config && exported !== undefined
    ? { entry: { url: exported, from: config.url }, config, decides: true }
    : { entry: { url: new URL("mod.ts", folder).href }, config, decides: false };
}

/**
 * Returns the URL that a `deno.json` exports; undefined if it has no `exports`. @throws {PreampError}
 * `module_invalid`.
 */
function exportOf({ url, bytes }: FetchedFile, base_url: string | undefined): string | undefined {
  const problem = (fact: string, hint: string) => {
    const file = displayUrl(url, base_url);
    const message = `Cannot read ${file}: ${fact}`;
    const details = [{ path: file, file, message, hint }];
    return new PreampError("module_invalid", `${message}: ${hint}`, { details });
  };
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
