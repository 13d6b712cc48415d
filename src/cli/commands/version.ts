/** `preamp version`: which program this is. `preamp --version` is the same. */
import manifest from "../../../deno.json" with { type: "json" };
import type { Arguments } from "../arguments.ts";
import type { Command } from "../command.ts";
import { EXIT } from "../exit.ts";
import type { Io } from "../terminal/io.ts";
import { formatFlags, wantsJson, writeJson } from "../output_format.ts";
import { UsageError } from "../usage_error.ts";

/** The command. */
export const command: Command = {
  usage: "version [flags]",
  summary: "Prints the version of this program, of its runtime, and the machine it is made for.",
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
