/** The modules that a plan names by their id alone: the built-in ones, and those that the application brings. */
import { POINT } from "../kernel/mounting/mounting.ts";
import { typeOfExports, typeOfId } from "../kernel/mounting/module_checks.ts";
import { PreampError } from "../sdk/errors.ts";
import { isObject } from "../sdk/json.ts";
import type { Module } from "../sdk/types.ts";
import { BUILTIN_IDS, builtinModule } from "./builtins.ts";
import type { ModuleListing } from "./types.ts";

/** A module of the application: its `mount` function, or an object with what a module's file exports. */
export type InProcessModule = Module | Module["mount"];

/** The modules that have an id of their own. */
export interface ModuleTable {
  /** Every id, sorted. */
  readonly ids: ReadonlySet<string>;
  /** Returns a module: at once when it was loaded before. @throws {PreampError} `not_found`. */
  module(id: string): Module | Promise<Module>;
  /** Returns true for a module that the application brings. */
  isOwn(id: string): boolean;
  /** Resolves to a module as it is listed. @throws {PreampError} `not_found`. */
  listing(id: string): Promise<ModuleListing>;
}

/** What a plan can name as an id of the application's own. */
const ID = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;
const MAX_ID = 128;

/**
 * Returns the built-in modules and those of the application, by id.
 *
 * @throws {TypeError} When an id cannot be used or is that of a built-in module, when a module has no `mount`, when nothing says
 * of which type it is.
 */
export function createModuleTable(own: Readonly<Record<string, InProcessModule>> = {}): ModuleTable {
  const modules = new Map(Object.entries(own).map(([id, given]) => [id, checkModule(id, given)]));
  const ids: ReadonlySet<string> = new Set([...BUILTIN_IDS, ...modules.keys()].sort());

  function module(id: string): Module | Promise<Module> {
    const found = modules.get(id);
    if (found) return found;
    if (BUILTIN_IDS.has(id)) return builtinModule(id);
    throw new PreampError(
      "not_found",
      `Cannot find module "${id.slice(0, 80)}": built in are ${[...ids].join(", ")}`,
    );
  }

  return {
    ids,
    module,
    isOwn: (id) => modules.has(id),
    listing: async (id) => listingOf(id, await module(id)),
  };
}

function checkModule(id: string, given: unknown): Module {
  const problem = problemOf(id, given);
  if (problem !== undefined) throw new TypeError(`Cannot add module ${JSON.stringify(id)}: ${problem}`);
  return typeof given === "function" ? { mount: given as Module["mount"] } : given as Module; // just checked
}

function problemOf(id: string, given: unknown): string | undefined {
  if (!ID.test(id) || id.length > MAX_ID) {
    return `its id must be lower-case words joined by hyphens, at most ${MAX_ID} characters, such as "tool-clock"`;
  }
  if (BUILTIN_IDS.has(id)) {
    return "a built-in module has this id: choose another one, and name that in the plan";
  }
  if (typeof given !== "function" && !(isObject(given) && typeof given.mount === "function")) {
    return `it must be a function mount(coordinator, config), or an object with one: received ${
      kindOf(given)
    }`;
  }
  if ((typeof given === "function" ? undefined : typeOfExports(given)) ?? typeOfId(id)) return undefined;
  return "nothing says of which type it is: begin its id with tool-, provider-, hooks-, loop- or context-, " +
    "or give it module: { id, type }";
}

function kindOf(value: unknown): string {
  if (isObject(value)) return "an object without mount";
  return value === null ? "null" : Array.isArray(value) ? "a list" : typeof value;
}

function listingOf(id: string, loaded: Module): ModuleListing {
  const info = loaded.module;
  const type = typeOfExports(loaded) ?? typeOfId(id) ?? "tool"; // one of the first two: every id was checked
  return {
    id,
    name: info?.name ?? id,
    type,
    mount_point: info?.mount_point ?? POINT[type],
    version: info?.version ?? "0.0.0",
    description: info?.description ?? "",
    permissions: info?.permissions ?? null,
    config_schema: info?.config_schema ?? null,
  };
}
