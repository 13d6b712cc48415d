/**
 * The interface of a command, and the table of all. The file of a command is loaded when the command runs.
 */
import type { Caller } from "../runs/types.ts";
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

/** Commands by their names. */
export type Commands = Readonly<Record<string, Command>>;

/**
 * The caller of a command: plans named on the command line are an operator's
 * (src/docs/security.md#who-is-trusted).
 */
export const TERMINAL: Caller = { name: "terminal", namespace: "local", origin: "operator" };

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
    ...from(() => import("./commands/run.ts"), { "run": "run a prompt in this process" }),
    ...from(() => import("./chat/command.ts"), { "chat": "talk with an agent in this folder" }),
    ...from(() => import("./commands/serve.ts"), { "serve": "serve the HTTP API" }),
    ...from(() => import("./commands/init.ts"), {
      "init": "write a plan and a tool of your own to start from",
    }),
  ],
  [
    ...from(() => import("./commands/sessions.ts"), { "sessions": "list the stored conversations" }),
    ...from(() => import("./commands/runs.ts"), { "runs": "list the stored runs" }),
    ...from(() => import("./commands/replay.ts"), {
      "replay": "run a saved run again and say what the agent does differently",
    }),
  ],
  [
    ...from(() => import("./commands/plan_check.ts"), {
      "plan check": "check plans without running or fetching anything; print their hashes",
    }),
    ...from(() => import("./commands/plan_explain.ts"), {
      "plan explain": "show what a plan may touch, without running it",
    }),
    ...from(() => import("./commands/plan_lock.ts"), {
      "plan lock": "pin the files of a plan's modules by their hashes",
    }),
    ...from(() => import("./commands/plan_diff.ts"), {
      "plan diff": "compare two plans: what the second one widens and narrows",
    }),
    ...from(() => import("./commands/plan_vendor.ts"), {
      "plan vendor": "write a plan with its modules as bundles beside it",
    }),
  ],
  [
    ...from(() => import("./commands/docs.ts"), { "module list": "list the built-in modules" }),
    ...from(() => import("./commands/module_new.ts"), {
      "module new": "create a module from a template (code, test, README)",
    }),
    ...from(() => import("./commands/module_types.ts"), {
      "module types": "write the SDK's types and test kit for editors and tests",
    }),
    ...from(() => import("./commands/module_validate.ts"), {
      "module validate": "check a module against its contract and run it",
    }),
    ...from(() => import("./commands/module_bundle.ts"), {
      "module bundle": "bundle a module into one file",
      "module hash": "print the digest that pins a module",
    }),
    ...from(() => import("./commands/source_commands.ts"), {
      "source add": "override the source of a module",
      "source remove": "remove a source override",
      "source list": "list source overrides",
    }),
  ],
  [
    ...from(() => import("./commands/provider_commands.ts"), {
      "provider list": "list the providers, their keys and default models",
      "provider models": "list the models of an account",
      "provider test": "call a model once: latency, tokens, cost, or what is wrong",
    }),
    ...from(() => import("./commands/config.ts"), {
      "config example": "print a preamp.yaml with every default",
      "config check": "check a preamp.yaml",
      "config reference": "describe every setting",
    }),
    ...from(() => import("./commands/store_commands.ts"), {
      "store check": "check a store and count what it holds",
      "store migrate": "create the tables of a store, or update them",
      "store vacuum": "delete expired rows and return their space",
    }),
    ...from(() => import("./commands/doctor.ts"), {
      "doctor": "describe this host: versions, store, isolation, permissions",
    }),
  ],
  [
    ...from(() => import("./commands/docs.ts"), {
      "docs": "read the documentation that ships with the program",
    }),
    ...from(() => import("./commands/help.ts"), {
      "help": "show how a command is used",
      "version": "print the version of this program",
    }),
  ],
];

/** Every command, in the order of the usage. */
export const COMMANDS: readonly CommandEntry[] = GROUPS.flat();

/** Returns the entries of commands in one file, from their names and summaries. */
function from(
  load: () => Promise<{ commands: Commands }>,
  summaries: Readonly<Record<string, string>>,
): CommandEntry[] {
  return Object.entries(summaries).map(([name, summary]) => ({
    name,
    summary,
    load: async () => (await load()).commands[name]!, // a test loads every command
  }));
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
