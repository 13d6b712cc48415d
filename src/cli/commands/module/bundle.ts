/** `preamp module bundle`: bundles a module into one file. It executes no module. */
import { publishable } from "../../../loader/bundler/publishable_bundle.ts";
import { type Arguments, formatFlags, UsageError } from "../../arguments.ts";
import type { Answer, Command } from "../../commands.ts";
import { readTarget, warnOfRefusedImports, withLoader } from "../../module_target.ts";
import { locate, writeFailure } from "../../../settings/paths.ts";
import { reportedSettings, withSettings } from "../../settings.ts";
import { counted } from "../../terminal/format.ts";
import type { Io } from "../../terminal/io.ts";

export const command: Command = {
  usage: "module bundle [flags] <path|url>",
  summary: "Bundles a module and its imports into one ES module with a source map, without running it.",
  flags: withSettings([
    { name: "output", short: "o", value: "FILE", help: "output file, default stdout" },
    ...formatFlags({
      help: "the code (default), or {url, integrity, bytes, files, imports_refused, output, code}",
    }),
  ]),
  details: () =>
    `What a module imports as "preamp", "preamp/base", "preamp/loop", "preamp/context", "preamp/provider", "preamp/web", "preamp/testing" or
"zod" remains an import: the runtime provides it. Everything else is included.
`,
  run,
};

async function run(args: Arguments, io: Io): Promise<Answer> {
  const { policy } = await reportedSettings(args, io);
  const { spec, context } = await readTarget(args, io, policy, "bundle");
  const bundle = await withLoader((loader) => loader.bundle(spec, context));
  warnOfRefusedImports(bundle, io);
  const { url, integrity, files, imports_refused } = bundle;
  const code = publishable(bundle);
  const bytes = new TextEncoder().encode(code).length;
  const facts = { url, integrity, bytes, files, imports_refused };
  const output = args.value("output");
  if (output === undefined) return { data: { ...facts, output: null, code }, text: code };
  const file = locate(output, io.cwd);
  if (files.some(({ url }) => url === file.href)) {
    throw new UsageError(
      `Cannot write ${JSON.stringify(output)}: it is a file of the module; choose another name`,
    );
  }
  try {
    await Deno.mkdir(new URL(".", file), { recursive: true });
    await Deno.writeTextFile(file, code);
  } catch (error) {
    throw writeFailure(output, error);
  }
  const notes = `${output}: ${bytes} bytes from ${counted(files.length, "file")}\n`;
  return { data: { ...facts, output, code: null }, text: "", notes };
}
