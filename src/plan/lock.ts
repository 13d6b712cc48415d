/**
 * Reads, writes and merges `plan.lock.json`, which pins the bytes of a plan's modules
 * (src/docs/plan.md#lock), and finds modules and files in it. The loader compares fetched files with it.
 *
 * ```json
 * {
 *   "version": 1,
 *   "modules": {"<source>": {"url", "integrity"}},
 *   "files": {"<url>": {"sha256": "<hex>", "bytes": n}},
 *   "servers": {"<MCP server>": {"<tool>": {"sha256": "<hex>", "parameters": ["<name>"]}}},
 *   "texts": {"<file>": {"sha256": "<hex>", "bytes": n}}
 * }
 * ```
 */
import { type ErrorDetail, PreampError } from "../sdk/errors.ts";
import type { JsonObject } from "../sdk/json.ts";
import { type PinnedTool, type PinnedTools, toolChanges } from "../sdk/pinned_tools.ts";
import type { Source } from "../sdk/plan.ts";
import type { PlanText } from "./compile.ts";
import { isIntegrity } from "./check/check_spec.ts";
import { fitting, object, texts } from "./check/field_checks.ts";
import { checkKeys, Findings } from "../sdk/findings.ts";
import { documentError, type Locate, toDetail } from "./check/findings.ts";
import type { DocumentLimits } from "./parse/document_limits.ts";
import { describe, type Path } from "../sdk/value_path.ts";
import { parseSource } from "./source/source.ts";

/** A parsed lock. */
export interface Lock {
  readonly version: 1;
  /** Keyed by the source as the plan writes it. */
  readonly modules: Readonly<Record<string, LockedModule>>;
  /** Keyed by {@link lockedName} of the URL after redirects. */
  readonly files: Readonly<Record<string, LockedFile>>;
  /** MCP server → name of a tool → its definition. */
  readonly servers: Readonly<Record<string, PinnedTools>>;
  /** Files whose texts steer the model, keyed as `files`. */
  readonly texts: Readonly<Record<string, LockedFile>>;
}

interface LockedModule {
  /** URL of the entry file, after redirects. */
  readonly url: string;
  /** Integrity of the module's graph. */
  readonly integrity: string;
}

export interface LockedFile {
  /** Lower-case hex SHA-256 of the file's decoded bytes. */
  readonly sha256: string;
  readonly bytes: number;
}

/** Limits of a lock's text: 64 modules of 500 files each fit. */
const LOCK_LIMITS: Readonly<DocumentLimits> = {
  max_bytes: 8 * 1024 * 1024,
  max_nodes: 120_000,
  max_depth: 6,
  max_aliases: 0,
};

const KEYS: ReadonlySet<string> = new Set(["version", "modules", "files", "servers", "texts"]);
const MODULE_KEYS: ReadonlySet<string> = new Set(["url", "integrity"]);
const TOOL_KEYS: ReadonlySet<string> = new Set(["sha256", "parameters"]);
const FILE_KEYS: ReadonlySet<string> = new Set(["sha256", "bytes"]);

/**
 * Parses the text of a lock.
 *
 * @param options `name`: name of the lock in errors; default `plan.lock.json`.
 * @throws {PreampError} `lock_invalid` with every finding, its line and column.
 */
export async function parseLock(text: string, options: { name?: string } = {}): Promise<Lock> {
  const label = `the lock "${options.name ?? "plan.lock.json"}"`;
  try {
    const { parseDocument } = await import("./parse/parse.ts");
    const { data, locate } = await parseDocument(text, { label, limits: LOCK_LIMITS });
    return readLock(data, label, locate);
  } catch (error) {
    if (!(error instanceof PreampError) || error.code === "lock_invalid") throw error;
    throw new PreampError("lock_invalid", error.message, { details: error.details, cause: error });
  }
}

/** Returns the lock in JSON data, such as the `lock` of a request. @throws {PreampError} `lock_invalid`. */
export function lockFromData(data: JsonObject): Lock {
  return readLock(data, "the lock", undefined);
}

function readLock(data: JsonObject, label: string, locate: Locate | undefined): Lock {
  const findings = new Findings();
  checkKeys(data, KEYS, [], findings, "warning"); // a later version may have more keys
  if (data.version !== 1) {
    const message = `Cannot read version: must be 1: received ${describe(data.version)}`;
    findings.error(["version"], "value", message, "recreate it with preamp plan lock --prune");
  }
  const modules: Record<string, LockedModule> = Object.create(null);
  const files: Record<string, LockedFile> = Object.create(null);
  const servers: Record<string, Record<string, PinnedTool>> = Object.create(null);
  const texts: Record<string, LockedFile> = Object.create(null);
  for (const [source, value] of entriesOf(data, "modules", findings)) {
    const module = readModule(value, ["modules", source], findings);
    if (module) modules[source] = module;
  }
  for (const [url, value] of entriesOf(data, "files", findings)) {
    const file = readFile(value, ["files", url], findings);
    if (file) files[url] = file;
  }
  // a lock of an earlier version has neither texts nor servers
  for (const [path, value] of data.texts === undefined ? [] : entriesOf(data, "texts", findings)) {
    const file = readFile(value, ["texts", path], findings);
    if (file) texts[path] = file;
  }
  for (const [name] of data.servers === undefined ? [] : entriesOf(data, "servers", findings)) {
    const tools: Record<string, PinnedTool> = servers[name] = Object.create(null);
    const fields = object((data.servers as JsonObject)[name], ["servers", name], findings) ?? {};
    for (const [tool, value] of Object.entries(fields)) {
      const locked = readTool(value, ["servers", name, tool], findings);
      if (locked) tools[tool] = locked;
    }
  }
  if (findings.errors.length > 0) {
    const details: ErrorDetail[] = findings.errors.map((finding) => toDetail(finding, locate));
    throw documentError("lock_invalid", label, details);
  }
  return { version: 1, modules, files, servers, texts };
}

function entriesOf(data: JsonObject, key: string, findings: Findings): [string, unknown][] {
  const fields = object(data[key], [key], findings, "recreate it with preamp plan lock --prune");
  return fields ? Object.entries(fields) : [];
}

function readModule(value: unknown, path: Path, findings: Findings): LockedModule | undefined {
  const fields = object(value, path, findings);
  if (!fields) return undefined;
  checkKeys(fields, MODULE_KEYS, path, findings, "warning");
  const { url, integrity } = fields;
  if (typeof url !== "string" || !URL.canParse(url, "file:///")) {
    findings.error([...path, "url"], "value", `Cannot read url: must be a URL: received ${describe(url)}`);
    return undefined;
  }
  if (typeof integrity !== "string" || !isIntegrity(integrity)) {
    const message = `Cannot read integrity: must be "sha256-" and base64: received ${describe(integrity)}`;
    findings.error([...path, "integrity"], "value", message);
    return undefined;
  }
  return { url, integrity };
}

function readFile(value: unknown, path: Path, findings: Findings): LockedFile | undefined {
  const fields = object(value, path, findings);
  if (!fields) return undefined;
  checkKeys(fields, FILE_KEYS, path, findings, "warning");
  const bytes = fitting<number>(fields.bytes, { type: "integer", minimum: 0 }, [...path, "bytes"], findings);
  const sha256 = readHash(fields.sha256, [...path, "sha256"], findings);
  return bytes === undefined || sha256 === undefined ? undefined : { sha256, bytes };
}

function readTool(value: unknown, path: Path, findings: Findings): PinnedTool | undefined {
  const fields = object(value, path, findings);
  if (!fields) return undefined;
  checkKeys(fields, TOOL_KEYS, path, findings, "warning");
  const sha256 = readHash(fields.sha256, [...path, "sha256"], findings);
  const parameters = texts(fields.parameters, [...path, "parameters"], findings);
  return sha256 === undefined || parameters === undefined ? undefined : { sha256, parameters };
}

function readHash(value: unknown, path: Path, findings: Findings): string | undefined {
  if (typeof value === "string" && /^[0-9a-f]{64}$/.test(value)) return value;
  const message = `Cannot read sha256: must be 64 lower-case hex letters: received ${describe(value)}`;
  findings.error(path, "value", message);
  return undefined;
}

/** The graph of one module, as input of `lockOf`. */
interface LockedGraph {
  source: Source;
  url: string;
  integrity: string;
  files: readonly { url: string; sha256: string; bytes: number }[];
}

/**
 * Returns the lock of the given graphs, independent of their order.
 *
 * @param base_url URL of the plan file. Local files are named relative to it, so that the lock remains
 * valid when the folder moves.
 */
export function lockOf(
  graphs: readonly LockedGraph[],
  base_url?: string,
  servers: Lock["servers"] = {},
  plan_texts: readonly PlanText[] = [],
): Lock {
  const modules = graphs.map(({ source, url, integrity }) =>
    [lockedSource(source), { url: lockedName(url, base_url), integrity }] as const
  );
  const files = graphs.flatMap((graph) =>
    graph.files.filter(({ url }) => !isInline(url)).map(({ url, sha256, bytes }) =>
      [lockedName(url, base_url), { sha256, bytes }] as const
    )
  );
  const tools = Object.entries(servers);
  return {
    version: 1,
    modules: sorted(modules),
    files: sorted(files),
    servers: sorted(tools),
    texts: lockedTexts(plan_texts, base_url),
  };
}

/** Returns the texts of a plan as a lock has them. */
function lockedTexts(texts: readonly PlanText[], base_url: string | undefined): Record<string, LockedFile> {
  return sorted(
    texts.map(({ url, sha256, bytes }) => [lockedName(url, base_url), { sha256, bytes }] as const),
  );
}

/** Returns the texts that a lock lacks (without a lock: all), and those that it contradicts, by name. */
export function checkTexts(
  lock: Lock | undefined,
  texts: readonly PlanText[],
  base_url: string | undefined,
): { missing: string[]; changed: string[] } {
  const names = Object.entries(lockedTexts(texts, base_url));
  const known = (name: string) => lock && Object.hasOwn(lock.texts, name) ? lock.texts[name] : undefined;
  return {
    missing: names.filter(([name]) => !known(name)).map(([name]) => name),
    changed: names.filter(([name, { sha256 }]) => known(name) && known(name)?.sha256 !== sha256)
      .map(([name]) => name),
  };
}

/**
 * Returns `fresh` plus the entries that only `kept` has. Plans of one folder share a lock, and each writes
 * its own part.
 */
export function lockOver(fresh: Lock, kept: Lock): Lock {
  return {
    version: 1,
    modules: sorted(Object.entries({ ...kept.modules, ...fresh.modules })),
    files: sorted(Object.entries({ ...kept.files, ...fresh.files })),
    servers: sorted(Object.entries({ ...kept.servers, ...fresh.servers })),
    texts: sorted(Object.entries({ ...kept.texts, ...fresh.texts })),
  };
}

/**
 * Returns one sentence for each entry of `fresh` that `lock` lacks or contradicts; empty if `lock` contains
 * all of `fresh`.
 */
export function lockDifferences(lock: Lock, fresh: Lock): string[] {
  const differences: string[] = [];
  for (const [source, { url, integrity }] of Object.entries(fresh.modules)) {
    const known = Object.hasOwn(lock.modules, source) ? lock.modules[source] : undefined;
    if (!known) differences.push(`${source} is not in the lock`);
    else if (known.integrity !== integrity) {
      differences.push(`${source} is ${integrity}, but the lock has ${known.integrity}`);
    } else if (known.url !== url) differences.push(`${source} is at ${url}, but the lock has ${known.url}`);
  }
  for (const [url, { sha256, bytes }] of Object.entries(fresh.files)) {
    const known = Object.hasOwn(lock.files, url) ? lock.files[url] : undefined;
    if (!known) differences.push(`${url} is not in the lock`);
    else if (known.sha256 !== sha256) {
      differences.push(`${url} has other bytes: ${bytes}, but the lock has ${known.bytes}`);
    }
  }
  for (const [path, { sha256 }] of Object.entries(fresh.texts)) {
    const known = Object.hasOwn(lock.texts, path) ? lock.texts[path] : undefined;
    if (!known) differences.push(`the text ${path} is not in the lock`);
    else if (known.sha256 !== sha256) differences.push(`the text ${path} has changed`);
  }
  for (const [name, tools] of Object.entries(fresh.servers)) {
    const known = Object.hasOwn(lock.servers, name) ? lock.servers[name] : undefined;
    if (known) differences.push(...toolChanges(name, known, tools));
    else differences.push(`the tools of \`${name}\` are not in the lock`);
  }
  return differences;
}

/**
 * Returns the key of a module in a lock: the source as written, or the URL where the source alone is
 * ambiguous.
 */
export function lockedSource(source: Source): string {
  if (source.kind === "builtin") return "";
  // the dictionary form of a git source has its ref beside the URL
  if (source.kind === "url" && source.via === "git" && !source.original.startsWith("git+")) return source.url;
  return source.original;
}

/** Returns the key of a file in a lock: its URL, or for a local file its path relative to the plan. */
export function lockedName(url: string, base_url: string | undefined): string {
  if (!url.startsWith("file:") || !base_url?.startsWith("file:")) return url;
  const from = new URL(".", base_url).pathname.split("/").slice(1, -1);
  const to = new URL(url).pathname.split("/").slice(1);
  let same = 0;
  while (same < from.length && same < to.length - 1 && from[same] === to[same]) same++;
  const up = from.slice(same).map(() => "..");
  return [...(up.length > 0 ? up : ["."]), ...to.slice(same)].join("/");
}

/** Returns true for `data:` and `blob:` code. The hash of the file or plan that contains it covers it. */
export function isInline(url: string): boolean {
  return url.startsWith("data:");
}

/** Returns the text of `plan.lock.json`. Keys are sorted, so that a change is a small diff. */
export function formatLock(lock: Lock): string {
  const empty = { version: 1, modules: {}, files: {}, servers: {}, texts: {} } as const;
  const { servers, texts, ...rest } = lockOver(lock, empty);
  const written = {
    ...rest,
    ...(Object.keys(servers).length === 0 ? {} : { servers }),
    ...(Object.keys(texts).length === 0 ? {} : { texts }),
  };
  return `${JSON.stringify(written, null, 2)}\n`;
}

function sorted<Value>(entries: readonly (readonly [string, Value])[]): Record<string, Value> {
  return Object.fromEntries(entries.toSorted(([a], [b]) => a < b ? -1 : a > b ? 1 : 0));
}

/**
 * An index of a lock for the plans of one folder, by normalised URL: a fragment, dot segments, an empty
 * query, an explicit default port or an escape such as `%6D` must not bypass the lock.
 */
export class LockLookup {
  readonly #lock: Lock;
  readonly #base_url: string | undefined;
  readonly #modules = new Map<string, LockedModule[]>();
  readonly #files = new Map<string, LockedFile[]>();

  private constructor(lock: Lock, base_url: string | undefined) {
    this.#lock = lock;
    this.#base_url = base_url;
    const options = base_url === undefined ? {} : { base_url };
    for (const [key, module] of Object.entries(lock.modules)) {
      const parsed = parseSource(key, options);
      if ("source" in parsed) add(this.#modules, keyOf(parsed.source), module);
    }
    for (const [key, file] of Object.entries(lock.files)) add(this.#files, this.#fileKey(key), file);
  }

  /** Returns the index of a lock. The same lock and folder give the same object. */
  static of(lock: Lock, base_url: string | undefined): LockLookup {
    const known = lookups.get(lock);
    if (known && known.#base_url === base_url) return known;
    const lookup = new LockLookup(lock, base_url);
    lookups.set(lock, lookup);
    return lookup;
  }

  /** Returns the lock's entries for a source; several if the lock has it in several spellings. */
  modulesOf(source: Source): readonly LockedModule[] {
    const key = lockedSource(source);
    const exact = Object.hasOwn(this.#lock.modules, key) ? this.#lock.modules[key] : undefined;
    const found = this.#modules.get(keyOf(source)) ?? [];
    return exact && !found.includes(exact) ? [exact, ...found] : found;
  }

  /** Returns the lock's entries for a file; several if the lock has it in several spellings. */
  filesAt(url: string): readonly LockedFile[] {
    return this.#files.get(this.#fileKey(url)) ?? [];
  }

  /** Returns the lookup key of a file. Keys of local files are paths relative to the plan's folder. */
  #fileKey(key: string): string {
    if (isPlain(key)) return key;
    return normalUrl(URL.canParse(key) ? key : URL.parse(key, this.#base_url)?.href ?? key);
  }
}

const lookups = new WeakMap<Lock, LockLookup>();

function add<Value>(table: Map<string, Value[]>, key: string, value: Value): void {
  const known = table.get(key);
  if (known) known.push(value);
  else table.set(key, [value]);
}

function keyOf(source: Source): string {
  if (source.kind !== "url") return lockedSource(source);
  return `${source.folder ? "folder " : ""}${normalUrl(source.url)}`; // a folder may have another entry file
}

/**
 * Returns true for a URL that has one spelling only, as almost all keys of a lock, so that it need not be
 * parsed.
 */
function isPlain(text: string): boolean {
  return /^https:\/\/(?:[a-z0-9-]+\.)*[a-z][a-z0-9-]*\/[\w@~/.-]*$/.test(text) && !text.includes("/.");
}

/** Returns the normal form of a URL for comparison (RFC 3986 §6.2). Other text is returned unchanged. */
export function normalUrl(text: string): string {
  if (isPlain(text) || isInline(text) || !URL.canParse(text)) return text;
  const { protocol, hostname, port, pathname, search } = new URL(text); // `URL` has normalised case, dot segments and port
  const host = hostname.endsWith(".") ? hostname.slice(0, -1) : hostname;
  const query = search === "" ? "" : `?${decoded(search.slice(1), "&=+#%;")}`;
  return `${protocol}//${host}${port === "" ? "" : `:${port}`}${decoded(pathname, "/\\?#%")}${query}`;
}

/** Decodes escapes, except those of characters that would change the meaning of the URL. */
function decoded(text: string, kept: string): string {
  return text.replace(/(?:%[0-9a-f]{2})+/gi, (escapes) => {
    const letters = textOf(escapes);
    if (letters === undefined) return escapes.toUpperCase();
    return [...letters].map((letter) =>
      kept.includes(letter) || letter < "!" ? encodeURIComponent(letter) : letter
    )
      .join("");
  });
}

function textOf(escapes: string): string | undefined {
  try {
    return decodeURIComponent(escapes);
  } catch {
    return undefined; // not UTF-8
  }
}
