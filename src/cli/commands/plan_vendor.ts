/** `preamp plan vendor`: writes a plan with its modules as bundles beside it. Executes none. */
import type { Vendored, VendoredModule } from "../../app/types.ts";
import { canonicalJson, type JsonObject } from "../../sdk/json.ts";
import { escapeUnprintable } from "../../text/escape.ts";
import { type Arguments, type Flag, UsageError } from "../arguments.ts";
import { type Command, TERMINAL } from "../command.ts";
import { DocumentFailure, EXIT } from "../errors.ts";
import { displayPath } from "../module_target.ts";
import { formatFlags, wantsJson, writeJson } from "../output_format.ts";
import { filePath, locate } from "../paths.ts";
import { readPlans } from "../plan_files.ts";
import { policyFlags, settingFlags } from "../settings.ts";
import { styleOf } from "../terminal/format.ts";
import type { Io } from "../terminal/io.ts";
import { PLAN_FLAG, planNames, withRuntime } from "./plan_command.ts";

const DEFAULT_FOLDER = "vendor";

const OWN_FLAGS: readonly Flag[] = [
  PLAN_FLAG,
  {
    name: "output",
    short: "o",
    value: "DIR",
    help: `folder of the vendored plan, default ${DEFAULT_FOLDER}/ beside the plan`,
  },
  ...formatFlags({ help: "text (default), or {plan, status, modules, files}" }),
  ...settingFlags(),
];

/** The command. */
export const command: Command = {
  usage: "plan vendor [flags] <file>…",
  summary:
    "Writes the plan to DIR and each of its modules as one bundle to DIR/modules. Fetches modules, runs none.",
  flags: [...OWN_FLAGS, ...policyFlags(OWN_FLAGS)],
  details: () =>
    `The vendored plan needs neither network nor bundler: its sources are relative paths, each pinned by its integrity. Texts
that it names (system: {file}) are copied to DIR/files, and relative paths of permissions lead to the same places.
With --modules.inline DIR/modules/ (or modules.inline in preamp.yaml) its modules run without a sandbox, which needs no
permission to start processes. "preamp docs deploy" shows how to deploy it.
Exit codes: 0 written, or up to date; 1 a module cannot be loaded; 3 the plan or its lock is invalid; 4 refused by policy.
`,
  run,
};

/** A module in the JSON result. */
type ModuleAnswer = Omit<VendoredModule, "code"> & { bytes: number };

async function run(args: Arguments, io: Io): Promise<number> {
  const names = planNames(args, "vendor");
  const json = wantsJson(args);
  const { name, plan, base_url } = await readPlans(names, io);
  const output = args.value("output");
  const folder = output === undefined
    ? new URL(`${DEFAULT_FOLDER}/`, base_url)
    : locate(`${output}/`, io.cwd);
  const target = new URL(targetName(base_url), folder);
  if (target.href === base_url) {
    throw new UsageError("Cannot write the vendored plan over the plan itself: name another folder with -o");
  }
  const vendored = await withRuntime(args, io, async ({ plans }) => {
    try {
      return await plans.vendor({ plan }, TERMINAL, { base_url, target_url: target.href });
    } catch (error) {
      throw new DocumentFailure(name, error);
    }
  });
  warnOfRefusedImports(vendored, io);
  const changed = await writeAll(vendored, target, base_url, io);
  const status = changed ? "written" : "unchanged";
  const modules = vendored.modules.map(({ code, ...module }): ModuleAnswer => ({
    ...module,
    bytes: new TextEncoder().encode(code).length,
  }));
  const files = vendored.files.map(({ path }) => path);
  if (json) writeJson(io, { plan: filePath(target), status, modules, files });
  else writeText(io, target, status, modules);
  return EXIT.done;
}

/** Returns the name of the vendored plan: that of the plan, such as `plan.yaml`. */
function targetName(base_url: string): string {
  const name = base_url.slice(base_url.lastIndexOf("/") + 1);
  return /\.(ya?ml|json)$/i.test(name) ? name : "plan.yaml";
}

function warnOfRefusedImports({ modules }: Vendored, io: Io): void {
  for (const { specifier, url, line, column } of modules.flatMap((module) => module.imports_refused)) {
    const label = specifier === null ? "a computed import" : `import of ${JSON.stringify(specifier)}`;
    const place = escapeUnprintable(`${displayPath(url, io)}:${line}:${column}: ${label}`);
    io.err.write(`warning: ${place} throws when it is executed\n`);
  }
}

/** Writes the files that differ, the plan last: until then the plan that was there before does not change. Returns whether one did. */
async function writeAll(
  { plan, modules, files }: Vendored,
  target: URL,
  base_url: string,
  io: Io,
): Promise<boolean> {
  let changed = false;
  const write = async (path: string, bytes: Uint8Array<ArrayBuffer>) => {
    const url = new URL(path.split("/").map(encodeURIComponent).join("/"), target);
    try {
      if (await hasBytes(url, bytes)) return;
      await Deno.mkdir(new URL(".", url), { recursive: true });
      await Deno.writeFile(url, bytes);
      changed = true;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new UsageError(`Cannot write ${JSON.stringify(displayPath(url.href, io))}: ${reason}`, {
        cause: error,
      });
    }
  };
  for (const { path, code } of modules) await write(path, new TextEncoder().encode(code));
  for (const { path, url } of files) await write(path, await Deno.readFile(new URL(url)));
  const name = decodeURIComponent(target.pathname.slice(target.pathname.lastIndexOf("/") + 1));
  const text = name.endsWith(".json") ? `${JSON.stringify(plan, null, 2)}\n` : await yamlOf(plan, base_url);
  await write(name, new TextEncoder().encode(text));
  return changed;
}

async function hasBytes(url: URL, bytes: Uint8Array): Promise<boolean> {
  try {
    const there = await Deno.readFile(url);
    return there.length === bytes.length && there.every((byte, index) => byte === bytes[index]);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

/** Resolves to a plan as YAML that reads back as the same data; as JSON, which is YAML too, where YAML would not. */
async function yamlOf(plan: JsonObject, base_url: string): Promise<string> {
  const [{ dump }, { parsePlanText }] = await Promise.all([
    import("js-yaml"),
    import("../../plan/parse/parse.ts"),
  ]);
  const source = decodeURIComponent(base_url.slice(base_url.lastIndexOf("/") + 1)).replaceAll(/\p{C}/gu, "?");
  const head = `# Written by preamp plan vendor from ${source}: change that file and repeat the command.\n`;
  const text = dump(plan, { lineWidth: 110, noRefs: true });
  const same = await parsePlanText(text).then(
    ({ data }) => canonicalJson(data) === canonicalJson(plan),
    () => false,
  );
  return head + (same ? text : `${JSON.stringify(plan, null, 2)}\n`);
}

function writeText(io: Io, target: URL, status: string, modules: readonly ModuleAnswer[]): void {
  const { bold, green } = styleOf(io.out);
  const show = (url: URL) => escapeUnprintable(displayPath(url.href, io));
  io.out.write(`${green(status)}  ${bold(show(target))}\n`);
  for (const { path, bytes, url } of modules) {
    const from = escapeUnprintable(displayPath(url, io).slice(0, 200));
    io.out.write(`  ${show(new URL(path, target))}  ${bytes} bytes, from ${from}\n`);
  }
  if (modules.length === 0) io.out.write("Every module is built in: there was nothing to bundle\n");
}
