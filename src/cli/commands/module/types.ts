/** `preamp module types`: writes the SDK for module authors into `.preamp/sdk` of a folder. */
import { type Arguments, formatFlags } from "../../arguments.ts";
import { denoJson, folderUrl, isMapped, SDK_IMPORTS, writeSdkFiles } from "../../author_files.ts";
import type { Answer, Command } from "../../commands.ts";
import { readOptional, writeFailure } from "../../../settings/paths.ts";
import type { Io } from "../../terminal/io.ts";

export const command: Command = {
  usage: "module types [folder]",
  summary:
    "Writes the SDK's types and test kit into .preamp/sdk, and a deno.json if there is no deno.json yet.",
  flags: formatFlags({ help: "text (default), or {folder, written, imports}" }),
  details: () =>
    `Run it with the executable in a cloned folder, and again after an update of the program. Git ignores .preamp/sdk.
deno.json maps "preamp", "preamp/base", "preamp/loop", "preamp/context", "preamp/provider", "preamp/web", "preamp/testing" and "zod" to its
files; no network is needed.
`,
  max_arguments: 1,
  run,
};

async function run({ rest: [name = "."] }: Arguments, io: Io): Promise<Answer> {
  if (!Deno.build.standalone) {
    const text =
      "Nothing to write: this program runs from its sources, and module new maps them in deno.json.\n";
    return { data: { folder: name, written: false, imports: {} }, text };
  }
  const folder = folderUrl(name, io);
  const config = new URL("deno.json", folder);
  const has_config = await readOptional(config, "deno.json") !== undefined;
  let written: string;
  try {
    written = await writeSdkFiles(folder);
    if (!has_config) await Deno.writeTextFile(config, denoJson(SDK_IMPORTS, "./mod.ts"), { createNew: true });
  } catch (error) {
    throw writeFailure(name, error);
  }
  const advice = await isMapped(folder)
    ? ""
    : `Add this to deno.json:\n${JSON.stringify({ imports: SDK_IMPORTS }, null, 2)}\n`;
  const text = `The SDK is in ${name === "." ? "" : `${name}/`}${written.slice(0, -1)}\n${advice}`;
  return { data: { folder: name, written: true, imports: SDK_IMPORTS }, text };
}
