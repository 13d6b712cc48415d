/** `preamp source remove`: removes a source override. */
import { didYouMean } from "../../sdk/did_you_mean.ts";
import { type Arguments, UsageError } from "../arguments.ts";
import type { Command } from "../command.ts";
import { EXIT } from "../errors.ts";
import type { Io } from "../terminal/io.ts";
import { formatFlags, wantsJson, writeJson } from "../output_format.ts";
import { chosenSources, readSources, textsOf, USER_FLAG, writeSources } from "../source_store.ts";

/** The command. */
export const command: Command = {
  usage: "source remove [--user] <id>",
  summary: "Removes a source override: the source in the plan applies again.",
  flags: [
    USER_FLAG,
    ...formatFlags({ help: "nothing (default), or {id, source, scope} of what was removed" }),
  ],
  run,
};

async function run(args: Arguments, io: Io): Promise<number> {
  const json = wantsJson(args);
  const [id, ...more] = args.rest;
  if (id === undefined || more.length > 0) {
    throw new UsageError("Cannot remove a source: write preamp source remove <id>");
  }
  const file = chosenSources(args, io);
  const { [id]: known, ...remaining } = textsOf(await readSources(file));
  if (known === undefined) {
    const meant = didYouMean(id, Object.keys(remaining));
    throw new UsageError(
      `Cannot remove a source: ${file.name} has no override for ${JSON.stringify(id)}${
        meant === undefined ? "; preamp source list lists all" : `; did you mean "${meant}"?`
      }`,
    );
  }
  await writeSources(file, remaining);
  if (json) writeJson(io, { id, source: known, scope: file.scope });
  return EXIT.done;
}
