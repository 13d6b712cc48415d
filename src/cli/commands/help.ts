/** `preamp help [command]`: how commands are used. The text comes from the commands themselves. */
import { didYouMean } from "../../text/did_you_mean.ts";
import type { JsonObject } from "../../sdk/json.ts";
import type { Flag } from "../arguments.ts";
import type { Command } from "../command.ts";
import { type CommandEntry, COMMANDS, findCommand } from "../commands.ts";
import { EXIT } from "../exit.ts";
import type { Io, Output } from "../terminal/io.ts";
import { formatFlags, wantsJson, writeJson } from "../output_format.ts";
import { tableText } from "../terminal/table.ts";
import { UsageError } from "../usage_error.ts";
import { wrapText } from "../terminal/wrap.ts";

/** The command. */
export const command: Command = {
  usage: "help [flags] [command]",
  summary: "Shows how a command is used.",
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

/** Returns the commands that words name: all, those of a group, or one. @throws {UsageError} when they name no command. */
function namedCommands(words: readonly string[]): CommandEntry[] {
  const name = words.join(" ");
  const named = COMMANDS.filter((entry) => entry.name === name || `${entry.name} `.startsWith(`${name} `));
  if (words.length > 0 && named.length === 0) throw noSuchCommand(words);
  return words.length === 0 ? [...COMMANDS] : named;
}

async function commandFacts({ name, load }: CommandEntry): Promise<JsonObject> {
  const { usage, summary, flags } = await load();
  const shown = flags.filter(({ help }) => help !== "");
  const facts = shown.map(({ name, short = null, value = null, many = false, help }) => ({
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
  preamp help <command>   flags and examples of a command, also: preamp <command> --help
  preamp --version        the same as preamp version

Every command that prints an answer takes --output-format json, or --json for short.
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 plan invalid, 4 refused or denied, 130 interrupted.
`;
}

/** Returns how one command is used. */
export async function commandHelp(entry: CommandEntry, output: Output): Promise<string> {
  const { usage, summary, flags, details } = await entry.load();
  const parts = [`Usage: preamp ${usage}\n`, paragraphsText(`${summary}\n`, output)];
  const shown = flags.filter(({ help }) => help !== "");
  if (shown.length > 0) parts.push(flagsText(shown, output));
  if (details) parts.push(paragraphsText(await details(), output));
  return parts.join("\n");
}

/** Returns a row for each flag; on a terminal the texts are wrapped in their column. */
function flagsText(flags: readonly Flag[], output: Output): string {
  const width = Math.max(...flags.map((flag) => flagText(flag).length));
  const room = output.terminal ? Math.max(30, output.columns() - width - 4) : Infinity;
  const rows = flags.flatMap((flag) =>
    wrapText(flag.help, room).map((line, index) => [index === 0 ? flagText(flag) : "", line])
  );
  return tableText(rows, "  ");
}

/** Returns text whose paragraphs are as wide as a terminal; examples and tables, which have wider gaps, are left alone. */
function paragraphsText(text: string, output: Output): string {
  if (!output.terminal) return text;
  const columns = Math.max(40, output.columns());
  return text.split("\n\n").map((block) => {
    if (/^ | {2}/m.test(block)) return block;
    const end = block.endsWith("\n") ? "\n" : "";
    return wrapText(block.trimEnd().replaceAll("\n", " "), columns).join("\n") + end;
  }).join("\n\n");
}

function flagText({ name, short, value, many }: Flag): string {
  const long = `--${name}${value === undefined ? "" : ` ${value}`}${many ? " …" : ""}`;
  return short === undefined ? `    ${long}` : `-${short}, ${long}`;
}

/** Tells that a command line names no command; alone it is a request for the usage. Returns the exit code. */
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

/** Returns the commands that begin with a word, or undefined when none does. */
function groupHelp(words: readonly string[]): string | undefined {
  const rows = COMMANDS.filter(({ name }) => words.length === 1 && name.startsWith(`${words[0]} `))
    .map(({ name, summary }) => [`preamp ${name}`, summary]);
  return rows.length === 0 ? undefined : `Usage:\n\n${tableText(rows, "  ")}`;
}

/** Returns the error of words that name no command; it points to the help of the group or command that they begin with. */
function noSuchCommand(args: readonly string[]): UsageError {
  const names = COMMANDS.map(({ name }) => name);
  const first = args[0] ?? "";
  const group = names.some((name) => name.startsWith(`${first} `));
  const written = (group ? args.slice(0, 2).join(" ") : first).slice(0, 80);
  if (first.startsWith("-")) {
    return new UsageError(
      `Cannot use ${JSON.stringify(written)}: a command comes first: preamp <command> ${written}`,
    );
  }
  const found = findCommand(args);
  if (found) {
    const error = new UsageError(
      `Cannot use ${JSON.stringify(found.rest[0])}: ${found.entry.name} is the whole name of the command`,
    );
    error.command = found.entry.name;
    return error;
  }
  const words = new Set(names.map((name) => group ? name : name.split(" ")[0]!)); // split gives at least one
  const meant = didYouMean(written, words);
  const error = new UsageError(
    `Cannot run ${JSON.stringify(written)}: there is no such command${
      meant === undefined ? "" : `: did you mean "${meant}"?`
    }`,
  );
  error.command = group ? first : "";
  return error;
}
