/** Where the commands beside `serve` are. Apart from their table: it is loaded at every start, this when one of them is run. */
import type { Command } from "./command.ts";

/** How each is loaded, by its name. */
export const OTHERS = {
  run: async () => (await import("./run.ts")).command,
  replay: async () => (await import("./replay.ts")).command,
  "plan check": async () => (await import("./plan_check.ts")).command,
  "plan explain": async () => (await import("./plan_explain.ts")).command,
  "plan lock": async () => (await import("./plan_lock.ts")).command,
  "plan diff": async () => (await import("./plan_diff.ts")).command,
  "plan hash": async () => (await import("./plan_hash.ts")).command,
  "module list": async () => (await import("./module_list.ts")).command,
  "module new": async () => (await import("./module_new.ts")).command,
  "module types": async () => (await import("./module_types.ts")).command,
  "module validate": async () => (await import("./module_validate.ts")).command,
  "module bundle": async () => (await import("./module_bundle.ts")).command,
  "module hash": async () => (await import("./module_hash.ts")).command,
  "config example": async () => (await import("./config.ts")).example,
  "config check": async () => (await import("./config.ts")).check,
  "config reference": async () => (await import("./config.ts")).reference,
  "source add": async () => (await import("./source_add.ts")).command,
  "source remove": async () => (await import("./source_remove.ts")).command,
  "source list": async () => (await import("./source_list.ts")).command,
  completion: async () => (await import("./completion.ts")).command,
  version: async () => (await import("./version.ts")).command,
  help: async () => (await import("./help.ts")).command,
} as const satisfies Record<string, () => Promise<Command>>;
