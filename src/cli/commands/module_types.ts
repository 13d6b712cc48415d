/** `preamp module types`: writes the SDK's types and test kit for editors, `deno check` and `deno test`. */
import { errorMessage } from "../../sdk/errors.ts";
import { type Arguments, UsageError } from "../arguments.ts";
import type { Command } from "../command.ts";
import { EXIT } from "../errors.ts";
import { locate, readOptional } from "../paths.ts";
import type { Io } from "../terminal/io.ts";
import { formatFlags, wantsJson, writeJson } from "../output_format.ts";
import { denoJson, isMapped, SDK_IMPORTS, writeSdkFiles } from "../sdk_files.ts";

/** The command. */
export const command: Command = {
  usage: "module types [folder]",
  summary:
    "Writes the SDK's types and test kit into .preamp/sdk, and a deno.json if there is no deno.json yet.",
  flags: formatFlags({ help: "text (default), or {folder, written, imports}" }),
  details: () =>
    `Run it with the executable in a cloned folder, and again after an update of the program. Git ignores .preamp/sdk.
deno.json maps "preamp", "preamp/base", "preamp/loop", "preamp/context", "preamp/provider", "preamp/testing" and "zod" to its
files; no network is needed.
`,
  run,
};

async function run(args: Arguments, io: Io): Promise<number> {
  const [name = ".", more] = args.rest;
  if (more !== undefined) throw new UsageError(`Cannot use ${JSON.stringify(more)}: one folder at a time`);
  const json = wantsJson(args);
  if (!Deno.build.standalone) {
    if (json) writeJson(io, { folder: name, written: false, imports: {} });
    else {io.out.write(
        "Nothing to write: this program runs from its sources, and module new maps them in deno.json.\n",
      );}
    return EXIT.done;
  }
  const folder = locate(`${name.replace(/(?<=.)\/+$/, "")}/`, io.cwd);
  const config = new URL("deno.json", folder);
  const written = await readOptional(config, "deno.json") !== undefined;
  try {
    await writeSdkFiles(folder);
    if (!written) await Deno.writeTextFile(config, denoJson(SDK_IMPORTS), { createNew: true });
  } catch (error) {
    throw new UsageError(`Cannot write into ${JSON.stringify(name)}: ${errorMessage(error)}`, {
      cause: error,
    });
  }
  if (json) {
    writeJson(io, { folder: name, written: true, imports: SDK_IMPORTS });
    return EXIT.done;
  }
  io.out.write(`The SDK is in ${name === "." ? "" : `${name}/`}.preamp/sdk\n`);
  if (!await isMapped(folder)) {
    io.out.write(`Add this to deno.json:\n${JSON.stringify({ imports: SDK_IMPORTS }, null, 2)}\n`);
  }
  return EXIT.done;
}
