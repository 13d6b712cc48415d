/** `preamp plan vendor`: writes a plan with its modules as bundles beside it. Executes none. */
import type { Vendored, VendoredModule } from "../../../app/types.ts";
import type { JsonObject } from "../../../sdk/json.ts";
import { escapeUnprintable } from "../../../text/escape.ts";
import { type Arguments, formatFlags, UsageError } from "../../arguments.ts";
import type { Answer, Command } from "../../commands.ts";
import { TERMINAL } from "../../terminal_caller.ts";
import { inDocument } from "../../errors.ts";
import { displayPath, warnOfRefusedImports } from "../../module_target.ts";
import { filePath, locate, writeFailure } from "../../../settings/paths.ts";
import { PLAN_FLAG, planNames, readPlans, withPlans } from "../../plan_files.ts";
import { withSettings } from "../../settings.ts";
import { styleOf } from "../../terminal/format.ts";
import type { Io } from "../../terminal/io.ts";

const DEFAULT_FOLDER = "vendor";

export const command: Command = {
  usage: "plan vendor [flags] <file>…",
  summary:
    "Writes the plan to DIR and each of its modules as one bundle to DIR/modules. Fetches modules, runs none.",
  flags: withSettings([
    PLAN_FLAG,
    {
      name: "output",
      short: "o",
      value: "DIR",
      help: `folder of the vendored plan, or its file; default ${DEFAULT_FOLDER}/ beside the plan`,
    },
    { name: "inline", help: "trust the modules: they run inside the program, without sandboxes" },
    ...formatFlags({ help: "text (default), or {plan, status, modules, files}" }),
  ]),
  details: () =>
    `The vendored plan needs neither network nor bundler: its sources are relative paths, each pinned by its integrity. Texts
that it names (system: {file}) are copied to DIR/files, and relative paths of permissions lead to the same places.
Modules run in sandboxes as before. With --inline the plan says "isolation: inline" beside each integrity: exactly these
bytes then run inside the program, with all that it may do, and need no child process. Read DIR/modules first.
"preamp docs deploy" shows how to deploy it.
Exit codes: 0 written, or up to date; 1 a module cannot be loaded; 3 the plan or its lock is invalid; 4 refused by policy.
`,
  run,
};

/** A module in the JSON result. */
type ModuleAnswer = Omit<VendoredModule, "code"> & { bytes: number };

async function run(args: Arguments, io: Io): Promise<Answer> {
  const { name, plan, base_url } = await readPlans(planNames(args, "vendor"), io);
  const output = args.value("output");
  const names_file = output !== undefined && PLAN_NAME.test(output);
  const folder = output === undefined
    ? new URL(`${DEFAULT_FOLDER}/`, base_url)
    : locate(`${output}/`, io.cwd);
  const target = names_file ? locate(output, io.cwd) : new URL(targetName(base_url), folder);
  if (target.href === base_url) {
    throw new UsageError("Cannot write the vendored plan over the plan itself: name another folder with -o");
  }
  const inline = args.has("inline");
  const vendored = await withPlans(
    args,
    io,
    ({ vendor }) =>
      inDocument(name, vendor({ plan }, TERMINAL, { base_url, target_url: target.href, inline })),
  );
  for (const module of vendored.modules) warnOfRefusedImports(module, io);
  const status = await writeAll(vendored, target, base_url, io) ? "written" : "unchanged";
  const modules = vendored.modules.map(({ code, ...module }): ModuleAnswer => ({
    ...module,
    bytes: new TextEncoder().encode(code).length,
  }));
  const files = vendored.files.map(({ path }) => path);
  return {
    data: { plan: filePath(target), status, modules, files },
    text: answerText(io, target, status, modules) + (inline && modules.length > 0 ? INSIDE : ""),
  };
}

/** Matches the name of a plan's file. */
const PLAN_NAME = /\.(ya?ml|json)$/i;

const INSIDE =
  "These modules run inside the program, with all that it may do: read them before you trust the plan\n";

/** Returns the name of the vendored plan: that of the plan, such as `plan.yaml`. */
function targetName(base_url: string): string {
  const name = base_url.slice(base_url.lastIndexOf("/") + 1);
  return PLAN_NAME.test(name) ? name : "plan.yaml";
}

/**
 * Writes the files that differ, the plan last: until then the plan that was there before does not change.
 * Returns whether one did.
 */
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
      throw writeFailure(displayPath(url.href, io), error);
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

async function yamlOf(plan: JsonObject, base_url: string): Promise<string> {
  const { planText } = await import("../../../plan/plan_text.ts");
  const source = decodeURIComponent(base_url.slice(base_url.lastIndexOf("/") + 1)).replaceAll(/\p{C}/gu, "?");
  const head = `# Written by preamp plan vendor from ${source}: change that file and repeat the command.\n`;
  return head + await planText(plan);
}

function answerText(io: Io, target: URL, status: string, modules: readonly ModuleAnswer[]): string {
  const { bold, green } = styleOf(io.out);
  const show = (url: URL) => escapeUnprintable(displayPath(url.href, io));
  const lines = modules.map(({ path, bytes, url }) => {
    const from = escapeUnprintable(displayPath(url, io).slice(0, 200));
    return `  ${show(new URL(path, target))}  ${bytes} bytes, from ${from}\n`;
  });
  const rest = lines.join("") || "Every module is built in: there was nothing to bundle\n";
  return `${green(status)}  ${bold(show(target))}\n${rest}`;
}
