/**
 * Plans on the command line: reads them by file or by name, merges files from left to right, and opens a
 * runtime for them. They are an operator's plans.
 */
import { personalPlans } from "../app/named_plans.ts";
import { createRuntime } from "../app/runtime.ts";
import type { Runtime } from "../app/types.ts";
import { mayBeBundle } from "../bundle/kinds.ts";
import { mergeAll } from "../plan/merge.ts";
import { parsePlanText } from "../plan/parse/parse.ts";
import { parseSource } from "../plan/source/source.ts";
import { defaultPolicy } from "../policy/settings.ts";
import { didYouMean } from "../sdk/findings.ts";
import { isObject, type JsonObject } from "../sdk/json.ts";
import { escapeUnprintable } from "../text/escape.ts";
import { type Arguments, type Flag, UsageError } from "./arguments.ts";
import { inDocument } from "./errors.ts";
import { type InputText, isAbsolute, readInput } from "../settings/paths.ts";
import { reportedSettings, type Settings } from "./settings.ts";
import { writeLabelled } from "./terminal/format.ts";
import type { Io } from "./terminal/io.ts";

/** `-p FILE`. */
export const PLAN_FLAG: Flag = {
  name: "plan",
  short: "p",
  value: "FILE",
  many: true,
  help: "plan file; several are merged from left to right",
};

/** `-m PROVIDER/MODEL`. */
export const MODEL_FLAG: Flag = {
  name: "model",
  short: "m",
  value: "PROVIDER/MODEL",
  help: "run on this model in place of the plan's, such as anthropic/claude-sonnet-5-5",
};

/** Flag for one of the plan's modes. */
export const MODE_FLAG: Flag = {
  name: "mode",
  value: "NAME",
  help: "put the plan in this mode of its own, for the session; none: no mode",
};

/** Returns the field `model` of a request; empty without `-m`. */
export function modelOf(args: Arguments): { model?: string } {
  const model = args.value("model");
  return model === undefined ? {} : { model };
}

/** Returns the files of `-p` and of the arguments. @throws {UsageError} if there are no files. */
export function planNames(args: Arguments, verb: string): string[] {
  const names = [...args.all("plan"), ...args.rest];
  if (names.length === 0) throw new UsageError(`Cannot ${verb} a plan: no file was named`);
  return names;
}

/**
 * Calls `use` with the plans of a runtime on the settings of the command line, and closes the runtime
 * afterwards.
 * @param options `overridden`: source overrides of `preamp source add` apply, as in a run.
 */
export async function withPlans<T>(
  args: Arguments,
  io: Io,
  use: (plans: Runtime["plans"]) => Promise<T>,
  { overridden = false }: { overridden?: boolean } = {},
): Promise<T> {
  const settings = await reportedSettings(args, io, { sources: overridden });
  const { policy, home, workspace, sources, env } = settings;
  await using runtime = createRuntime({
    policy,
    env,
    home,
    workspace: workspace ?? io.cwd, // as for a run
    sources,
  });
  return await use(runtime.plans);
}

/** A plan that was read and not checked. */
export interface UncheckedPlan {
  /** Its name in messages: the file, or all files. */
  name: string;
  /** Text of a single file, so that errors have a line; merged data of several files. */
  plan: string | JsonObject;
  /** URL of the first file: base of relative sources, files and paths. */
  base_url: string;
}

/**
 * Resolves to the plan of one or more files, merged from left to right. Relative paths start at the first
 * file, so an overlay in another folder must not contain any.
 *
 * @param base A plan that was already read; the files are merged into it.
 * @throws {UsageError} for a file that cannot be read, or a relative path in an overlay of another folder.
 * @throws {DocumentFailure} for a file that is neither YAML nor JSON, when there are several.
 */
export async function readPlans(names: readonly string[], io: Io, base?: InputText): Promise<UncheckedPlan> {
  const texts: InputText[] = base ? [base] : [];
  for (const name of names) texts.push(await readInput(name, io)); // in order: stdin can be read once
  const [first, ...overlays] = texts;
  if (!first) throw new UsageError("Cannot read a plan: no file was named");
  if (overlays.length === 0) return { name: first.name, plan: first.text, base_url: first.url.href };
  const plans = await Promise.all(texts.map((text) => dataOf(text, io)));
  for (const [index, overlay] of overlays.entries()) {
    if (folderOf(overlay.url) === folderOf(first.url)) continue;
    const [relative] = relativePaths(plans[index + 1] ?? {}, overlay.url.href);
    if (relative === undefined) continue;
    const [from, into, path] = [overlay.name, first.name, relative].map((text) => JSON.stringify(text));
    throw new UsageError(
      `Cannot merge ${from} into ${into}: they are in different folders, and ${path} is relative; ` +
        "write an absolute path or a file:// URL",
    );
  }
  return { name: texts.map(({ name }) => name).join(" + "), plan: mergeAll(plans), base_url: first.url.href };
}

/** Resolves to the data of a plan; of a bundle, to those of its plan. */
async function dataOf({ name, text, url }: InputText, io: Io): Promise<JsonObject> {
  if (!mayBeBundle(text, url.href)) return await planData(name, text);
  const [{ planOfBundle }, { createModuleTable }] = await Promise.all([
    import("../app/import_plan.ts"),
    import("../app/module_table.ts"),
  ]);
  const deps = { policy: defaultPolicy(), modules: createModuleTable() };
  const made = await inDocument(name, planOfBundle(text, url.href, deps));
  for (const { message } of made?.warnings ?? []) {
    writeLabelled(io.err, "warning", escapeUnprintable(`${name}: ${message}`));
  }
  return made?.plan ?? await planData(name, text);
}

/** Resolves to the data in the text of a plan. @throws {DocumentFailure} if it is neither YAML nor JSON. */
export async function planData(name: string, text: string): Promise<JsonObject> {
  return (await inDocument(name, parsePlanText(text, { name }))).data;
}

function folderOf(url: URL): string {
  return new URL(".", url).href;
}

const PATH_KEYS: ReadonlySet<string> = new Set(["file", "read", "write", "ffi"]);
const SOURCE_KEYS: ReadonlySet<string> = new Set(["source", "orchestrator_source", "context_source"]);

/** Returns the relative paths of a plan: sources, `{file}`s, granted paths. `config` belongs to modules. */
function relativePaths(value: unknown, base_url: string, key = ""): string[] {
  if (Array.isArray(value)) return value.flatMap((item) => relativePaths(item, base_url, key));
  if (SOURCE_KEYS.has(key)) return isRelativeSource(value, base_url) ? [textOf(value)] : [];
  if (PATH_KEYS.has(key)) {
    return typeof value === "string" && !isAbsolute(value) && !value.startsWith("file:") ? [value] : [];
  }
  if (!isObject(value)) return [];
  if (key === "agents") return Object.values(value).flatMap((overlay) => relativePaths(overlay, base_url));
  return Object.entries(value).flatMap(([name, item]) =>
    name === "config" ? [] : relativePaths(item, base_url, name)
  );
}

/** Returns whether a source depends on its base URL. */
function isRelativeSource(value: unknown, base_url: string): boolean {
  const here = parseSource(value, { base_url });
  const elsewhere = parseSource(value, { base_url: "file:///elsewhere/than/here/plan.yaml" });
  return JSON.stringify(here) !== JSON.stringify(elsewhere);
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Returns the name of the plan of `--profile` or `--bundle`; undefined without them. @throws {UsageError} */
export function profileOf(args: Arguments): string | undefined {
  if (args.has("profile") && args.has("bundle")) {
    throw new UsageError("Cannot use --profile with --bundle: they name the same plan");
  }
  return args.value("profile") ?? args.value("bundle");
}

/**
 * Resolves to the plan that `--profile` or `--bundle` names, from `$PREAMP_HOME/plans/` or the named plans;
 * undefined without them. @throws {UsageError} if it does not exist.
 */
export async function readNamedPlan(
  args: Arguments,
  io: Io,
  { all_plans, plans, home }: Pick<Settings, "all_plans" | "plans" | "home">,
): Promise<InputText | undefined> {
  const name = profileOf(args);
  if (name === undefined) return undefined;
  const file = await all_plans.find(name);
  if (file) return { name: pathOf(file.base_url, io.cwd), url: new URL(file.base_url), text: file.text };
  const folders = [...plans ? [plans] : [], ...home ? [personalPlans(home)] : []];
  const places = folders.map(({ url }) => pathOf(url.href, io.cwd)).join(" or ");
  throw new UsageError(
    `Cannot use --${args.has("bundle") ? "bundle" : "profile"}: there is no plan named ${
      JSON.stringify(name)
    } in ${places}: ${namesAdvice(name, await all_plans.names())}`,
  );
}

function namesAdvice(name: string, known: readonly string[]): string {
  if (known.length === 0) return "put a plan there as NAME.yaml, or name a file with -p FILE";
  const meant = didYouMean(name, known);
  const question = meant === undefined ? "" : `did you mean "${meant}"? `;
  const file = /[/\\]|\.(ya?ml|json)$/.test(name) ? "; a file is named with -p FILE" : "";
  return `${question}The plans are ${known.join(", ")}${file}`;
}

/** Returns a path for messages: relative if it is inside the working directory. */
function pathOf(url: string, cwd: URL): string {
  return decodeURIComponent(url.startsWith(cwd.href) ? url.slice(cwd.href.length) : new URL(url).pathname);
}
