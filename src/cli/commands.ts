/**
 * The interface of a command, and the table of all. The file of a command is loaded when the command runs.
 */
import type { Arguments, Flag } from "./arguments.ts";
import type { Io } from "./terminal/io.ts";

/** A command of `preamp`. */
export interface Command {
  /** Usage without the word `preamp`, such as `plan check <file>…`. */
  readonly usage: string;
  /** One sentence. */
  readonly summary: string;
  readonly flags: readonly Flag[];
  /** Returns the paragraphs below the flags; called by `help` only. */
  readonly details?: () => string | Promise<string>;
  /** Maximum number of arguments that are not flags. Default: any number. */
  readonly max_arguments?: number;
  /**
   * Runs the command. Resolves to its answer, or to the exit code of a command that wrote its output itself.
   * Throws `UsageError` or `PreampError` for the user's mistakes.
   */
  run(args: Arguments, io: Io): Promise<Answer | number>;
}

/** What a command prints. */
export interface Answer {
  /** Output with `--output-format json`; absent for a command without that flag. */
  readonly data?: unknown;
  /** Other output. */
  readonly text: string;
  /** Text for stderr, which follows `text`; not printed with `data`. */
  readonly notes?: string;
  /** Exit code. Default: 0. */
  readonly exit?: number;
}

/** A command before it is loaded. */
export interface CommandEntry {
  /** One or two words. */
  readonly name: string;
  readonly summary: string;
  readonly load: () => Promise<Command>;
}

/** The commands in the order of the usage, which prints the groups apart from each other. */
export const GROUPS: readonly (readonly CommandEntry[])[] = [
  [
    entry("run", "run a prompt in this process", () => import("./commands/run.ts")),
    entry("chat", "talk with an agent in this folder", () => import("./chat/command.ts")),
    entry("serve", "serve the HTTP API", () => import("./commands/serve.ts")),
    entry("trust", "trust the files of a folder", () => import("./commands/trust.ts")),
    entry("init", "write a plan and a tool of your own to start from", () => import("./commands/init.ts")),
  ],
  [
    entry("sessions", "list the stored conversations", () => import("./commands/sessions.ts")),
    entry("runs", "list the stored runs", () => import("./commands/runs.ts")),
    entry("undo", "put back the files that a run has changed", () => import("./commands/undo.ts")),
    entry("replay", "run a saved run again and compare", () => import("./commands/replay.ts")),
  ],
  [
    entry("plan check", "check plans, and print their hashes", () => import("./commands/plan/check.ts")),
    entry("plan explain", "show what a plan may touch", () => import("./commands/plan/explain.ts")),
    entry("plan lock", "pin the files of a plan's modules", () => import("./commands/plan/lock.ts")),
    entry("plan diff", "compare what two plans may do", () => import("./commands/plan/diff.ts")),
    entry("plan vendor", "bundle the modules of a plan", () => import("./commands/plan/vendor.ts")),
    entry(
      "plan import",
      "make a plan of a bundle, or of MCP servers",
      () => import("./commands/plan/import.ts"),
    ),
  ],
  [
    entry("module list", "list the built-in modules", () => import("./commands/module/list.ts")),
    entry("module new", "create a module with a test", () => import("./commands/module/new.ts")),
    entry("module types", "write the SDK's types for editors", () => import("./commands/module/types.ts")),
    entry("module validate", "check a module and run it", () => import("./commands/module/validate.ts")),
    entry("module bundle", "bundle a module into one file", () => import("./commands/module/bundle.ts")),
    entry("module hash", "print the digest that pins a module", () => import("./commands/module/hash.ts")),
    entry("source add", "override the source of a module", () => import("./commands/source/add.ts")),
    entry("source remove", "remove a source override", () => import("./commands/source/remove.ts")),
    entry("source list", "list source overrides", () => import("./commands/source/list.ts")),
  ],
  [
    entry("provider list", "list the providers and their keys", () => import("./commands/provider/list.ts")),
    entry("provider models", "list the models of an account", () => import("./commands/provider/models.ts")),
    entry("provider test", "call a model once", () => import("./commands/provider/call.ts")),
    entry(
      "config example",
      "print a preamp.yaml of all defaults",
      () => import("./commands/config/example.ts"),
    ),
    entry("config check", "check a preamp.yaml", () => import("./commands/config/check.ts")),
    entry("config reference", "describe every setting", () => import("./commands/config/reference.ts")),
    entry("store check", "check a store and count what it holds", () => import("./commands/store/check.ts")),
    entry("store migrate", "create or update a store's tables", () => import("./commands/store/migrate.ts")),
    entry("store erase", "delete all content of a namespace", () => import("./commands/store/erase.ts")),
    entry("store vacuum", "delete expired rows of a store", () => import("./commands/store/vacuum.ts")),
    entry("doctor", "describe this host", () => import("./commands/doctor.ts")),
  ],
  [
    entry("docs", "read the documentation", () => import("./commands/docs.ts")),
    entry("help", "show how a command is used", () => import("./commands/help.ts")),
    entry("version", "print the version of this program", () => import("./commands/version.ts")),
  ],
];

/** Every command, in the order of the usage. */
export const COMMANDS: readonly CommandEntry[] = GROUPS.flat();

function entry(name: string, summary: string, load: () => Promise<{ command: Command }>): CommandEntry {
  return { name, summary, load: async () => (await load()).command };
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
