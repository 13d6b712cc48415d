/**
 * Disk cache of bundles: one file for each bundle, named by the hash of its inputs, and one for each pin that names its bundle. Damaged
 * files and files of other versions are ignored. Disk errors only cost time: nothing here throws.
 */
import type { ModuleBundle } from "../types.ts";

/** Version of the file format and of bundles. */
const FORMAT = "3";

/** Separator in a bundle's file: a line with the hash of the rest, a line of JSON, the code. */
const NEWLINE = 0x0a;

/** Folder of bundles with a limited size. */
export class DiskCache {
  readonly #folder: URL;
  readonly #max_bytes: number;
  #folder_created: Promise<unknown> | undefined;
  #written = 0;

  /** `folder` ends in a slash; it is created by the first write. */
  constructor(folder: URL, max_bytes: number) {
    this.#folder = new URL(`bundles-${FORMAT}/`, folder);
    this.#max_bytes = max_bytes;
  }

  /** Resolves to the bundle of a key (hex). */
  async get(key: string): Promise<ModuleBundle | undefined> {
    const bytes = await this.#read(`${key}.bundle`);
    if (bytes === undefined) return undefined;
    const start = bytes.indexOf(NEWLINE) + 1;
    const content = bytes.subarray(start);
    if (new TextDecoder().decode(bytes.subarray(0, start)) !== await hashLine(content)) return undefined;
    const end = content.indexOf(NEWLINE);
    const facts = JSON.parse(new TextDecoder().decode(content.subarray(0, end))); // the hash proves that this program wrote it
    return { ...facts, code: new TextDecoder().decode(content.subarray(end + 1)) };
  }

  /** Stores a bundle. */
  async set(key: string, bundle: ModuleBundle): Promise<void> {
    const { code, ...facts } = bundle;
    const content = new TextEncoder().encode(`${JSON.stringify(facts)}\n${code}`);
    await this.#write(`${key}.bundle`, [new TextEncoder().encode(await hashLine(content)), content]);
  }

  /** Resolves to the key of the bundle for a pin (hex). */
  async getPin(pin: string): Promise<string | undefined> {
    const key = new TextDecoder().decode(await this.#read(`${pin}.pin`));
    return /^[0-9a-f]{64}$/.test(key) ? key : undefined;
  }

  /** Stores the bundle's key for a pin. */
  async setPin(pin: string, key: string): Promise<void> {
    await this.#write(`${pin}.pin`, [new TextEncoder().encode(key)]);
  }

  async #read(name: string): Promise<Uint8Array<ArrayBuffer> | undefined> {
    try {
      return await Deno.readFile(new URL(name, this.#folder));
    } catch {
      return undefined; // missing or unreadable: a cache miss
    }
  }

  async #write(name: string, parts: readonly Uint8Array[]): Promise<void> {
    const temporary = new URL(`${name}.${crypto.randomUUID()}`, this.#folder);
    try {
      await (this.#folder_created ??= Deno.mkdir(this.#folder, { recursive: true, mode: 0o700 }));
      await Deno.writeFile(temporary, ReadableStream.from(parts), { mode: 0o600, createNew: true });
      await Deno.rename(temporary, new URL(name, this.#folder)); // atomic
      this.#written += parts.reduce((sum, { length }) => sum + length, 0);
      if (this.#written > this.#max_bytes / 8) await this.#prune();
    } catch {
      this.#folder_created = undefined;
      await Deno.remove(temporary).catch(() => {}); // it may not exist
    }
  }

  /** Removes the oldest files until the folder is within its limit. */
  async #prune(): Promise<void> {
    this.#written = 0;
    const files: { url: URL; size: number; age: number }[] = [];
    for await (const { name, isFile } of Deno.readDir(this.#folder)) {
      if (!isFile) continue;
      const url = new URL(name, this.#folder);
      const { size, mtime } = await Deno.stat(url);
      files.push({ url, size, age: mtime?.getTime() ?? 0 });
    }
    let total = files.reduce((sum, { size }) => sum + size, 0);
    for (const { url, size } of files.sort((a, b) => a.age - b.age)) {
      if (total <= this.#max_bytes) break;
      await Deno.remove(url);
      total -= size;
    }
  }
}

/** Returns the hash as a line. perf: computed off the main thread, since a bundle may have many megabytes. */
async function hashLine(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  return `${new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)).toHex()}\n`;
}
