/** `preamp module hash`: prints the digest that pins a module. It executes no module. */
import { formatFlags } from "../../arguments.ts";
import type { Command } from "../../commands.ts";
import { displayPath, readTarget, warnOfRefusedImports, withLoader } from "../../module_target.ts";
import { reportedSettings, withSettings } from "../../settings.ts";
import { styleOf, tableText } from "../../terminal/format.ts";

export const command: Command = {
  usage: "module hash [flags] <path|url>",
  summary: "Prints the digest that pins a module (`integrity` in a plan) and its files, without running it.",
  flags: withSettings(formatFlags({
    help: "text (default), or {url, integrity, exports, uses, imports_refused, files}",
  })),
  async run(args, io) {
    const { policy } = await reportedSettings(args, io);
    const { spec, context } = await readTarget(args, io, policy, "hash");
    const graph = await withLoader((loader) => loader.bundle(spec, context));
    warnOfRefusedImports(graph, io);
    const { url, integrity, exports, uses, imports_refused, files } = graph;
    const rows = files.map(({ url, sha256, bytes }) => [sha256, String(bytes), displayPath(url, io)]);
    const table = styleOf(io.out).dim(tableText([["sha256", "bytes", "file"], ...rows], "  "));
    return {
      data: { url, integrity, exports, uses, imports_refused, files },
      text: `${integrity}\n${table}`,
    };
  },
};
