/** `preamp config check`: checks a settings file. */
import { parsePolicy } from "../../../policy/parse_policy.ts";
import { errorCode, type PreampError } from "../../../sdk/errors.ts";
import { formatFlags, formatOf } from "../../arguments.ts";
import type { Command } from "../../commands.ts";
import { DocumentFailure } from "../../../settings/errors.ts";
import { EXIT } from "../../errors.ts";
import { readInput } from "../../../settings/paths.ts";
import { SETTINGS_FILE } from "../../folder/folder_files.ts";

export const command: Command = {
  usage: "config check [flags] [file]",
  summary: `Checks a settings file, default ${SETTINGS_FILE}, without variables and flags. \`-\` is stdin.`,
  flags: formatFlags({ help: "text (default), or {file, ok, errors}" }),
  details: () => "Exit codes: 0 the file is valid, 2 it does not exist, 3 it is invalid.\n",
  max_arguments: 1,
  async run(args, io) {
    const { name, text } = await readInput(args.rest[0] ?? SETTINGS_FILE, io);
    try {
      await parsePolicy(text, { name });
    } catch (error) {
      if (formatOf(args) !== "json" || errorCode(error) === undefined) {
        throw new DocumentFailure(name, error);
      }
      const { details } = error as PreampError; // identified by its code
      return { data: { file: name, ok: false, errors: details }, text: "", exit: EXIT.plan_invalid };
    }
    return { data: { file: name, ok: true, errors: [] }, text: `${name}: ok\n` };
  },
};
