/** Reads the plans of a command line, by file or by name, and merges files from left to right. They are an operator's plans. */
import { isAbsolute, locate, readNamed } from "./paths.ts";
import { NamedPlans } from "../app/named_plans.ts";
import { mergeAll } from "../plan/merge.ts";
import { parsePlanText } from "../plan/parse/parse.ts";
import { parseSource } from "../plan/source/source.ts";
import { isObject, type JsonObject } from "../sdk/json.ts";
import { didYouMean } from "../sdk/did_you_mean.ts";
import { DocumentFailure } from "./errors.ts";
import type { Io } from "./terminal/io.ts";
import { type Arguments, UsageError } from "./arguments.ts";
import type { Settings } from "./settings.ts";

/** A plan that was read and not checked. */
export interface UncheckedPlan {
  /** Its name in messages: the file, or all files. */
  name: string;
  /** Text of a single file, so that errors have a line; merged data of several files. */
  plan: string | JsonObject;
  /** URL of the first file: base of relative sources, files and paths. */
  base_url: string;
}

/** A file and its text. */
export interface PlanText {
  name: string;
  url: URL;
  text: string;
}

/** Resolves to the text of a plan file; `-` is stdin. @throws {UsageError} when it cannot be read. */
export async function readPlanText(name: string, io: Io): Promise<PlanText> {
  if (name === "-") return { name: "<stdin>", url: new URL("stdin", io.cwd), text: await io.in.text() };
  const url = locate(name, io.cwd);
  return { name, url, text: await readNamed(url, name) };
}

/**
 * Resolves to the plan of one or more files, merged from left to right. Relative paths start at the first file, so an
 * overlay in another folder must not contain any.
 *
 * @param base A plan that was already read; the files are merged into it.
 * @throws {UsageError} for a file that cannot be read, or a relative path in an overlay of another folder.
 * @throws {DocumentFailure} for a file that is neither YAML nor JSON, when there are several.
 */
export async function readPlans(names: readonly string[], io: Io, base?: PlanText): Promise<UncheckedPlan> {
  const texts: PlanText[] = base ? [base] : [];
  for (const name of names) texts.push(await readPlanText(name, io)); // in order: stdin can be read once
  const [first, ...overlays] = texts;
  if (!first) throw new UsageError("Cannot read a plan: no file was named");
  if (overlays.length === 0) return { name: first.name, plan: first.text, base_url: first.url.href };
  const plans = await Promise.all(texts.map(parse));
  for (const [index, overlay] of overlays.entries()) {
    if (folderOf(overlay.url) === folderOf(first.url)) continue;
    const [relative] = relativePaths(plans[index + 1] ?? {}, overlay.url.href);
    if (relative !== undefined) {
      throw new UsageError(
        `Cannot merge ${JSON.stringify(overlay.name)} into ${
          JSON.stringify(first.name)
        }: they are in different folders, and ` +
          `${JSON.stringify(relative)} is relative; write an absolute path or a file:// URL`,
      );
    }
  }
  return { name: texts.map(({ name }) => name).join(" + "), plan: mergeAll(plans), base_url: first.url.href };
}

async function parse({ name, text }: PlanText): Promise<JsonObject> {
  try {
    return (await parsePlanText(text, { name })).data;
  } catch (error) {
    throw new DocumentFailure(name, error);
  }
}

function folderOf(url: URL): string {
  return new URL(".", url).href;
}

const SOURCE_KEYS: ReadonlySet<string> = new Set(["source", "orchestrator_source", "context_source"]);

/** Returns the relative paths of a plan: sources, `{file}`s, granted paths. `config` belongs to modules. */
function relativePaths(value: unknown, base_url: string, key = ""): string[] {
  if (Array.isArray(value)) return value.flatMap((item) => relativePaths(item, base_url, key));
  if (SOURCE_KEYS.has(key)) return isRelativeSource(value, base_url) ? [textOf(value)] : [];
  if (key === "file" || key === "read" || key === "write") {
    return typeof value === "string" && !isAbsolute(value) && !value.startsWith("file:") ? [value] : [];
  }
  if (!isObject(value)) return [];
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

/** Resolves to the plan that `--profile` or `--bundle` names, from the named plans or `$PREAMP_HOME/plans/`; undefined without them. @throws {UsageError} if it does not exist. */
export async function readNamedPlan(
  args: Arguments,
  io: Io,
  { plans, home }: Pick<Settings, "plans" | "home">,
): Promise<PlanText | undefined> {
  if (args.has("profile") && args.has("bundle")) {
    throw new UsageError("Cannot use --profile with --bundle: they name the same plan");
  }
  const flag = args.has("bundle") ? "bundle" : "profile";
  const name = args.value(flag);
  if (name === undefined) return undefined;
  const folders = home ? [plans, new URL("plans/", home)] : [plans];
  const collections = folders.map((folder) => new NamedPlans(folder));
  for (const collection of collections) {
    const file = await collection.find(name);
    if (file) return { name: pathOf(file.base_url, io.cwd), url: new URL(file.base_url), text: file.text };
  }
  const names = [...new Set((await Promise.all(collections.map((collection) => collection.names()))).flat())]
    .sort();
  const places = folders.map((folder) => pathOf(folder.href, io.cwd)).join(" or ");
  throw new UsageError(
    `Cannot use --${flag}: there is no plan named ${JSON.stringify(name)} in ${places}${
      adviceFor(name, names)
    }`,
  );
}

function adviceFor(name: string, names: readonly string[]): string {
  if (names.length === 0) return ": put a plan there as NAME.yaml, or name a file with -p FILE";
  const file = /[/\\]|\.(ya?ml|json)$/.test(name) ? "; a file is named with -p FILE" : "";
  const meant = didYouMean(name, names);
  return `${meant === undefined ? "" : `: did you mean "${meant}"?`}${
    meant === undefined ? ": " : " "
  }The plans are ${names.join(", ")}${file}`;
}

/** Returns a path for messages: relative if it is inside the working directory. */
function pathOf(url: string, cwd: URL): string {
  return decodeURIComponent(url.startsWith(cwd.href) ? url.slice(cwd.href.length) : new URL(url).pathname);
}
