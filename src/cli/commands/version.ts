/** `preamp version`: prints the version of the program. `preamp --version` does the same. */
import manifest from "../../../deno.json" with { type: "json" };
import { type Arguments, UsageError } from "../arguments.ts";
import type { Command } from "../command.ts";
import { EXIT } from "../errors.ts";
import type { Io } from "../terminal/io.ts";
import { formatFlags, wantsJson, writeJson } from "../output_format.ts";

/** The command. */
export const command: Command = {
  usage: "version [flags]",
  summary: "Prints the versions of this program, Deno and V8, and the target platform.",
  flags: formatFlags({ help: "text (default), or {version, deno, v8, typescript, target}" }),
  run,
};

function run(args: Arguments, io: Io): Promise<number> {
  if (args.rest.length > 0) {
    throw new UsageError(`Cannot use ${JSON.stringify(args.rest[0])}: version takes flags only`);
  }
  const { version } = manifest;
  const { deno, v8, typescript } = Deno.version;
  const { target } = Deno.build;
  if (wantsJson(args)) writeJson(io, { version, deno, v8, typescript, target });
  else io.out.write(`preamp ${version} (deno ${deno}, v8 ${v8}, ${target})\n`);
  return Promise.resolve(EXIT.done);
}
