/** Runs a command line of `preamp`: finds the command, parses its arguments, and reports its error. */
import { readArguments, UsageError } from "./arguments.ts";
import { findCommand } from "./commands.ts";
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
  const [first] = args;
  const name = first === undefined ? undefined : COMMAND_FLAGS.get(first);
  const found = findCommand(name === undefined ? args : [name, ...args.slice(1)]);
  if (!found) {
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
  const command = await entry.load();
  try {
    return await command.run(readArguments(rest, command.flags), io);
  } catch (error) {
    if (error instanceof UsageError) error.command ??= entry.name;
    throw error;
  }
}
