/**
 * Runs a command line of `preamp`: finds the command, parses its arguments, and prints its answer or its
 * error.
 */
import { formatOf, readArguments, UsageError } from "./arguments.ts";
import { type CommandEntry, findCommand } from "./commands.ts";
import { type Io, systemIo } from "./terminal/io.ts";

/** Flags that mean a command. */
const COMMAND_FLAGS: ReadonlyMap<string, string> = new Map([
  ["--version", "version"],
  ["-V", "version"],
  ["--help", "help"],
  ["-h", "help"],
]);

/** Runs a command line and resolves to its exit code. Never rejects. */
export async function cli(args: readonly string[], io: Io = systemIo()): Promise<number> {
  try {
    return await dispatch(args, io);
  } catch (error) {
    const { reportError } = await import("./errors.ts");
    return reportError(error, io);
  }
}

async function dispatch(args: readonly string[], io: Io): Promise<number> {
  const [first, second] = args;
  const name = first === undefined ? undefined : COMMAND_FLAGS.get(first);
  const is_conversation = args.length === 0 && io.in.terminal && io.out.terminal;
  const found = findCommand(
    is_conversation ? ["chat"] : name === undefined ? args : [name, ...args.slice(1)],
  );
  if (!found) {
    const asks_for_group = COMMAND_FLAGS.get(second ?? "") === "help" && !first?.startsWith("-");
    if (asks_for_group) return await dispatch(["help", ...args.slice(0, 1)], io);
    const { unknownCommand } = await import("./commands/help.ts");
    return unknownCommand(args, io);
  }
  const { entry, rest } = found;
  const end = rest.indexOf("--");
  const flags = end === -1 ? rest : rest.slice(0, end);
  if (entry.name !== "help" && (flags.includes("--help") || flags.includes("-h"))) {
    const { commandHelp } = await import("./commands/help.ts");
    io.out.write(await commandHelp(entry, io.out));
    return 0;
  }
  try {
    return await runCommand(entry, rest, io);
  } catch (error) {
    if (error instanceof UsageError) error.command ??= entry.name;
    throw error;
  }
}

async function runCommand(
  { name, load }: CommandEntry,
  words: readonly string[],
  io: Io,
): Promise<number> {
  const { flags, max_arguments = Infinity, run } = await load();
  const args = readArguments(words, flags);
  if (args.rest.length > max_arguments) {
    const most = max_arguments === 0 ? "flags only" : `at most ${max_arguments} argument`;
    throw new UsageError(`Cannot use ${JSON.stringify(args.rest[max_arguments])}: ${name} takes ${most}`);
  }
  const format = formatOf(args);
  const answer = await run(args, io);
  if (typeof answer === "number") return answer;
  const { data, text, notes = "", exit = 0 } = answer;
  if (format === "json") {
    const { jsonText } = await import("./terminal/format.ts");
    io.out.write(jsonText(data, io.out));
  } else {
    io.out.write(text);
    io.err.write(notes);
  }
  return exit;
}
