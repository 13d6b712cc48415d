/** The table of commands: name, one line, and where it is. Nothing is loaded before it is asked for. */
import type { Command } from "./command.ts";

/** A command before it is loaded. */
export interface CommandEntry {
  /** One or two words. */
  readonly name: string;
  readonly summary: string;
  readonly load: () => Promise<Command>;
}

/** Every command, in the order of the usage. */
export const COMMANDS: readonly CommandEntry[] = [
  {
    name: "serve",
    summary: "serve the HTTP API",
    load: async () => (await import("./serve.ts")).command,
  },
  {
    name: "run",
    summary: "run a prompt once, here",
    load: async () => (await import("./run.ts")).command,
  },
  {
    name: "replay",
    summary: "replay a saved run and say where it parts",
    load: async () => (await import("./replay.ts")).command,
  },
  {
    name: "plan check",
    summary: "check plans; nothing is run or fetched",
    load: async () => (await import("./plan_check.ts")).command,
  },
  {
    name: "plan explain",
    summary: "show what a plan may touch; nothing is run",
    load: async () => (await import("./plan_explain.ts")).command,
  },
  {
    name: "plan lock",
    summary: "pin the bytes of a plan's modules",
    load: async () => (await import("./plan_lock.ts")).command,
  },
  {
    name: "plan diff",
    summary: "show what a plan widens and narrows against another",
    load: async () => (await import("./plan_diff.ts")).command,
  },
  {
    name: "plan hash",
    summary: "print the hash of a plan",
    load: async () => (await import("./plan_hash.ts")).command,
  },
  {
    name: "module list",
    summary: "list the built-in modules",
    load: async () => (await import("./module_list.ts")).command,
  },
  {
    name: "module new",
    summary: "begin a module: code, test, README",
    load: async () => (await import("./module_new.ts")).command,
  },
  {
    name: "module validate",
    summary: "check a module against its contract, and try it",
    load: async () => (await import("./module_validate.ts")).command,
  },
  {
    name: "module bundle",
    summary: "make one file of a module",
    load: async () => (await import("./module_bundle.ts")).command,
  },
  {
    name: "module hash",
    summary: "print the digest that pins a module",
    load: async () => (await import("./module_hash.ts")).command,
  },
  {
    name: "source add",
    summary: "take a module from another place",
    load: async () => (await import("./source_add.ts")).command,
  },
  {
    name: "source remove",
    summary: "take it from where the plan says again",
    load: async () => (await import("./source_remove.ts")).command,
  },
  {
    name: "source list",
    summary: "list where modules are taken from",
    load: async () => (await import("./source_list.ts")).command,
  },
  {
    name: "help",
    summary: "show how a command is used",
    load: async () => (await import("./help.ts")).command,
  },
];

/** Returns the command that a command line begins with, and what follows its name. */
export function findCommand(
  args: readonly string[],
): { entry: CommandEntry; rest: readonly string[] } | undefined {
  for (const words of [2, 1]) {
    const name = args.slice(0, words).join(" ");
    const entry = COMMANDS.find((one) => one.name === name && name.split(" ").length === words);
    if (entry) return { entry, rest: args.slice(words) };
  }
  return undefined;
}
