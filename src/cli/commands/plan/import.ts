/** `preamp plan import`: makes a plan of a bundle, or of a file of another program. Executes nothing. */
import { LOCK_FILE } from "../../../app/named_plans.ts";
import type { ImportedBundle } from "../../../app/types.ts";
import { commentedPlan } from "../../../bundle/commented_plan.ts";
import { type TextFile, withTextFiles } from "../../../bundle/long_texts.ts";
import { formatLock, type Lock, lockOver, parseLock } from "../../../plan/lock.ts";
import { DOCUMENT_LIMITS, exceedsBytes } from "../../../plan/parse/document_limits.ts";
import { planText } from "../../../plan/plan_text.ts";
import { escapeUnprintable } from "../../../text/escape.ts";
import { type Arguments, formatFlags, UsageError } from "../../arguments.ts";
import type { Answer, Command } from "../../commands.ts";
import { EXIT, inDocument } from "../../errors.ts";
import { planOfServers } from "../../mcp_json.ts";
import { locate, readInput, readOptional, replaceFile, writeFailure } from "../../../settings/paths.ts";
import { planData, withPlans } from "../../plan_files.ts";
import { withSettings } from "../../settings.ts";
import { counted, styleOf } from "../../terminal/format.ts";
import type { Io } from "../../terminal/io.ts";

export const command: Command = {
  usage: "plan import [flags] <bundle>|--mcp <file>",
  summary:
    "Makes one plan of a bundle, an agent or a profile of Amplifier, or of MCP servers. Executes nothing.",
  flags: withSettings([
    {
      name: "output",
      short: "o",
      value: "FILE",
      help: "file for the plan, which must not exist; default: stdout",
    },
    { name: "strict", help: "write nothing and exit 3 if something of the bundle is missing in the plan" },
    {
      name: "name",
      value: "NAME=SOURCE",
      many: true,
      help: "where the bundle NAME is, for includes and references that only name it",
    },
    { name: "update", help: "replace the plan, and accept fetched files that differ from the lock" },
    { name: "mcp", value: "FILE", help: "file with mcpServers, in place of a bundle; `-` is stdin" },
    ...formatFlags({
      help: "text (default), or {plan, modules, report, …}; of --mcp {plan, servers, notes}",
    }),
  ], ["frozen"]),
  details: () =>
    `<bundle> is a file (bundle.md, a YAML bundle, an agent's Markdown, a profile), a folder with bundle.md or with agents, the
URL of a file, or git+https://host/org/repo@ref#subdirectory=path. All that it includes becomes part of the plan: a comment above
each part says which files it came from. The report is on stderr: its first line says how many modules run here and how
many do not, then what was left out, and what to do about it (preamp docs amplifier).

Fetched files obey the rules of modules: public addresses, limits, and ${LOCK_FILE} beside the plan, which pins each.

  preamp plan import ./my-bundle -o plan.yaml
  preamp plan import git+https://github.com/org/repo@v1.0.0#subdirectory=bundles/coder -o coder.yaml
  preamp plan explain coder.yaml
  preamp chat -p coder.yaml -m anthropic/claude-sonnet-5-5

With --mcp the plan grants what its servers need, and asks before each call. A server that cannot be reached is left out
with a warning.

  preamp plan import --mcp .mcp.json -o servers.yaml
  preamp chat -p plans/coder.yaml -p servers.yaml

Exit codes: 0 done; 1 a file cannot be fetched; 3 the bundle is invalid, or --strict; 4 refused by policy.
`,
  max_arguments: 1,
  run,
};

async function run(args: Arguments, io: Io): Promise<Answer> {
  const file = args.value("mcp");
  const [bundle] = args.rest;
  if (file !== undefined && bundle !== undefined) {
    throw new UsageError("Cannot import both: name a bundle, or a file with --mcp");
  }
  if (file !== undefined) return await importServers(file, args, io);
  if (bundle === undefined) {
    throw new UsageError("Cannot import: name a bundle, such as ./bundle.md, or a file with --mcp FILE");
  }
  return await importBundle(bundle, args, io);
}

async function importBundle(source: string, args: Arguments, io: Io): Promise<Answer> {
  const output = args.value("output");
  const target = output === undefined ? undefined : locate(output, io.cwd);
  if (target && !args.has("update")) await refuseExisting(target, output!);
  const lock_url = target && new URL(LOCK_FILE, target);
  const lock_text = lock_url && await readOptional(lock_url, LOCK_FILE);
  const lock = lock_text === undefined ? undefined : await inDocument(LOCK_FILE, parseLock(lock_text));
  const imported = await inDocument(
    source,
    withPlans(args, io, (plans) =>
      plans.importBundle({
        source: sourceOf(source, io),
        names: namesOf(args, io),
        update: args.has("update"),
        ...(target ? { base_url: target.href } : {}),
        ...(lock ? { lock } : {}),
      })),
  );
  const { plan, files } = withTextFiles(imported.plan, `${stemOf(target)}.files`, MAX_PLAN_BYTES);
  const data = { ...imported, plan };
  const report = reportText(imported, source, io);
  const missing = imported.report.filter(({ level }) => level === "warning").length;
  if (args.has("strict") && missing > 0) {
    const error = `${styleOf(io.err).red("error:")} Cannot import it with --strict: ${
      counted(missing, "warning")
    }\n`;
    return { data, text: "", notes: report + error, exit: EXIT.plan_invalid };
  }
  if (files.length > 0 && !target) {
    throw new UsageError(
      `Cannot print the plan: its texts have more than ${MAX_PLAN_BYTES} bytes; name a file with -o, and they are written beside it`,
    );
  }
  const long = files.find(({ text }) => exceedsBytes(text, DOCUMENT_LIMITS.max_bytes));
  if (long) {
    throw new UsageError(
      `Cannot import ${
        JSON.stringify(source)
      }: the text for ${long.path} has more than ${DOCUMENT_LIMITS.max_bytes} bytes; leave out some of its context files`,
    );
  }
  const head = `# Made by preamp plan import of ${escapeUnprintable(source).slice(0, 300)}\n`;
  const text = target?.pathname.endsWith(".json")
    ? `${JSON.stringify(plan, null, 2)}\n`
    : head + await commentedPlan(plan, imported.parts);
  if (!target) return { data, text, notes: report };
  await writeAll(
    target,
    output!,
    text,
    files,
    lock_url!,
    imported.lock && (lock ? lockOver(imported.lock, lock) : imported.lock),
    args,
  );
  const beside = [
    ...files.length === 0 ? [] : [`${counted(files.length, "text")} in ${stemOf(target)}.files/`],
    ...imported.lock === null ? [] : [`${counted(imported.fetched, "fetched file")} in ${LOCK_FILE}`],
  ].map((part) => `, ${part}`).join("");
  return { data, text: `Written: ${escapeUnprintable(output!)}${beside}\n`, notes: report };
}

/** Bytes of a plan with its comments; longer texts are files beside it. */
const MAX_PLAN_BYTES = 200_000;

async function writeAll(
  target: URL,
  output: string,
  text: string,
  files: readonly TextFile[],
  lock_url: URL,
  lock: Lock | null,
  args: Arguments,
): Promise<void> {
  for (const { path, text } of files) {
    await replaceFile(new URL(path.split("/").map(encodeURIComponent).join("/"), target), text, path);
  }
  if (lock) await replaceFile(lock_url, formatLock(lock), LOCK_FILE);
  if (args.has("update")) await replaceFile(target, text, output);
  else await writeNew(target, output, text);
}

/** Returns the name of a plan's file without its ending. */
function stemOf(target: URL | undefined): string {
  const name = decodeURIComponent(target?.pathname.split("/").at(-1) ?? "plan");
  return name.replace(/\.(?:ya?ml|json)$/i, "");
}

/** Returns a source as the runtime takes it: a path is a `file:` URL. */
function sourceOf(text: string, io: Io): string {
  return /^(?:git\+|https?:|file:|[a-z+]+:\/\/)/i.test(text) ? text : locate(text, io.cwd).href;
}

function namesOf(args: Arguments, io: Io): ReadonlyMap<string, string> {
  return new Map(
    args.all("name").map((text) => {
      const [, name, source] = /^([\w.-]+)=(.+)$/s.exec(text) ?? [];
      if (name === undefined || source === undefined) {
        throw new UsageError(`Cannot use --name: must be NAME=SOURCE, but is ${JSON.stringify(text)}`);
      }
      return [name, sourceOf(source, io)];
    }),
  );
}

/** Returns the report: what runs here, then one sentence for each thing that a person should know. */
function reportText({ modules, report }: ImportedBundle, source: string, io: Io): string {
  const { bold, dim, yellow } = styleOf(io.err);
  const clean = escapeUnprintable;
  const run = counted(modules.run.length, "module");
  const left_out = modules.left_out.length;
  const verb = modules.run.length === 1 ? "runs" : "run";
  const others = left_out === 0 ? "" : `: ${modules.left_out.map(clean).join(", ")}`;
  const first = `${clean(source).slice(0, 300)}: ${run} ${verb} here, ${left_out} ${
    left_out === 1 ? "does" : "do"
  } not${others}`;
  const lines = report.map(({ level, message, hint }) =>
    `${level === "warning" ? yellow("warning:") : "note:"} ${clean(message)}\n${
      hint === undefined ? "" : dim(`    hint: ${clean(hint)}\n`)
    }`
  );
  return `${bold(first)}\n${lines.join("")}`;
}

async function importServers(file: string, args: Arguments, io: Io): Promise<Answer> {
  const { name, text } = await readInput(file, io);
  const imported = planOfServers(await planData(name, text));
  if (imported === null) {
    throw new UsageError(
      `Cannot import ${JSON.stringify(name)}: it has no mcpServers: { name: { command or url } }`,
    );
  }
  const { plan, servers, notes } = imported;
  if (servers.length === 0) {
    throw new UsageError(`Cannot import ${JSON.stringify(name)}: ${notes.join("; ") || "it has no servers"}`);
  }
  const source = escapeUnprintable(name).slice(0, 200);
  const written = `# The MCP servers of ${source}: preamp plan import --mcp\n${await planText(plan)}`;
  const lines = notes.map((note) => `${escapeUnprintable(note)}\n`).join("");
  const output = args.value("output");
  if (output === undefined) return { data: imported, text: written, notes: lines };
  await writeNew(locate(output, io.cwd), output, written);
  return {
    data: imported,
    text: `Written: ${escapeUnprintable(output)}, with ${counted(servers.length, "server")}\n`,
    notes: lines,
  };
}

/** Writes a plan that does not exist. It may have secrets of the imported file: only this user reads it. */
async function writeNew(url: URL, name: string, text: string): Promise<void> {
  try {
    await Deno.mkdir(new URL(".", url), { recursive: true });
    await Deno.writeTextFile(url, text, { createNew: true, mode: 0o600 });
  } catch (error) {
    throw error instanceof Deno.errors.AlreadyExists ? existing(name) : writeFailure(name, error);
  }
}

async function refuseExisting(url: URL, name: string): Promise<void> {
  if (await Deno.stat(url).then(() => true, () => false)) throw existing(name);
}

function existing(name: string): UsageError {
  return new UsageError(`Cannot write ${JSON.stringify(name)}: it exists; remove it, or name another file`);
}
