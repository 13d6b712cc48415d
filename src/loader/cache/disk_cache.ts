/**
 * Bundles that were made, on disk: a file for each, named by the hash of all that it depends on, and a file for each pin that
 * says which. Whatever is torn, altered or of another version is as if it were not there. A disk that fails is slower, never
 * wrong: nothing here throws.
 */
import type { ModuleBundle } from "../types.ts";

/** Changes whenever the form of these files or what bundles look like does. */
const FORMAT = "3";

/** A bundle's file is the hash of the rest, the facts as JSON, and the code; the first two are a line each. */
const NEWLINE = 0x0a;

/** A bounded folder of bundles. */
export class DiskCache {
  readonly #folder: URL;
  readonly #max_bytes: number;
  #folder_created: Promise<unknown> | undefined;
  #written = 0;

  /** `folder` ends in a slash; it is made when it is first written to. */
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
    const facts = JSON.parse(new TextDecoder().decode(content.subarray(0, end))); // its hash says that we wrote it
    return { ...facts, code: new TextDecoder().decode(content.subarray(end + 1)) };
  }

  /** Keeps a bundle under its key. */
  async set(key: string, bundle: ModuleBundle): Promise<void> {
    const { code, ...facts } = bundle;
    const content = new TextEncoder().encode(`${JSON.stringify(facts)}\n${code}`);
    await this.#write(`${key}.bundle`, [new TextEncoder().encode(await hashLine(content)), content]);
  }

  /** Resolves to the key that a pin (hex) stands for. */
  async getPin(pin: string): Promise<string | undefined> {
    const key = new TextDecoder().decode(await this.#read(`${pin}.pin`));
    return /^[0-9a-f]{64}$/.test(key) ? key : undefined;
  }

  /** Keeps what a pin stands for. */
  async setPin(pin: string, key: string): Promise<void> {
    await this.#write(`${pin}.pin`, [new TextEncoder().encode(key)]);
  }

  async #read(name: string): Promise<Uint8Array<ArrayBuffer> | undefined> {
    try {
      return await Deno.readFile(new URL(name, this.#folder));
    } catch {
      return undefined; // not there, or not to be read: the same to whoever asks
    }
  }

  async #write(name: string, parts: readonly Uint8Array[]): Promise<void> {
    const temporary = new URL(`${name}.${crypto.randomUUID()}`, this.#folder);
    try {
      await (this.#folder_created ??= Deno.mkdir(this.#folder, { recursive: true, mode: 0o700 }));
      await Deno.writeFile(temporary, ReadableStream.from(parts), { mode: 0o600, createNew: true });
      await Deno.rename(temporary, new URL(name, this.#folder)); // whole or not at all
      this.#written += parts.reduce((sum, { length }) => sum + length, 0);
      if (this.#written > this.#max_bytes / 8) await this.#prune();
    } catch {
      this.#folder_created = undefined;
      await Deno.remove(temporary).catch(() => {}); // it may never have been made
    }
  }

  /** Removes the oldest until the rest is within the bound. */
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

/** Away from this thread: a bundle may have many megabytes. */
async function hashLine(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  return `${new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)).toHex()}\n`;
}
