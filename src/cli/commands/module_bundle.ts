/** `preamp module bundle`: bundles a module into one ES module for publishing, without executing it. */
import { publishable } from "../../loader/bundler/publishable_bundle.ts";
import type { ModuleBundle } from "../../loader/types.ts";
import { type Arguments, type Flag, UsageError } from "../arguments.ts";
import type { Command } from "../command.ts";
import { EXIT } from "../errors.ts";
import { locate } from "../paths.ts";
import type { Io } from "../terminal/io.ts";
import { readTarget, warnOfRefusedImports, withLoader } from "../module_target.ts";
import { formatFlags, wantsJson, writeJson } from "../output_format.ts";
import { policyFlags, readSettings, settingFlags } from "../settings.ts";

const OWN_FLAGS: readonly Flag[] = [
  { name: "output", short: "o", value: "FILE", help: "output file, default stdout" },
  ...formatFlags({
    help: "the code (default), or {url, integrity, bytes, files, imports_refused, output, code}",
  }),
  ...settingFlags(),
];

/** The command. */
export const command: Command = {
  usage: "module bundle [flags] <path|url>",
  summary: "Bundles a module and its imports into one ES module with a source map, without running it.",
  flags: [...OWN_FLAGS, ...policyFlags(OWN_FLAGS)],
  details: () =>
    `What a module imports as "preamp", "preamp/base", "preamp/loop", "preamp/context", "preamp/provider", "preamp/testing" or
"zod" remains an import: the runtime provides it. Everything else is included.
`,
  run,
};

async function run(args: Arguments, io: Io): Promise<number> {
  const json = wantsJson(args);
  const { policy } = await readSettings(args, io);
  const target = await readTarget(args, io, policy, "bundle");
  const bundle = await withLoader((loader) => loader.bundle(target.spec, target.context));
  const code = publishable(bundle);
  warnOfRefusedImports(bundle, io);
  const output = args.value("output");
  if (output !== undefined) await writeCode(output, code, bundle, io);
  const { url, integrity, files, imports_refused } = bundle;
  const bytes = new TextEncoder().encode(code).length;
  if (json) {
    const where = output === undefined ? { output: null, code } : { output, code: null };
    writeJson(io, { url, integrity, bytes, files, imports_refused, ...where });
  } else if (output === undefined) io.out.write(code);
  else {
    const count = `${files.length} ${files.length === 1 ? "file" : "files"}`;
    io.err.write(`${output}: ${bytes} bytes from ${count}\n`);
  }
  return EXIT.done;
}

async function writeCode(
  output: string,
  code: string,
  { files }: Pick<ModuleBundle, "files">,
  { cwd }: Io,
): Promise<void> {
  const file = locate(output, cwd);
  if (files.some(({ url }) => url === file.href)) {
    throw new UsageError(
      `Cannot write ${JSON.stringify(output)}: it is a file of the module; choose another name`,
    );
  }
  try {
    await Deno.writeTextFile(file, code);
  } catch (error) {
    const why = error instanceof Deno.errors.NotFound
      ? "its folder does not exist"
      : (error as Error).message;
    throw new UsageError(`Cannot write ${JSON.stringify(output)}: ${why}`, { cause: error });
  }
}
