/**
 * Overrides of where modules come from (modules.md, `preamp source add`): the operator's word, per project or user, over what
 * an operator's plan says. A caller's plan is never touched.
 */
import type { CompiledPlan } from "../plan/compile.ts";
import { documentError, Findings, formatDetail, type Locate, toDetail } from "../plan/check/findings.ts";
import { describe } from "../plan/value_path.ts";
import { DEFAULT_ESM_HOST, parseSource } from "../plan/source/source.ts";
import type { ModuleSpec, MountPlan, Source } from "../sdk/plan.ts";
import { PreampError } from "../sdk/errors.ts";
import { isObject, type JsonObject } from "../sdk/json.ts";
import type { RewrittenSource } from "./types.ts";

/** A file of overrides: `.preamp/sources.yaml` of a project, `$PREAMP_HOME/sources.yaml` of a user. */
export interface SourcesFile {
  url: URL;
  /** Where its relative sources start: a folder. */
  base_url: URL;
}

/** Where a module comes from, whatever a plan says. */
export interface Override {
  /** As written. */
  text: string;
  source: Source;
}

/** Overrides by module id. */
export type Overrides = ReadonlyMap<string, Override>;

const HINT = "write it with: preamp source add <id> <url>";

/**
 * Resolves to the overrides of a file; none when there is no file.
 * @throws {PreampError} `plan_invalid` with every finding, its line and column.
 */
export async function readOverrides(
  { url, base_url }: SourcesFile,
  name: string,
  esm_host: string = DEFAULT_ESM_HOST,
): Promise<Overrides> {
  let text: string;
  try {
    text = await Deno.readTextFile(url);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return new Map();
    const message = `Cannot read sources: this process may not read ${JSON.stringify(name)}`;
    throw documentError("plan_invalid", `the file "${name}"`, [{ path: "", message }], error);
  }
  const what = `the file "${name}"`;
  const { parseDocument } = await import("../plan/parse/parse.ts");
  const { data, locate } = await parseDocument(text, { what });
  return overridesOf(data, what, locate, base_url, esm_host);
}

function overridesOf(
  data: JsonObject,
  what: string,
  locate: Locate,
  base_url: URL,
  esm_host: string,
): Overrides {
  const findings = new Findings();
  const overrides = new Map<string, Override>();
  const sources = data.sources ?? {};
  if (isObject(sources)) {
    for (const [id, text] of Object.entries(sources)) {
      const parsed = typeof text === "string"
        ? parseSource(text, { base_url: base_url.href, esm_host })
        : { problem: `must be text: received ${describe(text)}`, hint: HINT };
      if ("source" in parsed && typeof text === "string") overrides.set(id, { text, source: parsed.source });
      else if ("problem" in parsed) {
        const message = `Cannot read source of "${id}": ${parsed.problem}`;
        findings.error(["sources", id], "source_invalid", message, parsed.hint);
      }
    }
  } else {
    const message = `Cannot read sources: must be an object of id and source: received ${describe(sources)}`;
    findings.error(["sources"], "type", message, HINT);
  }
  if (findings.errors.length === 0) return overrides;
  throw documentError("plan_invalid", what, findings.errors.map((finding) => toDetail(finding, locate)));
}

/** Returns the text of a file of overrides, sorted by id. */
export function formatOverrides(sources: Readonly<Record<string, string>>): string {
  const lines = Object.entries(sources).toSorted(([a], [b]) => a < b ? -1 : 1)
    .map(([id, source]) => `  ${JSON.stringify(id)}: ${JSON.stringify(source)}\n`);
  const head = "# Where modules come from, whatever a plan says. Written by preamp source add and remove.\n";
  return `${head}sources:${lines.length === 0 ? " {}\n" : `\n${lines.join("")}`}`;
}

/** Reads files of overrides again when they changed; those that come first win. */
export class SourceOverrides {
  readonly #files: readonly SourcesFile[];
  readonly #esm_host: string;
  #read: { state: string; overrides: Overrides } | undefined;

  constructor(files: readonly SourcesFile[], esm_host: string) {
    this.#files = files;
    this.#esm_host = esm_host;
  }

  /** Whether there are none, whatever the files say: there is no file. */
  get empty(): boolean {
    return this.#files.length === 0;
  }

  /** Resolves to what holds now. @throws {PreampError} `plan_invalid`. */
  async find(): Promise<Overrides> {
    const state = (await Promise.all(this.#files.map(({ url }) => stateOf(url)))).join(" ");
    if (this.#read?.state === state) return this.#read.overrides;
    const read = await Promise.all(this.#files.map((file) => readNamed(file, this.#esm_host)));
    const overrides = new Map(read.toReversed().flatMap((one) => [...one]));
    this.#read = { state, overrides };
    return overrides;
  }
}

/** The finding names the file itself: whoever asked for a plan takes places of an error for the plan's. */
async function readNamed(file: SourcesFile, esm_host: string): Promise<Overrides> {
  const name = nameOf(file.url);
  try {
    return await readOverrides(file, name, esm_host);
  } catch (error) {
    if (!(error instanceof PreampError)) throw error;
    const [first] = error.details;
    throw new PreampError(error.code, first ? formatDetail(first, name) : error.message, { cause: error });
  }
}

async function stateOf(url: URL): Promise<string> {
  try {
    const { mtime, size } = await Deno.stat(url);
    return `${mtime?.getTime() ?? 0}:${size}`;
  } catch {
    return "-"; // not there, or not to be read: reading it says which
  }
}

/** The file without the folders of this machine. */
function nameOf(url: URL): string {
  return decodeURIComponent(url.pathname.split("/").slice(-2).join("/"));
}

/** Run objects show it to callers: no folders of this machine. */
function placeOf({ source, text }: Override): string {
  if (source.kind !== "url") return text;
  if (!source.url.startsWith("file:")) return source.url;
  return text.startsWith(".") ? text : `…/${text.slice(text.lastIndexOf("/") + 1)}`;
}

/** Returns the sources that stand for another URL than they say. */
export function rewrittenSources(specs: readonly ModuleSpec[]): RewrittenSource[] {
  return specs.flatMap(({ path, module, source }) =>
    source.kind === "url" && source.via !== undefined && source.via !== "path"
      ? [{ path: `${path}.source`, module, source: source.original, url: source.url }]
      : []
  );
}

/** Returns a plan with overrides in place and told as warnings; what was written, and its hash, stay. */
export function withOverrides(compiled: CompiledPlan, overrides: Overrides): CompiledPlan {
  if (overrides.size === 0) return compiled;
  const warnings = [...compiled.warnings];
  const located = (spec: ModuleSpec): ModuleSpec => {
    const override = overrides.get(spec.module);
    if (!override || JSON.stringify(override.source) === JSON.stringify(spec.source)) return spec;
    const message =
      `Module "${spec.module}" comes from ${describe(placeOf(override))}, not from where the plan says: ` +
      "preamp source list shows why";
    warnings.push({ code: "source_overridden", path: spec.path, message });
    return { ...spec, source: override.source };
  };
  const { session, providers, tools, hooks } = compiled.plan;
  const plan: MountPlan = {
    ...compiled.plan,
    session: { ...session, orchestrator: located(session.orchestrator), context: located(session.context) },
    providers: providers.map(located),
    tools: tools.map(located),
    hooks: hooks.map(located),
  };
  return warnings.length === compiled.warnings.length ? compiled : { ...compiled, plan, warnings };
}
