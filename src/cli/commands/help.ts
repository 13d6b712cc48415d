/** `preamp help [command]`: prints the usage of commands, generated from their table. */
import { didYouMean } from "../../sdk/findings.ts";
import type { JsonObject } from "../../sdk/json.ts";
import { type Flag, formatFlags, formatOf, UsageError, valueName } from "../arguments.ts";
import { type Command, type CommandEntry, COMMANDS, findCommand, GROUPS } from "../commands.ts";
import { EXIT } from "../errors.ts";
import { shellWord, tableText, wrapText } from "../terminal/format.ts";
import type { Io, Output } from "../terminal/io.ts";

export const command: Command = {
  usage: "help [flags] [command]",
  summary: "Prints the usage of a command.",
  flags: formatFlags({
    help: "text (default), or {data: [{name, usage, summary, flags}]} of the commands",
  }),
  async run(args, io) {
    if (formatOf(args) !== "json") return { text: await helpText(args.rest, io.out) };
    return { data: { data: await Promise.all(namedCommands(args.rest).map(commandFacts)) }, text: "" };
  },
};

async function helpText(words: readonly string[], output: Output): Promise<string> {
  if (words.length === 0) return usageText();
  const found = findCommand(words);
  if (found && found.rest.length === 0) return await commandHelp(found.entry, output);
  const group = groupHelp(words);
  if (group === undefined) throw noSuchCommand(words);
  return group;
}

/** Returns the named commands: all, those of a group, or one. @throws {UsageError} for an unknown name. */
function namedCommands(words: readonly string[]): readonly CommandEntry[] {
  if (words.length === 0) return COMMANDS;
  const named = COMMANDS.filter(({ name }) => `${name} `.startsWith(`${words.join(" ")} `));
  if (named.length === 0) throw noSuchCommand(words);
  return named;
}

async function commandFacts({ name, load }: CommandEntry): Promise<JsonObject> {
  const command = await load();
  const flags = documentedFlags(command).map((flag) => {
    const { name, short = null, many = false, help } = flag;
    return { name, short, value: valueName(flag) ?? null, many, help };
  });
  return { name, usage: `preamp ${command.usage}`, summary: command.summary, flags };
}

function documentedFlags({ flags }: Command): Flag[] {
  return flags.filter(({ help }) => help !== "");
}

/** Returns the usage of the program. */
function usageText(): string {
  return `Usage: preamp <command> [arguments]

${groupsText()}
Start with:  preamp run "What is 6 × 7?"
A command's flags and examples:  preamp help <command>

Commands that print an answer take --output-format json, or --json for short.
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 plan invalid, 4 refused or denied, 130 interrupted.
`;
}

/** Returns the table of commands with an empty line between two groups. */
function groupsText(): string {
  const [, ...rows] = GROUPS.flatMap((group) => [
    ["", ""],
    ...group.map(({ name, summary }) => [name, summary]),
  ]);
  return tableText(rows, "  ");
}

/** Returns the help text of a command. */
export async function commandHelp(entry: CommandEntry, output: Output): Promise<string> {
  const command = await entry.load();
  const { usage, summary, details } = command;
  const parts = [`Usage: preamp ${usage}\n`, paragraphsText(`${summary}\n`, output)];
  const flags = documentedFlags(command);
  if (flags.length > 0) parts.push(flagsText(flags, output));
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

/**
 * Wraps paragraphs to the width of the terminal. Examples and tables, recognised by wide gaps, are unchanged.
 */
function paragraphsText(text: string, output: Output): string {
  if (!output.terminal) return text;
  const columns = Math.max(40, output.columns());
  return text.split("\n\n").map((block) => {
    if (/^ | {2}/m.test(block)) return block;
    const end = block.endsWith("\n") ? "\n" : "";
    return wrapText(block.trimEnd().replaceAll("\n", " "), columns).join("\n") + end;
  }).join("\n\n");
}

function flagText(flag: Flag): string {
  const { name, short, many } = flag;
  const value = valueName(flag);
  const written = value === undefined ? "" : ` ${value}`;
  const long = `--${name}${written}${many ? " …" : ""}`;
  return short === undefined ? `    ${long}` : `-${short}, ${long}`;
}

/**
 * Reports a command line without a known command. An empty one or a group prints the usage. Returns the exit
 * code.
 */
export function unknownCommand(args: readonly string[], io: Io): number {
  const help = args.length === 0 ? usageText() : groupHelp(args);
  if (help === undefined) throw noSuchCommand(args);
  io.err.write(help);
  return EXIT.usage;
}

/** Returns the usage of the commands that begin with a word, or undefined. */
function groupHelp(words: readonly string[]): string | undefined {
  const rows = COMMANDS.filter(({ name }) => words.length === 1 && name.startsWith(`${words[0]} `))
    .map(({ name, summary }) => [`preamp ${name}`, summary]);
  return rows.length === 0 ? undefined : `Usage:\n\n${tableText(rows, "  ")}`;
}

/** Commands that other programs have, separated by `|`, and what does the same here. */
const ELSEWHERE: readonly (readonly [names: string, advice: string])[] = [
  [
    "login|logout|auth|whoami|key|keys|apikey|api-key|account|setup|provider add|provider login|provider set",
    "there is no account; put a vendor's key into its variable, which preamp provider list shows, or into .env here",
  ],
  [
    "mcp",
    "MCP servers are in a plan, in the config of tool-mcp, or in mcp.servers of preamp.yaml: preamp docs tool-mcp",
  ],
  [
    "upgrade|update|self-update|uninstall",
    "this program does not replace itself; install another version as you installed this one: preamp version",
  ],
  [
    "install|add|plugin|plugins|extension|tool|tools|skill|skills|hook|hooks|module add|module install",
    "a plan names its modules, by id or by source: preamp module list, preamp docs modules",
  ],
  [
    "agent|agents|profile|profiles|bundle|bundles|plan run",
    "agents are plans: preamp run -p FILE, or --profile NAME for one of plans/; preamp docs plan",
  ],
  [
    "history|log|logs|resume|continue|session|list|ls",
    "preamp sessions and preamp runs list what is stored; preamp run --session last continues",
  ],
  ["model|models", "preamp provider models lists the models of an account; preamp run -m takes one"],
  ["providers", "preamp provider list shows providers and their keys"],
  ["ask|exec|prompt|query|complete", 'the command is run: preamp run "…"'],
  ["start|server|up|daemon|web|ui", "preamp serve starts the server, with a page for browsers"],
  ["validate|check|lint", "preamp plan check checks a plan, preamp module validate a module"],
  ["new|create|plan new|plan init", "preamp init writes a plan with a tool, preamp module new a module"],
  [
    "config set|config get|config edit|config init|settings",
    "settings are in preamp.yaml: preamp config example, preamp docs settings",
  ],
];

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
  const words = new Set(names.map((name) => group ? name : name.split(" ")[0]!)); // split gives at least one
  const meant = /\p{Lu}/u.test(first) ? undefined : didYouMean(written, words); // a sentence, not a command
  const [, elsewhere] = ELSEWHERE.find(([names]) => names.split("|").includes(written)) ?? [];
  const as_prompt = `to run a prompt, write: preamp run ${shellWord(args.join(" ").slice(0, 80))}`;
  const advice = elsewhere !== undefined
    ? `; ${elsewhere}${!group && args.length > 3 ? `; ${as_prompt}` : ""}` // many words may be a sentence
    : meant === undefined
    ? group ? "" : `; ${as_prompt}`
    : `; did you mean "${meant}"?`;
  const error = new UsageError(
    found
      ? `Cannot use ${JSON.stringify(found.rest[0])}: the name of the command is ${found.entry.name}`
      : `Cannot run ${JSON.stringify(written)}: there is no such command${advice}`,
  );
  error.command = found ? found.entry.name : group ? first : "";
  return error;
}
