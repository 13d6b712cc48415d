/** A local server of modules: the fixtures, as if they were somebody's site, and whatever a test adds. */
import { type FileServer, serveFiles } from "../support/loader.ts";
import { ROOT } from "./program.ts";

/** Folder → name it is served under. */
const FIXTURES: Readonly<Record<string, string>> = {
  "tests/fixtures/modules/": "modules/",
  "tests/fixtures/amplifier/": "amplifier/",
};

/** Starts a server of all fixtures; `files` may be changed while it runs. */
export async function serveModules(
  more: Record<string, string | Uint8Array<ArrayBuffer>> = {},
): Promise<FileServer> {
  const files: Record<string, string | Uint8Array<ArrayBuffer>> = {};
  for (const [folder, name] of Object.entries(FIXTURES)) {
    for await (const path of filesIn(ROOT + folder)) {
      files[name + path] = await Deno.readFile(ROOT + folder + path);
    }
  }
  return serveFiles({ ...files, ...more });
}

async function* filesIn(folder: string, below = ""): AsyncGenerator<string> {
  for await (const { name, isDirectory } of Deno.readDir(folder + below)) {
    if (isDirectory) yield* filesIn(folder, `${below}${name}/`);
    else yield below + name;
  }
}

/** Returns the plan whose five modules, one of each type, come from five URLs. */
export function planOfFive(url: string, config: Record<string, unknown> = {}): PlanOfFive {
  const source = (module: string) => ({ module, source: `${url}modules/${module}/mod.ts` });
  return {
    session: { orchestrator: source("loop-plain"), context: source("context-list") },
    providers: [{ ...source("provider-script"), config }],
    tools: [source("tool-units")],
    hooks: [source("hooks-count")],
  };
}

/** A module by URL in a plan. */
export interface UrlSpec {
  module: string;
  source: string;
  integrity?: string;
  config?: Record<string, unknown>;
}

/** A plan as data. */
export interface PlanOfFive {
  session: { orchestrator: UrlSpec | string; context: UrlSpec | string };
  providers: (UrlSpec | string)[];
  tools: (UrlSpec | string)[];
  hooks: (UrlSpec | string)[];
}
