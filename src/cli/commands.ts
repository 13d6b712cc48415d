/** The table of commands: name, one line, and where it is. Nothing is loaded before it is asked for. */
import type { Command } from "./command.ts";
import { loadOtherCommands } from "./late.ts";
import type { OTHERS } from "./other_commands.ts";

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
    load: other("run"),
  },
  {
    name: "replay",
    summary: "replay a saved run and say where it parts",
    load: other("replay"),
  },
  {
    name: "plan check",
    summary: "check plans; nothing is run or fetched",
    load: other("plan check"),
  },
  {
    name: "plan explain",
    summary: "show what a plan may touch; nothing is run",
    load: other("plan explain"),
  },
  {
    name: "plan lock",
    summary: "pin the bytes of a plan's modules",
    load: other("plan lock"),
  },
  {
    name: "plan diff",
    summary: "show what a plan widens and narrows against another",
    load: other("plan diff"),
  },
  {
    name: "plan hash",
    summary: "print the hash of a plan",
    load: other("plan hash"),
  },
  {
    name: "module list",
    summary: "list the built-in modules",
    load: other("module list"),
  },
  {
    name: "module new",
    summary: "begin a module: code, test, README",
    load: other("module new"),
  },
  {
    name: "module validate",
    summary: "check a module against its contract, and try it",
    load: other("module validate"),
  },
  {
    name: "module bundle",
    summary: "make one file of a module",
    load: other("module bundle"),
  },
  {
    name: "module hash",
    summary: "print the digest that pins a module",
    load: other("module hash"),
  },
  {
    name: "source add",
    summary: "take a module from another place",
    load: other("source add"),
  },
  {
    name: "source remove",
    summary: "take it from where the plan says again",
    load: other("source remove"),
  },
  {
    name: "source list",
    summary: "list where modules are taken from",
    load: other("source list"),
  },
  {
    name: "help",
    summary: "show how a command is used",
    load: other("help"),
  },
];

function other(name: keyof typeof OTHERS): () => Promise<Command> {
  return async () => await (await loadOtherCommands()).OTHERS[name]();
}

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
