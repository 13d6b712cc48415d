/**
 * What the person decided about the files of folders: one record for each folder, in `trust/` of
 * `$PREAMP_HOME`.
 */
import { sha256 } from "../../sdk/digest.ts";
import { isObject } from "../../sdk/json.ts";
import { replaceFile } from "../../settings/paths.ts";

/** Name of a file, as in `FolderFile` → digest of its bytes. */
export type Digests = Readonly<Record<string, string>>;

/** The decisions about one folder. */
export interface TrustRecord {
  /** Absolute path of the folder, without links. */
  readonly folder: string;
  /** ISO 8601. */
  readonly decided_at: string;
  /** Files that are used as long as they have these digests. */
  readonly trusted: Digests;
  /** Files that are ignored without a question as long as they have these digests. */
  readonly refused: Digests;
  /** Plans of the folder that `-p` named → digest of the sentence about them that was printed last. */
  readonly explained: Digests;
  /** Rules of calls that `preamp chat` does not ask about in this folder; absent: none. */
  readonly allowed?: readonly string[];
}

/** The records in the home folder. */
export class TrustRecords {
  readonly #folder: URL | null;

  /** @param home `$PREAMP_HOME`; null: nothing is kept. */
  constructor(home: URL | null) {
    this.#folder = home && new URL("trust/", home);
  }

  /** Whether records can be kept. */
  get lasting(): boolean {
    return this.#folder !== null;
  }

  /** Resolves to the record of a folder; an empty one if it has no readable one. */
  async read(folder: string): Promise<TrustRecord> {
    const url = this.#urlOf(folder);
    const record = url && await readRecord(url);
    return record?.folder === folder
      ? record
      : { folder, decided_at: "", trusted: {}, refused: {}, explained: {} };
  }

  /** Keeps a record in place of the folder's earlier one. @throws {UsageError} when it cannot be written. */
  async write(record: TrustRecord): Promise<void> {
    const url = this.#urlOf(record.folder);
    if (url) await replaceFile(url, `${JSON.stringify(record, null, 2)}\n`, url.pathname);
  }

  /** Removes the record of a folder. Resolves to whether there was one. */
  async remove(folder: string): Promise<boolean> {
    const url = this.#urlOf(folder);
    if (!url) return false;
    return await Deno.remove(url).then(() => true, (error) => {
      if (error instanceof Deno.errors.NotFound) return false;
      throw error;
    });
  }

  /** Resolves to the records of all folders, sorted by path. */
  async list(): Promise<TrustRecord[]> {
    const records: TrustRecord[] = [];
    if (this.#folder === null) return records;
    try {
      for await (const { name } of Deno.readDir(this.#folder)) {
        const record = name.endsWith(".json") ? await readRecord(new URL(name, this.#folder)) : null;
        if (record) records.push(record);
      }
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    }
    return records.sort((a, b) => a.folder < b.folder ? -1 : 1);
  }

  #urlOf(folder: string): URL | null {
    if (this.#folder === null) return null;
    const name = Uint8Array.fromBase64(sha256(folder).slice("sha256-".length)).toHex();
    return new URL(`${name}.json`, this.#folder);
  }
}

/** Reads a record; null: it does not exist, or it is damaged, which is as if nothing had been decided. */
async function readRecord(url: URL): Promise<TrustRecord | null> {
  try {
    const record: unknown = JSON.parse(await Deno.readTextFile(url));
    if (!isObject(record)) return null;
    const { folder, decided_at, trusted, refused, explained, allowed = [] } = record;
    const is_whole = typeof folder === "string" && typeof decided_at === "string" &&
      [trusted, refused, explained].every(isDigests) &&
      Array.isArray(allowed) && allowed.every((rule) => typeof rule === "string");
    return is_whole ? record as unknown as TrustRecord : null; // its fields were checked
  } catch {
    return null;
  }
}

function isDigests(value: unknown): boolean {
  return isObject(value) && Object.values(value).every((digest) => typeof digest === "string");
}
