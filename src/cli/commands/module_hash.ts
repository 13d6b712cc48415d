/** `preamp module hash`: prints the files of a module and the digest that pins it, without executing it. */
import type { Arguments, Flag } from "../arguments.ts";
import type { Command } from "../command.ts";
import { EXIT } from "../errors.ts";
import type { Io } from "../terminal/io.ts";
import { displayPath, readTarget, warnOfRefusedImports, withLoader } from "../module_target.ts";
import { formatFlags, wantsJson, writeJson } from "../output_format.ts";
import { policyFlags, readSettings, settingFlags } from "../settings.ts";
import { styleOf, tableText } from "../terminal/format.ts";

const OWN_FLAGS: readonly Flag[] = [
  ...formatFlags({
    help: "text (default), or {url, integrity, exports, uses, imports_refused, files}",
  }),
  ...settingFlags(),
];

/** The command. */
export const command: Command = {
  usage: "module hash [flags] <path|url>",
  summary: "Prints the digest that pins a module (`integrity` in a plan) and its files, without running it.",
  flags: [...OWN_FLAGS, ...policyFlags(OWN_FLAGS)],
  run,
};

async function run(args: Arguments, io: Io): Promise<number> {
  const json = wantsJson(args);
  const { policy } = await readSettings(args, io);
  const target = await readTarget(args, io, policy, "hash");
  const graph = await withLoader((loader) => loader.bundle(target.spec, target.context));
  if (json) {
    const { url, integrity, exports, uses, imports_refused, files } = graph;
    writeJson(io, { url, integrity, exports, uses, imports_refused, files });
    return EXIT.done;
  }
  const { dim } = styleOf(io.out);
  const rows = graph.files.map(({ url, sha256, bytes }) => [sha256, String(bytes), displayPath(url, io)]);
  io.out.write(`${graph.integrity}\n${dim(tableText([["sha256", "bytes", "file"], ...rows], "  "))}`);
  warnOfRefusedImports(graph, io);
  return EXIT.done;
}
