/** Which type a module is when no plan says so: by what it exports, by its id, by what it mounted (behaviour.md §3.2). Pure. */
import { isObject } from "../../sdk/json.ts";
import type { ModuleType } from "../../sdk/types.ts";

/** The types, in the order of the documentation. */
export const MODULE_TYPES: readonly ModuleType[] = [
  "tool",
  "provider",
  "hook",
  "orchestrator",
  "context",
];

/** How ids of a type begin. */
export const PREFIX: Readonly<Record<ModuleType, string>> = {
  tool: "tool",
  provider: "provider",
  hook: "hooks",
  orchestrator: "loop",
  context: "context",
};

const BY_PREFIX: Readonly<Record<string, ModuleType>> = {
  tool: "tool",
  provider: "provider",
  hook: "hook",
  hooks: "hook",
  loop: "orchestrator",
  orchestrator: "orchestrator",
  context: "context",
};

/** Returns the type that a module's exports name (`moduleType`, `__amplifier_module_type__`, `module.type`), or undefined. */
export function typeOfExports(module: object): ModuleType | undefined {
  const { moduleType, __amplifier_module_type__, module: info } = module as Record<string, unknown>;
  const stated = [moduleType, __amplifier_module_type__, isObject(info) ? info.type : undefined];
  return stated.flatMap((one) => MODULE_TYPES.find((type) => type === one) ?? [])[0];
}

/** Returns the type of an id by what stands before its first hyphen, or undefined: `hooks-tool-dedupe` is a hook (LOAD-14). */
export function typeOfId(id: string): ModuleType | undefined {
  const [prefix = ""] = id.replace(/^amplifier-module-/, "").split("-");
  return Object.hasOwn(BY_PREFIX, prefix) ? BY_PREFIX[prefix] : undefined;
}

/** Returns the type that any word of an id names, or undefined; a guess for a module that mounted nothing (upstream's rule). */
export function typeOfWords(id: string): ModuleType | undefined {
  return id.split("-").map((word) => Object.hasOwn(BY_PREFIX, word) ? BY_PREFIX[word] : undefined).find((
    type,
  ) => type);
}
