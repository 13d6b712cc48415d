/** `preamp config`: describes the settings of `preamp.yaml` and checks settings files. */
import { parsePolicy } from "../../policy/parse_policy.ts";
import { exampleDocument, referencePage } from "../../policy/reference.ts";
import { errorCode, type PreampError } from "../../sdk/errors.ts";
import { type Arguments, UsageError } from "../arguments.ts";
import type { Command } from "../command.ts";
import { DocumentFailure, EXIT } from "../errors.ts";
import { locate, readNamed } from "../paths.ts";
import type { Io } from "../terminal/io.ts";
import { formatFlags, wantsJson, writeJson } from "../output_format.ts";
import { DEFAULT_CONFIG } from "../settings.ts";

/** `preamp config example`. */
export const example: Command = {
  usage: "config example",
  summary: "Prints a preamp.yaml with every setting, its meaning and its default.",
  flags: [],
  run: (args, io) => printText(args, io, exampleDocument()),
};

/** `preamp config reference`. */
export const reference: Command = {
  usage: "config reference",
  summary: "Prints the reference of all settings as Markdown.",
  flags: [],
  run: (args, io) => printText(args, io, referencePage()),
};

/** `preamp config check`. */
export const check: Command = {
  usage: "config check [flags] [file]",
  summary: `Checks a settings file, default ${DEFAULT_CONFIG}, without variables and flags. \`-\` is stdin.`,
  flags: formatFlags({ help: "text (default), or {file, ok, errors}" }),
  details: () => "Exit codes: 0 the file is valid, 2 it does not exist, 3 it is invalid.\n",
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
  if (rest.length > 1) throw new UsageError("Cannot check more than one file at a time");
  const [file = DEFAULT_CONFIG] = rest;
  const name = file === "-" ? "<stdin>" : file;
  const text = file === "-" ? await io.in.text() : await readNamed(locate(file, io.cwd), file);
  try {
    await parsePolicy(text, { name });
  } catch (error) {
    if (!json || errorCode(error) === undefined) throw new DocumentFailure(name, error);
    writeJson(io, { file: name, ok: false, errors: (error as PreampError).details }); // identified by its code
    return EXIT.plan_invalid;
  }
  if (json) writeJson(io, { file: name, ok: true, errors: [] });
  else io.out.write(`${name}: ok\n`);
  return EXIT.done;
}
