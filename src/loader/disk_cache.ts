/**
 * Bundles that were made, on disk: a file for each, named by the hash of all that it depends on, and a file for each pin that
 * says which. Whatever is torn, altered or of another version is as if it were not there. A disk that fails is slower, never
 * wrong: nothing here throws.
 */
import { createHash } from "node:crypto";
import { isObject } from "../sdk/json.ts";
import type { ModuleBundle } from "./types.ts";

/** Changes whenever the form of these files or what bundles look like does. */
const FORMAT = "1";

/** A bounded folder of bundles. */
export class DiskCache {
  readonly #folder: URL;
  readonly #max_bytes: number;
  #made: Promise<unknown> | undefined;
  #written = 0;

  /** `folder` ends in a slash; it is made when it is first written to. */
  constructor(folder: URL, max_bytes: number) {
    this.#folder = new URL(`bundles-${FORMAT}/`, folder);
    this.#max_bytes = max_bytes;
  }

  /** Resolves to the bundle of a key (hex). */
  async get(key: string): Promise<ModuleBundle | undefined> {
    const text = await this.#read(`${key}.json`);
    if (text === undefined) return undefined;
    const end = text.indexOf("\n");
    if (text.slice(0, end) !== sha256(text.slice(end + 1))) return undefined;
    const bundle: unknown = JSON.parse(text.slice(end + 1)); // its hash says that we wrote it
    return isObject(bundle) && typeof bundle.code === "string"
      ? bundle as unknown as ModuleBundle
      : undefined;
  }

  /** Keeps a bundle under its key. */
  async set(key: string, bundle: ModuleBundle): Promise<void> {
    const text = JSON.stringify(bundle);
    await this.#write(`${key}.json`, `${sha256(text)}\n${text}`);
  }

  /** Resolves to the key that a pin (hex) stands for. */
  async follow(pin: string): Promise<string | undefined> {
    const key = await this.#read(`${pin}.pin`);
    return key !== undefined && /^[0-9a-f]{64}$/.test(key) ? key : undefined;
  }

  /** Keeps what a pin stands for. */
  async point(pin: string, key: string): Promise<void> {
    await this.#write(`${pin}.pin`, key);
  }

  async #read(name: string): Promise<string | undefined> {
    try {
      return await Deno.readTextFile(new URL(name, this.#folder));
    } catch {
      return undefined; // not there, or not to be read: the same to whoever asks
    }
  }

  async #write(name: string, text: string): Promise<void> {
    const temporary = new URL(`${name}.${crypto.randomUUID()}`, this.#folder);
    try {
      await (this.#made ??= Deno.mkdir(this.#folder, { recursive: true, mode: 0o700 }));
      await Deno.writeTextFile(temporary, text, { mode: 0o600, createNew: true });
      await Deno.rename(temporary, new URL(name, this.#folder)); // whole or not at all
      this.#written += text.length;
      if (this.#written > this.#max_bytes / 8) await this.#prune();
    } catch {
      this.#made = undefined;
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

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
