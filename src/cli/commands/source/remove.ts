/** `preamp source remove`: removes the override of a source. */
import { adviceFor, type Arguments, formatFlags, UsageError } from "../../arguments.ts";
import type { Answer, Command } from "../../commands.ts";
import { chosenSources, readSources, textsOf, USER_FLAG, writeSources } from "../../source_files.ts";
import type { Io } from "../../terminal/io.ts";

export const command: Command = {
  usage: "source remove [--user] <id>",
  summary: "Removes a source override: the source in the plan applies again.",
  flags: [
    USER_FLAG,
    ...formatFlags({ help: "nothing (default), or {id, source, scope} of what was removed" }),
  ],
  run,
};

async function run(args: Arguments, io: Io): Promise<Answer> {
  const [id, ...more] = args.rest;
  if (id === undefined || more.length > 0) {
    throw new UsageError("Cannot remove a source: write preamp source remove <id>");
  }
  const file = chosenSources(args, io);
  const { [id]: known, ...remaining } = textsOf(await readSources(file));
  if (known === undefined) {
    const fact = `${file.name} has no override for ${JSON.stringify(id)}`;
    const advice = adviceFor(id, Object.keys(remaining), "preamp source list lists all");
    throw new UsageError(`Cannot remove a source: ${fact}; ${advice}`);
  }
  const notes = await writeSources(file, remaining, io);
  return { data: { id, source: known, scope: file.scope }, text: "", notes };
}
