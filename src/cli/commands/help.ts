/** `preamp help [command]`: prints the usage of commands, generated from the table of commands. */
import { didYouMean } from "../../sdk/did_you_mean.ts";
import type { JsonObject } from "../../sdk/json.ts";
import { type Flag, UsageError } from "../arguments.ts";
import type { Command } from "../command.ts";
import { type CommandEntry, COMMANDS, findCommand } from "../commands.ts";
import { EXIT } from "../errors.ts";
import type { Io, Output } from "../terminal/io.ts";
import { formatFlags, wantsJson, writeJson } from "../output_format.ts";
import { tableText, wrapText } from "../terminal/format.ts";

/** The command. */
export const command: Command = {
  usage: "help [flags] [command]",
  summary: "Prints the usage of a command.",
  flags: formatFlags({ help: "text (default), or {data: [{name, usage, summary, flags}]} of the commands" }),
  async run(args, io) {
    if (wantsJson(args)) {
      writeJson(io, { data: await Promise.all(namedCommands(args.rest).map(commandFacts)) });
      return EXIT.done;
    }
    if (args.rest.length === 0) {
      io.out.write(usageText());
      return EXIT.done;
    }
    const found = findCommand(args.rest);
    if (!found || found.rest.length > 0) {
      const group = groupHelp(args.rest);
      if (group === undefined) throw noSuchCommand(args.rest);
      io.out.write(group);
      return EXIT.done;
    }
    io.out.write(await commandHelp(found.entry, io.out));
    return EXIT.done;
  },
};

/** Returns the named commands: all, those of a group, or one. @throws {UsageError} for an unknown name. */
function namedCommands(words: readonly string[]): CommandEntry[] {
  const name = words.join(" ");
  const named = COMMANDS.filter((entry) => entry.name === name || `${entry.name} `.startsWith(`${name} `));
  if (words.length > 0 && named.length === 0) throw noSuchCommand(words);
  return words.length === 0 ? [...COMMANDS] : named;
}

async function commandFacts({ name, load }: CommandEntry): Promise<JsonObject> {
  const { usage, summary, flags } = await load();
  const documented = flags.filter(({ help }) => help !== "");
  const facts = documented.map(({ name, short = null, value = null, many = false, help }) => ({
    name,
    short,
    value,
    many,
    help,
  }));
  return { name, usage: `preamp ${usage}`, summary, flags: facts };
}

/** Returns the usage of the program. */
export function usageText(): string {
  return `Usage: preamp <command> [arguments]

${tableText(COMMANDS.map(({ name, summary }) => [name, summary]), "  ")}
  preamp help <command>   print the flags and examples of a command (or: preamp <command> --help)
  preamp --version        the same as preamp version

Commands that print an answer take --output-format json, or --json for short.
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 plan invalid, 4 refused or denied, 130 interrupted.
`;
}

/** Returns the help text of a command. */
export async function commandHelp(entry: CommandEntry, output: Output): Promise<string> {
  const { usage, summary, flags, details } = await entry.load();
  const parts = [`Usage: preamp ${usage}\n`, paragraphsText(`${summary}\n`, output)];
  const documented = flags.filter(({ help }) => help !== "");
  if (documented.length > 0) parts.push(flagsText(documented, output));
  if (details) parts.push(paragraphsText(await details(), output));
  return parts.join("\n");
}

/** Returns a row for each flag; on a terminal the descriptions are wrapped in their column. */
function flagsText(flags: readonly Flag[], output: Output): string {
  const width = Math.max(...flags.map((flag) => flagText(flag).length));
  const room = output.terminal ? Math.max(30, output.columns() - width - 4) : Infinity;
  const rows = flags.flatMap((flag) =>
    wrapText(flag.help, room).map((line, index) => [index === 0 ? flagText(flag) : "", line])
  );
  return tableText(rows, "  ");
}

/** Wraps paragraphs to the width of the terminal. Examples and tables, recognised by wide gaps, are unchanged. */
function paragraphsText(text: string, output: Output): string {
  if (!output.terminal) return text;
  const columns = Math.max(40, output.columns());
  return text.split("\n\n").map((block) => {
    if (/^ | {2}/m.test(block)) return block;
    const end = block.endsWith("\n") ? "\n" : "";
    return wrapText(block.trimEnd().replaceAll("\n", " "), columns).join("\n") + end;
  }).join("\n\n");
}

function flagText({ name, short, value, value_optional, many }: Flag): string {
  const written = value === undefined ? "" : value_optional ? `[=${value}]` : ` ${value}`;
  const long = `--${name}${written}${many ? " …" : ""}`;
  return short === undefined ? `    ${long}` : `-${short}, ${long}`;
}

/** Reports a command line without a known command. An empty one or a group prints the usage. Returns the exit code. */
export function unknownCommand(args: readonly string[], io: Io): number {
  if (args.length === 0) {
    io.err.write(usageText());
    return EXIT.usage;
  }
  const group = groupHelp(args.slice(0, 1));
  if (args.length === 1 && group !== undefined) {
    io.err.write(group);
    return EXIT.usage;
  }
  throw noSuchCommand(args);
}

/** Returns the usage of the commands that begin with a word, or undefined. */
function groupHelp(words: readonly string[]): string | undefined {
  const rows = COMMANDS.filter(({ name }) => words.length === 1 && name.startsWith(`${words[0]} `))
    .map(({ name, summary }) => [`preamp ${name}`, summary]);
  return rows.length === 0 ? undefined : `Usage:\n\n${tableText(rows, "  ")}`;
}

/** Returns the error for an unknown command, with a pointer to the help of its group or command. */
function noSuchCommand(args: readonly string[]): UsageError {
  const names = COMMANDS.map(({ name }) => name);
  const first = args[0] ?? "";
  const group = names.some((name) => name.startsWith(`${first} `));
  const written = (group ? args.slice(0, 2).join(" ") : first).slice(0, 80);
  if (first.startsWith("-")) {
    return new UsageError(
      `Cannot use ${JSON.stringify(written)}: the command must come first: preamp <command> ${written}`,
    );
  }
  const found = findCommand(args);
  if (found) {
    const error = new UsageError(
      `Cannot use ${JSON.stringify(found.rest[0])}: the name of the command is ${found.entry.name}`,
    );
    error.command = found.entry.name;
    return error;
  }
  const words = new Set(names.map((name) => group ? name : name.split(" ")[0]!)); // split gives at least one
  const meant = didYouMean(written, words);
  const error = new UsageError(
    `Cannot run ${JSON.stringify(written)}: there is no such command${
      meant === undefined ? "" : `; did you mean "${meant}"?`
    }`,
  );
  error.command = group ? first : "";
  return error;
}
