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
  other("run", "run a prompt once, here"),
  other("replay", "replay a saved run and say where it parts"),
  other("plan check", "check plans; nothing is run or fetched"),
  other("plan explain", "show what a plan may touch; nothing is run"),
  other("plan lock", "pin the bytes of a plan's modules"),
  other("plan diff", "show what a plan widens and narrows against another"),
  other("plan hash", "print the hash of a plan"),
  other("module list", "list the built-in modules"),
  other("module new", "begin a module: code, test, README"),
  other("module types", "write the SDK's types and test kit for editors and tests"),
  other("module validate", "check a module against its contract, and try it"),
  other("module bundle", "make one file of a module"),
  other("module hash", "print the digest that pins a module"),
  other("config example", "print a preamp.yaml with every default"),
  other("config check", "check a preamp.yaml"),
  other("config reference", "describe every setting"),
  other("source add", "take a module from another place"),
  other("source remove", "take it from where the plan says again"),
  other("source list", "list where modules are taken from"),
  other("completion", "print the completion of a shell: bash, zsh or fish"),
  other("version", "print the version of this program"),
  other("help", "show how a command is used"),
];

function other(name: keyof typeof OTHERS, summary: string): CommandEntry {
  return { name, summary, load: async () => await (await loadOtherCommands()).OTHERS[name]() };
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
