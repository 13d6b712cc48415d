/** The built-in modules: id → lazy import. A module is loaded when a plan first names it. */
import { PreampError } from "../sdk/errors.ts";
import type { Module } from "../sdk/types.ts";

const BUILTINS: Readonly<Record<string, () => Promise<Module>>> = {
  "context-persistent": () => import("../../modules/context-persistent/mod.ts"),
  "context-simple": () => import("../../modules/context-simple/mod.ts"),
  "context-summarizing": () => import("../../modules/context-summarizing/mod.ts"),
  "hooks-approval": () => import("../../modules/hooks-approval/mod.ts"),
  "hooks-logging": () => import("../../modules/hooks-logging/mod.ts"),
  "hooks-timing": () => import("../../modules/hooks-timing/mod.ts"),
  "loop-basic": () => import("../../modules/loop-basic/mod.ts"),
  "loop-events": () => import("../../modules/loop-events/mod.ts"),
  "loop-streaming": () => import("../../modules/loop-streaming/mod.ts"),
  "provider-anthropic": () => import("../../modules/provider-anthropic/mod.ts"),
  "provider-gemini": () => import("../../modules/provider-gemini/mod.ts"),
  "provider-mock": () => import("../../modules/provider-mock/mod.ts"),
  "provider-ollama": () => import("../../modules/provider-ollama/mod.ts"),
  "provider-openai": () => import("../../modules/provider-openai/mod.ts"),
  "provider-replay": () => import("../../modules/provider-replay/mod.ts"),
  "tool-calculator": () => import("../../modules/tool-calculator/mod.ts"),
  "tool-task": () => import("../../modules/tool-task/mod.ts"),
  "tool-todo": () => import("../../modules/tool-todo/mod.ts"),
};

/** Ids of the built-in modules, sorted. */
export const BUILTIN_IDS: ReadonlySet<string> = new Set(Object.keys(BUILTINS));

const loaded = new Map<string, Module>();

/**
 * Returns a built-in module, without a promise if it is already loaded. @throws {PreampError} `not_found`.
 */
export function builtinModule(id: string): Module | Promise<Module> {
  const module = loaded.get(id);
  if (module) return module;
  const load = Object.hasOwn(BUILTINS, id) ? BUILTINS[id] : undefined;
  if (!load) {
    throw new PreampError(
      "not_found",
      `Cannot find module "${id.slice(0, 80)}"; built-in modules are ${[...BUILTIN_IDS].join(", ")}`,
    );
  }
  return load().then((found) => {
    loaded.set(id, found);
    return found;
  });
}
