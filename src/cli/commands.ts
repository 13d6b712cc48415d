/** The table of commands: name, summary and file. The file of a command is loaded when the command runs. */
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
  entry("run", "run a prompt in this process", async () => (await import("./commands/run.ts")).command),
  entry(
    "replay",
    "replay a saved run and report the first difference",
    async () => (await import("./commands/replay.ts")).command,
  ),
  entry(
    "plan check",
    "check plans without running or fetching anything",
    async () => (await import("./commands/plan_check.ts")).command,
  ),
  entry(
    "plan explain",
    "show what a plan may touch, without running it",
    async () => (await import("./commands/plan_explain.ts")).command,
  ),
  entry(
    "plan lock",
    "pin the files of a plan's modules by their hashes",
    async () => (await import("./commands/plan_lock.ts")).command,
  ),
  entry(
    "plan vendor",
    "write a plan with its modules as bundles beside it",
    async () => (await import("./commands/plan_vendor.ts")).command,
  ),
  entry(
    "plan diff",
    "compare two plans: what the second one widens and narrows",
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
    "create a module from a template (code, test, README)",
    async () => (await import("./commands/module_new.ts")).command,
  ),
  entry(
    "module types",
    "write the SDK's types and test kit for editors and tests",
    async () => (await import("./commands/module_types.ts")).command,
  ),
  entry(
    "module validate",
    "check a module against its contract and run it",
    async () => (await import("./commands/module_validate.ts")).command,
  ),
  entry(
    "module bundle",
    "bundle a module into one file",
    async () => (await import("./commands/module_bundle.ts")).command,
  ),
  entry(
    "module hash",
    "print the digest that pins a module",
    async () => (await import("./commands/module_hash.ts")).command,
  ),
  entry(
    "doctor",
    "describe this host: versions, store, isolation, permissions",
    async () => (await import("./commands/doctor.ts")).command,
  ),
  entry(
    "store check",
    "check a store and count what it holds",
    async () => (await import("./commands/store_commands.ts")).check,
  ),
  entry(
    "store migrate",
    "create the tables of a store, or update them",
    async () => (await import("./commands/store_commands.ts")).migrate,
  ),
  entry(
    "store vacuum",
    "delete expired rows and return their space",
    async () => (await import("./commands/store_commands.ts")).vacuum,
  ),
  entry(
    "provider list",
    "list the providers, their keys and default models",
    async () => (await import("./commands/provider_commands.ts")).list,
  ),
  entry(
    "provider models",
    "list the models of an account",
    async () => (await import("./commands/provider_commands.ts")).models,
  ),
  entry(
    "provider test",
    "call a model once: latency, tokens, cost, or what is wrong",
    async () => (await import("./commands/provider_test.ts")).command,
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
    "override the source of a module",
    async () => (await import("./commands/source_commands.ts")).add,
  ),
  entry(
    "source remove",
    "remove a source override",
    async () => (await import("./commands/source_commands.ts")).remove,
  ),
  entry(
    "source list",
    "list source overrides",
    async () => (await import("./commands/source_commands.ts")).list,
  ),
  entry(
    "completion",
    "print a completion script for bash, zsh or fish",
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

/** Returns the command that a command line names, and the arguments after its name. */
export function findCommand(
  args: readonly string[],
): { entry: CommandEntry; rest: readonly string[] } | undefined {
  for (const words of [2, 1]) {
    const name = args.slice(0, words).join(" ");
    const entry = COMMANDS.find((command) => command.name === name && name.split(" ").length === words);
    if (entry) return { entry, rest: args.slice(words) };
  }
  return undefined;
}
