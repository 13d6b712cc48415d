/** Reads the files of an import within its bounds, each once. Reading itself is the host's. */
import { PreampError } from "../sdk/errors.ts";
import { type Place, type Root, show, urlOf } from "./places.ts";

/** Reads files for an import. It decides what may be read, and never follows a link out of a root. */
export interface FileReader {
  /**
   * Resolves to a file's bytes; null if it does not exist, or is a folder.
   * @throws {PreampError} if it may not be read, or has more than `max_bytes`.
   */
  read(url: string, root: Root, max_bytes: number): Promise<Uint8Array | null>;
  /** Resolves to the names in a folder, folders with a slash; null if it has none or cannot be listed. */
  list(url: string, root: Root): Promise<string[] | null>;
}

/** Bounds of one import. */
export const IMPORT_LIMITS = {
  /** Includes below each other. */
  depth: 32,
  bundles: 256,
  /** References to bundles, also to the same one. */
  includes: 2_000,
  files: 1_000,
  file_bytes: 1_000_000,
  total_bytes: 20_000_000,
  /** Characters of all texts for models. */
  prompt_chars: 20_000_000,
} as const;

/** Most files that are looked for: most references may be one of several. */
const MAX_LOOKUPS = 8 * IMPORT_LIMITS.files;

/** The files of one import. */
export class BundleFiles {
  readonly #reader: FileReader;
  readonly #read = new Map<string, Promise<string | null>>();
  #count = 0;
  #bytes = 0;

  constructor(reader: FileReader) {
    this.#reader = reader;
  }

  /** Resolves to a file's text; null if it does not exist. @throws {PreampError} beyond a bound. */
  read(place: Place): Promise<string | null> {
    const url = urlOf(place);
    let text = this.#read.get(url);
    if (!text) {
      if (this.#read.size >= MAX_LOOKUPS) {
        throw beyond(place, `more than ${MAX_LOOKUPS} files are looked for`);
      }
      this.#read.set(url, text = this.#readNew(url, place));
    }
    return text;
  }

  async #readNew(url: string, place: Place): Promise<string | null> {
    const { files, file_bytes, total_bytes } = IMPORT_LIMITS;
    const bytes = await this.#reader.read(url, place.root, file_bytes);
    if (bytes === null) return null;
    this.#bytes += bytes.length;
    if (bytes.length > file_bytes) throw beyond(place, `it has more than ${file_bytes} bytes`);
    if (this.#count >= files) throw beyond(place, `the bundle has more than ${files} files`);
    if (this.#bytes > total_bytes) throw beyond(place, `its files have more than ${total_bytes} bytes`);
    this.#count++;
    try {
      return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    } catch (cause) {
      throw new PreampError("plan_invalid", `Cannot import ${show(place)}: it is not UTF-8 text`, { cause });
    }
  }

  /** Resolves to the names in a folder, sorted; null if it has none or cannot be listed. */
  async list({ root, path }: Place): Promise<string[] | null> {
    const names = await this.#reader.list(urlOf({ root, path: path === "" ? "" : `${path}/` }), root);
    return names?.toSorted() ?? null;
  }
}

function beyond(place: Place, fact: string): PreampError {
  return new PreampError(
    "plan_limit_exceeded",
    `Cannot import ${show(place)}: ${fact}: import a smaller part of the bundle`,
  );
}
