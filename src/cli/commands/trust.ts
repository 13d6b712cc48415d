/** `preamp trust`: decides about the files of a folder that act without being named. */
import { escapeUnprintable } from "../../text/escape.ts";
import { type Arguments, formatFlags, UsageError } from "../arguments.ts";
import { folderUrl } from "../author_files.ts";
import type { Answer, Command } from "../commands.ts";
import { EXIT } from "../errors.ts";
import { decidedFolders, forgetFolder, sentencesText, trustFolder } from "../folder/folder.ts";
import type { Io } from "../terminal/io.ts";

export const command: Command = {
  usage: "trust [flags] [folder]",
  summary:
    "Trusts the files of a folder that act without being named, as they are now; default: this folder.",
  flags: [
    { name: "list", help: "list the folders that you have decided about" },
    { name: "undo", help: "forget what you have decided about the folder" },
    ...formatFlags({ help: "text (default), or {folder, files, trusted}; {data} with --list" }),
  ],
  details: () =>
    `These files are preamp.yaml, .env, .preamp/sources.yaml and plans/. Until you trust a folder they are ignored. What you
trust is kept in $PREAMP_HOME with the digests of the files: a file that changes is ignored until you have seen it
again. At a terminal every command asks once, and so does this one; elsewhere this command is your word.
PREAMP_TRUST=1 trusts the folder in which a program is started, such as in a container.

  preamp trust
  preamp trust ~/project
  preamp trust --list
  preamp trust --undo ~/project
`,
  max_arguments: 1,
  run,
};

async function run(args: Arguments, io: Io): Promise<Answer> {
  const [name] = args.rest;
  if (args.has("list")) {
    if (name !== undefined || args.has("undo")) throw new UsageError("Cannot use --list with anything else");
    return await list(io);
  }
  const url = folderUrl(name ?? ".", io);
  if (args.has("undo")) return await undo(url, io);
  const info = await Deno.stat(url).catch(() => null);
  if (!info?.isDirectory) {
    throw new UsageError(`Cannot trust ${JSON.stringify(name ?? ".")}: there is no such folder`);
  }
  const decision = await trustFolder(url, io);
  const { folder, files, trusted } = decision;
  const path = escapeUnprintable(folder);
  const said = files.length === 0
    ? `${path} has no files that act without being named.\n`
    : trusted
    ? `Trusted until one of these files changes: ${path}\n${sentencesText(files, io.out)}`
    : `Not trusted: ${path}\n`;
  return { data: decision, text: said, exit: trusted ? EXIT.done : EXIT.refused };
}

async function undo(url: URL, io: Io): Promise<Answer> {
  const { folder, known } = await forgetFolder(url, io);
  const path = escapeUnprintable(folder);
  if (known) return { data: { folder, trusted: false }, text: `Not trusted any more: ${path}\n` };
  throw new UsageError(
    `Cannot undo: nothing was decided about ${path}; preamp trust --list lists the folders`,
  );
}

async function list(io: Io): Promise<Answer> {
  const data = await decidedFolders(io);
  const line = (label: string, names: readonly string[]) =>
    names.length === 0 ? "" : `  ${label}: ${names.map(escapeUnprintable).join(", ")}\n`;
  const text = data.map(({ folder, trusted, untrusted, allowed }) =>
    `${escapeUnprintable(folder)}\n${line("trusted", trusted)}${line("ignored", untrusted)}` +
    line("chat asks no more about", allowed)
  );
  return { data: { data }, text: text.join("") };
}
