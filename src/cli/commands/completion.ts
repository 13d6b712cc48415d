/** `preamp completion bash|zsh|fish`: prints a completion script generated from the table of commands. */
import { didYouMean } from "../../sdk/did_you_mean.ts";
import { type Arguments, type Flag, UsageError } from "../arguments.ts";
import { COMMANDS } from "../commands.ts";
import type { Command } from "../command.ts";
import {
  bashScript,
  type CompletedCommand,
  type CompletedFlag,
  fishScript,
  zshScript,
} from "../completion_scripts.ts";
import { EXIT } from "../errors.ts";
import type { Io } from "../terminal/io.ts";

const SCRIPTS: Readonly<Record<string, (commands: readonly CompletedCommand[]) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
};

/** The command. */
export const command: Command = {
  usage: "completion <bash|zsh|fish>",
  summary: "Prints a script that completes commands, flags and their values in a shell.",
  flags: [],
  details: () =>
    `bash, in ~/.bashrc:                   source <(preamp completion bash)
zsh, in ~/.zshrc behind compinit:     source <(preamp completion zsh)
fish, in ~/.config/fish/config.fish:  preamp completion fish | source
`,
  run,
};

async function run(args: Arguments, io: Io): Promise<number> {
  const [shell, ...more] = args.rest;
  const shells = Object.keys(SCRIPTS);
  if (shell === undefined || more.length > 0) {
    throw new UsageError(`Cannot print a completion script: name one shell, ${shells.join(", ")}`);
  }
  const script = Object.hasOwn(SCRIPTS, shell) ? SCRIPTS[shell] : undefined;
  if (!script) {
    const meant = didYouMean(shell, shells);
    throw new UsageError(
      `Cannot complete for ${JSON.stringify(shell.slice(0, 40))}: ${
        meant === undefined ? `the shells are ${shells.join(", ")}` : `did you mean ${meant}?`
      }`,
    );
  }
  io.out.write(script(await Promise.all(COMMANDS.map(completed))));
  return EXIT.done;
}

async function completed({ name, summary, load }: typeof COMMANDS[number]): Promise<CompletedCommand> {
  const { usage, flags } = await load();
  const own_flags = flags.filter(({ help }) => help !== "").map(completedFlag);
  const help: CompletedFlag = { name: "help", help: "show help for the command", values: null };
  const all = name === "help" ? own_flags : [...own_flags, help];
  return { name, summary, flags: all, words: name === "help" ? commandWords() : choices(usage) };
}

function completedFlag({ name, short, value, value_optional, help }: Flag): CompletedFlag {
  const values = value === undefined || value_optional ? null : value.includes("|") ? value.split("|") : [];
  return { name, help, values, ...(short === undefined ? {} : { short }) };
}

/** Returns the choices of a first argument such as `<bash|zsh|fish>`. */
function choices(usage: string): string[] {
  const [, listed] = /^[^<[]*<([a-z]+(?:\|[a-z]+)+)>/.exec(usage) ?? [];
  return listed?.split("|") ?? [];
}

function commandWords(): string[] {
  return [...new Set(COMMANDS.map(({ name }) => name.split(" ")[0]!))]; // split gives at least one
}
