/**
 * Finds a module or file in a lock by normalised URL. A fragment, dot segments, an empty query, an explicit
 * default port or an escape such as `%6D` must not bypass the lock. Pure.
 */
import type { Source } from "../sdk/plan.ts";
import { isInline, type Lock, type LockedFile, type LockedModule, lockedSource } from "./lock.ts";
import { parseSource } from "./source/source.ts";

/** An index of a lock for the plans of one folder. */
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
    const base = this.#base_url;
    const url = URL.canParse(key)
      ? key
      : base !== undefined && URL.canParse(key, base)
      ? new URL(key, base).href
      : key;
    return normalUrl(url);
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
