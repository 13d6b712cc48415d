/** The table of commands: name, summary and file. A command's file is loaded when the command is run. */
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
  entry("serve", "serve the HTTP API", async () => (await import("./commands/serve.ts")).command),
  entry("run", "run a prompt once, here", async () => (await import("./commands/run.ts")).command),
  entry(
    "replay",
    "replay a saved run and say where it parts",
    async () => (await import("./commands/replay.ts")).command,
  ),
  entry(
    "plan check",
    "check plans; nothing is run or fetched",
    async () => (await import("./commands/plan_check.ts")).command,
  ),
  entry(
    "plan explain",
    "show what a plan may touch; nothing is run",
    async () => (await import("./commands/plan_explain.ts")).command,
  ),
  entry(
    "plan lock",
    "pin the bytes of a plan's modules",
    async () => (await import("./commands/plan_lock.ts")).command,
  ),
  entry(
    "plan diff",
    "show what a plan widens and narrows against another",
    async () => (await import("./commands/plan_diff.ts")).command,
  ),
  entry(
    "plan hash",
    "print the hash of a plan",
    async () => (await import("./commands/plan_hash.ts")).command,
  ),
  entry(
    "module list",
    "list the built-in modules",
    async () => (await import("./commands/module_list.ts")).command,
  ),
  entry(
    "module new",
    "begin a module: code, test, README",
    async () => (await import("./commands/module_new.ts")).command,
  ),
  entry(
    "module types",
    "write the SDK's types and test kit for editors and tests",
    async () => (await import("./commands/module_types.ts")).command,
  ),
  entry(
    "module validate",
    "check a module against its contract, and try it",
    async () => (await import("./commands/module_validate.ts")).command,
  ),
  entry(
    "module bundle",
    "make one file of a module",
    async () => (await import("./commands/module_bundle.ts")).command,
  ),
  entry(
    "module hash",
    "print the digest that pins a module",
    async () => (await import("./commands/module_hash.ts")).command,
  ),
  entry(
    "config example",
    "print a preamp.yaml with every default",
    async () => (await import("./commands/config.ts")).example,
  ),
  entry("config check", "check a preamp.yaml", async () => (await import("./commands/config.ts")).check),
  entry(
    "config reference",
    "describe every setting",
    async () => (await import("./commands/config.ts")).reference,
  ),
  entry(
    "source add",
    "take a module from another place",
    async () => (await import("./commands/source_add.ts")).command,
  ),
  entry(
    "source remove",
    "take it from where the plan says again",
    async () => (await import("./commands/source_remove.ts")).command,
  ),
  entry(
    "source list",
    "list where modules are taken from",
    async () => (await import("./commands/source_list.ts")).command,
  ),
  entry(
    "completion",
    "print the completion of a shell: bash, zsh or fish",
    async () => (await import("./commands/completion.ts")).command,
  ),
  entry(
    "version",
    "print the version of this program",
    async () => (await import("./commands/version.ts")).command,
  ),
  entry(
    "docs",
    "read the documentation that ships with the program",
    async () => (await import("./commands/docs.ts")).command,
  ),
  entry("help", "show how a command is used", async () => (await import("./commands/help.ts")).command),
];

function entry(name: string, summary: string, load: () => Promise<Command>): CommandEntry {
  return { name, summary, load };
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
