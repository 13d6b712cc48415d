/** Plans that are named on the command line: the operator's own, merged from left to right (plan.md, Overlays). */
import { isAbsolute } from "./file_url.ts";
import { mergeAll } from "../plan/merge.ts";
import { parsePlanText } from "../plan/parse/parse.ts";
import { parseSource } from "../plan/source/source.ts";
import { isObject, type JsonObject } from "../sdk/json.ts";
import { DocumentFailure } from "./errors.ts";
import { locate, readNamed } from "./files.ts";
import type { Io } from "./terminal/io.ts";
import { UsageError } from "./usage_error.ts";

/** A plan as it was read; nothing of it is checked. */
export interface GivenPlan {
  /** What messages call it: the file, or all of them. */
  name: string;
  /** Text of a single file, so that errors have a line; data of several. */
  plan: string | JsonObject;
  /** URL that relative sources, files and paths start at: the first file's. */
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
 * Resolves to the plan of one or more files. Those after the first are laid over it; relative paths are the first file's, so
 * an overlay in another folder must not have any.
 *
 * @param base A plan that was read already; the files are laid over it.
 * @throws {UsageError} for a file that cannot be read, or an overlay whose relative path would change its meaning.
 * @throws {DocumentFailure} for one of several files that is neither YAML nor JSON.
 */
export async function readPlans(names: readonly string[], io: Io, base?: PlanText): Promise<GivenPlan> {
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
        `Cannot lay ${JSON.stringify(overlay.name)} over ${
          JSON.stringify(first.name)
        }: they are in different folders, and ` +
          `${JSON.stringify(relative)} is relative: write an absolute path or a file:// URL`,
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

/** Returns what a plan says relative to where it lies: sources, `{file}`s, granted paths. `config` belongs to modules. */
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

/** A source is relative when it means something else somewhere else. */
function isRelativeSource(value: unknown, base_url: string): boolean {
  const here = parseSource(value, { base_url });
  const elsewhere = parseSource(value, { base_url: "file:///elsewhere/than/here/plan.yaml" });
  return JSON.stringify(here) !== JSON.stringify(elsewhere);
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
