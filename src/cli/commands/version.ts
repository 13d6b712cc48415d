/** `preamp version`. */
import manifest from "../../../deno.json" with { type: "json" };
import { formatFlags } from "../arguments.ts";
import type { Command } from "../commands.ts";

export const command: Command = {
  usage: "version [flags]",
  summary: "Prints the versions of this program, Deno and V8, and the target platform.",
  flags: formatFlags({ help: "text (default), or {version, deno, v8, typescript, target}" }),
  max_arguments: 0,
  run() {
    const { version } = manifest;
    const { deno, v8, typescript } = Deno.version;
    const { target } = Deno.build;
    const text = `preamp ${version} (deno ${deno}, v8 ${v8}, ${target})\n`;
    return Promise.resolve({ data: { version, deno, v8, typescript, target }, text });
  },
};
