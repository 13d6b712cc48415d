/** `preamp config`: what `preamp.yaml` may say, and whether a file says it right. Starts nothing. */
import { parsePolicy } from "../policy/document.ts";
import { exampleDocument, referencePage } from "../policy/reference.ts";
import type { Arguments } from "./arguments.ts";
import type { Command } from "./command.ts";
import { EXIT } from "./exit.ts";
import { DocumentFailure } from "./failure.ts";
import { locate, readNamed } from "./files.ts";
import type { Io } from "./io.ts";
import { DEFAULT_CONFIG } from "./settings.ts";
import { UsageError } from "./usage_error.ts";

/** `preamp config example`. */
export const example: Command = {
  usage: "config example",
  summary: "Prints a preamp.yaml with every setting at its default, each below its meaning.",
  flags: [],
  run: (args, io) => printText(args, io, exampleDocument()),
};

/** `preamp config reference`. */
export const reference: Command = {
  usage: "config reference",
  summary: "Prints a page in Markdown that describes every setting.",
  flags: [],
  run: (args, io) => printText(args, io, referencePage()),
};

/** `preamp config check`. */
export const check: Command = {
  usage: "config check [file]",
  summary:
    `Checks a settings file, default ${DEFAULT_CONFIG}; variables and flags are left alone. \`-\` is stdin.`,
  flags: [],
  details: () => "Exit codes: 0 the file can be used, 2 there is no such file, 3 something in it is wrong.\n",
  run: checkFile,
};

function printText({ rest }: Arguments, io: Io, text: string): Promise<number> {
  if (rest.length > 0) {
    throw new UsageError(`Cannot use ${JSON.stringify(rest[0])}: the command takes no arguments`);
  }
  io.out.write(text);
  return Promise.resolve(EXIT.done);
}

async function checkFile({ rest }: Arguments, io: Io): Promise<number> {
  if (rest.length > 1) throw new UsageError("Cannot check more than one file: name one");
  const [file = DEFAULT_CONFIG] = rest;
  const name = file === "-" ? "<stdin>" : file;
  const text = file === "-" ? await io.in.text() : await readNamed(locate(file, io.cwd), file);
  try {
    await parsePolicy(text, { name });
  } catch (error) {
    throw new DocumentFailure(name, error);
  }
  io.out.write(`${name}: ok\n`);
  return EXIT.done;
}
