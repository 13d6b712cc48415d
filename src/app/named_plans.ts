/**
 * The demo plan, and the operator's plans: files of folders, by name. A file is read again when it changed.
 */
import { printableId } from "../sdk/ids.ts";
import { mayNotRead } from "./home_report.ts";
import { PreampError } from "../sdk/errors.ts";
import type { JsonObject } from "../sdk/types.ts";
import { didYouMean } from "../sdk/findings.ts";

/** The content of a plan file. */
export interface PlanFile {
  name: string;
  text: string;
  /** URL of the file; base of relative sources. */
  base_url: string;
}

/** Endings of plan files, the preferred one first. */
export const PLAN_ENDINGS = [".yaml", ".yml", ".json"];

/** Valid names of plans. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;

/** Returns whether a text can be the name of a plan. */
export function isPlanName(text: string): boolean {
  return NAME.test(text);
}

/** A folder of plans. */
export interface PlanFolder {
  /** URL, ending in a slash. */
  readonly url: URL;
  /**
   * Returns whether a file may be used as it was read, a plan or its lock; one that may not is as one that is
   * not there. Default: every file.
   */
  accepts?(file: URL, bytes: Uint8Array): Promise<boolean>;
  /** Whether a folder that this process may not read counts as absent. Default false: that is an error. */
  readonly optional?: boolean;
}

/** Returns the folder of the person's own plans, saved ones included. @param home `$PREAMP_HOME`. */
export function personalPlans(home: URL): PlanFolder {
  return { url: new URL("plans/", home), optional: true };
}

/** The plans of folders. Of two plans with one name, that of the first folder counts. */
export class NamedPlans {
  readonly #folders: readonly PlanFolder[];
  readonly #own: readonly PlanFile[];
  readonly #first: readonly PlanFile[];
  readonly #read = new Map<string, { mtime_ms: number; bytes: number; file: PlanFile }>();

  /**
   * @param own Plans of the program, for names that no folder has.
   * @param first Plans that come before those of the folders.
   */
  constructor(
    folders: readonly PlanFolder[],
    own: readonly PlanFile[] = [],
    first: readonly PlanFile[] = [],
  ) {
    this.#folders = folders;
    this.#own = own;
    this.#first = first;
  }

  /** Returns the names of all plans, sorted; empty if there is no folder. */
  async names(): Promise<string[]> {
    const names = new Set([...this.#first, ...this.#own].map(({ name }) => name));
    for (const folder of this.#folders) {
      for (const name of await namesIn(folder)) {
        if (!folder.accepts || await this.#findIn(folder, name)) names.add(name);
      }
    }
    return [...names].sort();
  }

  /** Returns a plan by name; null if it does not exist. */
  async find(name: string): Promise<PlanFile | null> {
    if (!isPlanName(name)) return null;
    const first = this.#first.find((file) => file.name === name);
    if (first) return first;
    for (const folder of this.#folders) {
      const file = await this.#findIn(folder, name);
      if (file) return file;
    }
    return this.#own.find((file) => file.name === name) ?? null;
  }

  /** Returns whether a folder is one of these. */
  has(folder: URL): boolean {
    return this.#folders.some(({ url }) => url.href === folder.href);
  }

  /** Returns the plan of a name in the folders that come before `folder`; null if they have none. */
  async findBefore(folder: URL, name: string): Promise<PlanFile | null> {
    for (const earlier of this.#folders) {
      if (earlier.url.href === folder.href) return null;
      const file = await this.#findIn(earlier, name);
      if (file) return file;
    }
    return null;
  }

  /**
   * Returns a plan by name. @throws {PreampError} `not_found`, the same for a missing name and an invalid
   * one.
   */
  async get(name: string): Promise<PlanFile> {
    const file = await this.find(name);
    if (file) return file;
    const meant = didYouMean(name, await this.names());
    const hint = meant === undefined ? "GET /v1/plans lists the plans" : `did you mean "${meant}"?`;
    throw new PreampError("not_found", `Cannot find a plan named "${printableId(name)}": ${hint}`);
  }

  async #findIn(folder: PlanFolder, name: string): Promise<PlanFile | null> {
    for (const ending of PLAN_ENDINGS) {
      if (`${name}${ending}` === LOCK_FILE) continue;
      const file = await this.#readFile(name, new URL(`${name}${ending}`, folder.url), folder);
      if (file) return file;
    }
    return null;
  }

  async #readFile(name: string, url: URL, folder: PlanFolder): Promise<PlanFile | null> {
    try {
      const { mtime, size, isFile } = await Deno.stat(url);
      if (!isFile) return null;
      const mtime_ms = mtime?.getTime() ?? 0;
      const known = folder.accepts ? undefined : this.#read.get(url.href);
      if (known?.mtime_ms === mtime_ms && known.bytes === size) return known.file;
      const bytes = await Deno.readFile(url);
      if (!await isAccepted(folder, url, bytes)) return null;
      const file = { name, text: new TextDecoder().decode(bytes), base_url: url.href };
      this.#read.set(url.href, { mtime_ms, bytes: size, file });
      return file;
    } catch (error) {
      if (isAbsent(error, folder)) return null;
      throw error;
    }
  }
}

/** Returns whether a plan may be used, and its lock with it. */
async function isAccepted({ accepts }: PlanFolder, url: URL, bytes: Uint8Array): Promise<boolean> {
  if (!accepts) return true;
  const lock_url = new URL(LOCK_FILE, url);
  const lock = await Deno.readFile(lock_url).catch((error) => {
    if (isAbsent(error, {})) return null;
    throw error;
  });
  return await accepts(url, bytes) && (lock === null || await accepts(lock_url, lock));
}

/** Returns the names of the plans in a folder; none if there is no folder. */
async function namesIn(folder: PlanFolder): Promise<string[]> {
  const names: string[] = [];
  try {
    for await (const entry of Deno.readDir(folder.url)) {
      const ending = PLAN_ENDINGS.find((suffix) => entry.name.endsWith(suffix));
      const name = ending ? entry.name.slice(0, -ending.length) : "";
      if (!entry.isDirectory && entry.name !== LOCK_FILE && isPlanName(name)) names.push(name);
    }
  } catch (error) {
    if (!isAbsent(error, folder)) throw error;
  }
  return names;
}

/** Whether there is no such file, or a file in place of its folder, or one of an optional folder. */
function isAbsent(error: unknown, { optional = false }: Pick<PlanFolder, "optional">): boolean {
  return error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory ||
    optional && mayNotRead(error);
}

/** Name of the lock file beside a plan file. */
export const LOCK_FILE = "plan.lock.json";

/** The plan of requests that name none. It needs no key or account, and has a tool call and an approval. */
export const DEMO_PLAN: JsonObject = {
  session: { orchestrator: "loop-streaming", context: "context-simple" },
  system: "You are the demo agent of Preamp. Be brief.",
  providers: ["provider-mock"],
  tools: ["tool-calculator", "tool-todo"],
  hooks: [{ module: "hooks-approval", config: { rules: [{ tool: "calculator", action: "ask" }] } }],
};
