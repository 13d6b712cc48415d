/**
 * What a folder brings: the files of the folder in which a command is started that would act without being
 * named. This file alone looks for them; `folder.ts` decides which of them are used.
 */
import { sha256 } from "../../sdk/digest.ts";
import type { JsonObject } from "../../sdk/json.ts";
import { isWithinFolder } from "../../sdk/paths.ts";
import { LOCK_FILE, PLAN_ENDINGS } from "../../app/named_plans.ts";
import { UsageError } from "../arguments.ts";
import { filePath, locate } from "../../settings/paths.ts";

/**
 * A kind of file:
 *
 * - `settings`: `preamp.yaml`, for every command that has settings.
 * - `variables`: `.env`, for `run` and `chat`.
 * - `sources`: `.preamp/sources.yaml`, for every command that loads modules.
 * - `plans`: plans and their lock in `plans/`, or in the folder that these settings name; for `run` without a
 *   plan or with the name of one, and for servers.
 */
export type FolderFileKind = "settings" | "variables" | "sources" | "plans";

/** The settings file of a folder. */
export const SETTINGS_FILE = "preamp.yaml";
/** The source overrides of a folder. */
export const SOURCES_FILE = ".preamp/sources.yaml";
/** The variables of a folder. */
export const VARIABLES_FILE = ".env";
/** The plans of a folder, unless its settings name others. */
const PLANS_FOLDER = "plans/";

/** A file that a folder brings, as it was read: its bytes are those that are used. */
export interface FolderFile {
  readonly kind: FolderFileKind;
  /** Path relative to the folder, or absolute for a file outside of it. */
  readonly name: string;
  readonly url: URL;
  /** Its bytes; null for a file that is too large or may not be read. */
  readonly bytes: Uint8Array | null;
  /** Digest of its bytes; empty for a file that was not read. */
  readonly digest: string;
  /** Path of the file outside of the folder that a link leads to. */
  readonly leads_to?: string;
}

/** Most bytes of one file. */
const MAX_BYTES = 1024 * 1024;
/** Most files of plans. */
const MAX_FILES = 1_000;

/** The files of one folder. Each is read once. */
export class FolderFiles {
  /** The folder, with a slash at the end. */
  readonly url: URL;
  /** Its absolute path without links. */
  readonly path: string;
  /** Absolute path of the person's own files, which are not the folder's; null: unknown. */
  readonly #home: string | null;
  readonly #read = new Map<string, Promise<FolderFile | null>>();
  #settings_data: Promise<JsonObject> | undefined;

  private constructor(url: URL, path: string, home: string | null) {
    this.url = url;
    this.path = path;
    this.#home = home;
  }

  /**
   * Opens a folder. Reads nothing.
   *
   * @param home `$PREAMP_HOME`.
   */
  static async open(url: URL, home: URL | null): Promise<FolderFiles> {
    const real = async (folder: URL) => await Deno.realPath(folder).catch(() => null);
    const path = await real(url) ?? filePath(url).replace(/(.)\/$/, "$1"); // a folder that is gone
    return new FolderFiles(url, path, home && await real(home));
  }

  /** Whether the folder is the person's own, whose files need no trust: `$PREAMP_HOME` or a part of it. */
  get is_home(): boolean {
    return this.#home !== null && isWithinFolder(this.#home, this.path);
  }

  async settings(): Promise<FolderFile | null> {
    return await this.#file("settings", SETTINGS_FILE);
  }

  async variables(): Promise<FolderFile | null> {
    return await this.#file("variables", VARIABLES_FILE);
  }

  async sources(): Promise<FolderFile | null> {
    return await this.#file("sources", SOURCES_FILE);
  }

  /** Returns the folder of plans that the settings name; without settings, or if they name none, `plans/`. */
  async plansFolder(settings: FolderFile | null): Promise<URL> {
    const { plans } = await this.#dataOf(settings);
    return locate(typeof plans === "string" ? `${plans.replace(/\/+$/, "")}/` : PLANS_FOLDER, this.url);
  }

  /**
   * Resolves to the plans in a folder of plans, and their lock.
   *
   * @param name Of one plan. Default: all.
   */
  async plans(folder: URL, name?: string): Promise<FolderFile[]> {
    const names = name === undefined
      ? (await namesIn(folder)).filter((file) => PLAN_ENDINGS.some((ending) => file.endsWith(ending)))
      : PLAN_ENDINGS.map((ending) => `${name}${ending}`);
    const wanted = new Set([...names.slice(0, MAX_FILES), LOCK_FILE]);
    const files = await Promise.all([...wanted].map((file) => this.#file("plans", file, folder)));
    const found = files.filter((file) => file !== null);
    return found.some(({ url }) => !url.href.endsWith(`/${LOCK_FILE}`)) ? found : []; // a lock alone does nothing
  }

  /** Resolves to everything that the folder brings. */
  async all(): Promise<FolderFile[]> {
    const settings = await this.settings();
    const [variables, sources, plans] = await Promise.all([
      this.variables(),
      this.sources(),
      this.plansFolder(settings).then((folder) => this.plans(folder)),
    ]);
    return [settings, variables, sources, ...plans].filter((file) => file !== null);
  }

  /** Returns the settings as data, parsed once; empty for null. */
  async #dataOf(settings: FolderFile | null): Promise<JsonObject> {
    return settings === null ? {} : await (this.#settings_data ??= dataOf(settings));
  }

  /** Reads a file once; null: it does not exist, or it is the person's own. */
  #file(kind: FolderFileKind, path: string, base: URL = this.url): Promise<FolderFile | null> {
    const url = locate(path, base);
    const known = this.#read.get(url.href) ?? this.#readFile(kind, url);
    this.#read.set(url.href, known);
    return known;
  }

  async #readFile(kind: FolderFileKind, url: URL): Promise<FolderFile | null> {
    const info = await Deno.stat(url).catch(() => null);
    if (!info?.isFile) return null; // a pipe would never end; a folder `.env` is Python's
    const real = await Deno.realPath(url).catch(() => null);
    if (real === null) return null;
    if (!this.is_home && this.#home !== null && isWithinFolder(this.#home, real)) return null;
    const name = nameIn(filePath(url), filePath(this.url));
    const bytes = info.size > MAX_BYTES ? null : await Deno.readFile(url).catch(() => null);
    return {
      kind,
      name,
      url,
      bytes,
      digest: bytes === null ? "" : sha256(bytes),
      ...isWithinFolder(this.path, real) ? {} : { leads_to: real },
    };
  }
}

/** Returns the text of a file. @throws {UsageError} if it cannot be read. */
export function textOf({ name, bytes }: FolderFile): string {
  const refuse = (reason: string, cause?: unknown) =>
    new UsageError(`Cannot read ${JSON.stringify(name)}: ${reason}`, { cause });
  if (bytes === null) throw refuse(`it has more than ${MAX_BYTES} bytes, or this process may not read it`);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    throw refuse("it is not UTF-8 text", error);
  }
}

/** Returns the settings as data; empty for those that cannot be read as such, which their use reports. */
async function dataOf(settings: FolderFile): Promise<JsonObject> {
  try {
    const { parseDocument } = await import("../../plan/parse/parse.ts"); // not loaded by a server without settings
    return (await parseDocument(textOf(settings), { label: settings.name })).data;
  } catch {
    return {};
  }
}

/** Returns the names in a folder, sorted; none if it cannot be read. */
async function namesIn(folder: URL): Promise<string[]> {
  try {
    return (await Array.fromAsync(Deno.readDir(folder))).map(({ name }) => name).sort();
  } catch {
    return [];
  }
}

/** Returns a path relative to a folder that it is in, else the path. */
export function nameIn(path: string, folder: string): string {
  return path.startsWith(folder) ? path.slice(folder.length) : path;
}
