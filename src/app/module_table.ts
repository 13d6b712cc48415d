/** The modules that a plan can name by id: the built-in ones and the application's. */
import { classifyMountReturn } from "../kernel/mount_diagnosis.ts";
import type { ContextManager, Orchestrator } from "../sdk/contracts.ts";
import type { HookDefinition } from "../sdk/define.ts";
import { POINT } from "../sdk/plan.ts";
import { PreampError } from "../sdk/errors.ts";
import { isObject } from "../sdk/json.ts";
import type { Provider } from "../sdk/providers.ts";
import { moduleOf } from "../sdk/sdk_global.ts";
import type { Tool } from "../sdk/tools.ts";
import type { Module } from "../sdk/types.ts";
import type { ModuleListing } from "./types.ts";
import { typeOfExports, typeOfId } from "./validation/export_checks.ts";

/** The built-in modules: id → lazy import. A module is loaded when a plan first names it. */
const BUILTINS: Readonly<Record<string, () => Promise<Module>>> = {
  "context-persistent": () => import("../../modules/context-persistent/mod.ts"),
  "context-simple": () => import("../../modules/context-simple/mod.ts"),
  "context-summarizing": () => import("../../modules/context-summarizing/mod.ts"),
  "hooks-approval": () => import("../../modules/hooks-approval/mod.ts"),
  "hooks-logging": () => import("../../modules/hooks-logging/mod.ts"),
  "hooks-redaction": () => import("../../modules/hooks-redaction/mod.ts"),
  "hooks-status-context": () => import("../../modules/hooks-status-context/mod.ts"),
  "hooks-timing": () => import("../../modules/hooks-timing/mod.ts"),
  "hooks-todo-reminder": () => import("../../modules/hooks-todo-reminder/mod.ts"),
  "loop-basic": () => import("../../modules/loop-basic/mod.ts"),
  "loop-events": () => import("../../modules/loop-events/mod.ts"),
  "loop-streaming": () => import("../../modules/loop-streaming/mod.ts"),
  "provider-anthropic": () => import("../../modules/provider-anthropic/mod.ts"),
  "provider-azure": () => import("../../modules/provider-azure/mod.ts"),
  "provider-deepseek": () => import("../../modules/provider-deepseek/mod.ts"),
  "provider-gemini": () => import("../../modules/provider-gemini/mod.ts"),
  "provider-groq": () => import("../../modules/provider-groq/mod.ts"),
  "provider-mistral": () => import("../../modules/provider-mistral/mod.ts"),
  "provider-mock": () => import("../../modules/provider-mock/mod.ts"),
  "provider-ollama": () => import("../../modules/provider-ollama/mod.ts"),
  "provider-openai": () => import("../../modules/provider-openai/mod.ts"),
  "provider-openrouter": () => import("../../modules/provider-openrouter/mod.ts"),
  "provider-replay": () => import("../../modules/provider-replay/mod.ts"),
  "provider-xai": () => import("../../modules/provider-xai/mod.ts"),
  "tool-bash": () => import("../../modules/tool-bash/mod.ts"),
  "tool-calculator": () => import("../../modules/tool-calculator/mod.ts"),
  "tool-filesystem": () => import("../../modules/tool-filesystem/mod.ts"),
  "tool-mcp": () => import("../../modules/tool-mcp/mod.ts"),
  "tool-search": () => import("../../modules/tool-search/mod.ts"),
  "tool-skills": () => import("../../modules/tool-skills/mod.ts"),
  "tool-task": () => import("../../modules/tool-task/mod.ts"),
  "tool-todo": () => import("../../modules/tool-todo/mod.ts"),
  "tool-web": () => import("../../modules/tool-web/mod.ts"),
};

/** Ids of the built-in modules that read texts (`Module.texts`), known without loading them. */
const READ_TEXTS: ReadonlySet<string> = new Set(["context-persistent", "tool-skills"]);

/** Ids of the built-in modules, sorted. */
export const BUILTIN_IDS: ReadonlySet<string> = new Set(Object.keys(BUILTINS));

/**
 * A module of the application: what it mounts, such as `defineTool(…)`, its `mount` function, or an object
 * like the exports of a module's file.
 */
export type InProcessModule =
  | Module
  | Module["mount"]
  | Tool
  | Provider
  | HookDefinition
  | Orchestrator
  | ContextManager;

/** Modules by id. */
export interface ModuleTable {
  /** Every id, sorted. */
  readonly ids: ReadonlySet<string>;
  /** Returns a module, without a promise if it is already loaded. @throws {PreampError} `not_found`. */
  module(id: string): Module | Promise<Module>;
  /** Returns true for a module of the application. */
  isOwn(id: string): boolean;
  /** Returns true for a module that gives the model texts of files. */
  readsTexts(id: string): boolean;
  /** Resolves to a module's listing. @throws {PreampError} `not_found`. */
  listing(id: string): Promise<ModuleListing>;
}

/** Valid ids of the application's modules. */
const ID = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;
const MAX_ID = 128;

/**
 * Returns the built-in modules and the application's modules, by id.
 *
 * @throws {TypeError} if an id is not valid or is that of a built-in module, if a module has no `mount`, or
 * if its type is unknown.
 */
export function createModuleTable(own: Readonly<Record<string, InProcessModule>> = {}): ModuleTable {
  const modules = new Map(Object.entries(own).map(([id, value]) => [id, checkModule(id, value)]));
  const ids: ReadonlySet<string> = new Set([...BUILTIN_IDS, ...modules.keys()].sort());

  function module(id: string): Module | Promise<Module> {
    const found = modules.get(id);
    if (found) return found;
    if (BUILTIN_IDS.has(id)) return builtinModule(id);
    throw new PreampError(
      "not_found",
      `Cannot find module "${id.slice(0, 80)}"; the modules are ${[...ids].join(", ")}`,
    );
  }

  return {
    ids,
    module,
    isOwn: (id) => modules.has(id),
    readsTexts: (id) => READ_TEXTS.has(id) || modules.get(id)?.texts !== undefined,
    listing: async (id) => listingOf(id, await module(id)),
  };
}

const loaded = new Map<string, Module>();

/** Returns a built-in module, without a promise if it is already loaded. */
function builtinModule(id: string): Module | Promise<Module> {
  return loaded.get(id) ?? BUILTINS[id]!().then((found) => {
    loaded.set(id, found);
    return found;
  });
}

function checkModule(id: string, value: unknown): Module {
  const problem = problemOf(id, value);
  if (problem !== undefined) throw new TypeError(`Cannot add module ${JSON.stringify(id)}: ${problem}`);
  if (typeof value === "function") return { mount: value as Module["mount"] };
  const { mount } = value as Partial<Module>; // problemOf checked it
  return mount === undefined ? moduleOf({ default: value }) as unknown as Module : value as Module;
}

function problemOf(id: string, value: unknown): string | undefined {
  if (!ID.test(id) || id.length > MAX_ID) {
    return `its id must be lower-case words joined by hyphens, at most ${MAX_ID} characters, such as "tool-clock"`;
  }
  if (BUILTIN_IDS.has(id)) {
    return "a built-in module has this id; choose another one";
  }
  const type = typeOfId(id);
  const is_part = type !== undefined && isObject(value) && value.mount === undefined &&
    classifyMountReturn(value, type).kind === "instance";
  if (!is_part && typeof value !== "function" && !(isObject(value) && typeof value.mount === "function")) {
    return "it must be a definition such as defineTool(…), a function mount(coordinator, config), " +
      `or an object with one: received ${kindOf(value)}`;
  }
  if ((typeof value === "function" ? undefined : typeOfExports(value)) ?? type) return undefined;
  return "its type is unknown: begin its id with tool-, provider-, hooks-, loop- or context-, " +
    "or export module: { id, type }";
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
