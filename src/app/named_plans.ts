/**
 * The demo plan, and the operator's plans: files of one folder, by name. A file is read again when it
 * changed.
 */
import { printableId } from "../sdk/ids.ts";
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

const ENDINGS = [".yaml", ".yml", ".json"];

/** Valid names of plans. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;

/** A folder of plans; null: no plans. */
export class NamedPlans {
  readonly #folder: URL | null;
  readonly #read = new Map<string, { mtime_ms: number; bytes: number; file: PlanFile }>();

  /** @param folder URL of the folder, ending in a slash. */
  constructor(folder: URL | null) {
    this.#folder = folder;
  }

  /** Returns the names of all plans, sorted; empty if there is no folder. */
  async names(): Promise<string[]> {
    const names = new Set<string>();
    if (this.#folder !== null) {
      try {
        for await (const entry of Deno.readDir(this.#folder)) {
          const ending = ENDINGS.find((suffix) => entry.name.endsWith(suffix));
          const name = ending ? entry.name.slice(0, -ending.length) : "";
          if (!entry.isDirectory && entry.name !== LOCK_FILE && NAME.test(name)) names.add(name);
        }
      } catch (error) {
        if (!isAbsent(error)) throw error;
      }
    }
    return [...names].sort();
  }

  /** Returns a plan by name; null if it does not exist. */
  async find(name: string): Promise<PlanFile | null> {
    if (this.#folder === null || !NAME.test(name)) return null;
    for (const ending of ENDINGS) {
      if (`${name}${ending}` === LOCK_FILE) continue;
      const url = new URL(`${name}${ending}`, this.#folder);
      const file = await this.#readFile(name, url);
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

  async #readFile(name: string, url: URL): Promise<PlanFile | null> {
    try {
      const { mtime, size: bytes, isFile } = await Deno.stat(url);
      if (!isFile) return null;
      const mtime_ms = mtime?.getTime() ?? 0;
      const known = this.#read.get(url.href);
      if (known?.mtime_ms === mtime_ms && known.bytes === bytes) return known.file;
      const file = { name, text: await Deno.readTextFile(url), base_url: url.href };
      this.#read.set(url.href, { mtime_ms, bytes, file });
      return file;
    } catch (error) {
      if (isAbsent(error)) return null;
      throw error;
    }
  }
}

/** Whether there is no such file, or a file in place of its folder. */
function isAbsent(error: unknown): boolean {
  return error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory;
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
