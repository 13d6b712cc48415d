/** `preamp config`: what `preamp.yaml` may say, and whether a file says it right. Starts nothing. */
import { parsePolicy } from "../../policy/document.ts";
import { exampleDocument, referencePage } from "../../policy/reference.ts";
import { errorCode, type PreampError } from "../../sdk/errors.ts";
import type { Arguments } from "../arguments.ts";
import type { Command } from "../command.ts";
import { EXIT } from "../exit.ts";
import { DocumentFailure } from "../errors.ts";
import { locate, readNamed } from "../files.ts";
import type { Io } from "../terminal/io.ts";
import { formatFlags, wantsJson, writeJson } from "../output_format.ts";
import { DEFAULT_CONFIG } from "../settings.ts";
import { UsageError } from "../usage_error.ts";

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
  usage: "config check [flags] [file]",
  summary:
    `Checks a settings file, default ${DEFAULT_CONFIG}; variables and flags are left alone. \`-\` is stdin.`,
  flags: formatFlags({ help: "text (default), or {file, ok, errors}" }),
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

async function checkFile(args: Arguments, io: Io): Promise<number> {
  const { rest } = args;
  const json = wantsJson(args);
  if (rest.length > 1) throw new UsageError("Cannot check more than one file: name one");
  const [file = DEFAULT_CONFIG] = rest;
  const name = file === "-" ? "<stdin>" : file;
  const text = file === "-" ? await io.in.text() : await readNamed(locate(file, io.cwd), file);
  try {
    await parsePolicy(text, { name });
  } catch (error) {
    if (!json || errorCode(error) === undefined) throw new DocumentFailure(name, error);
    writeJson(io, { file: name, ok: false, errors: (error as PreampError).details }); // ours, by its code
    return EXIT.plan_invalid;
  }
  if (json) writeJson(io, { file: name, ok: true, errors: [] });
  else io.out.write(`${name}: ok\n`);
  return EXIT.done;
}
