/**
 * Overrides of module sources (`preamp source add`): the operator's choice, per project or user, that
 * replaces the sources in an operator's plans. Does not affect callers' plans.
 */
import type { CompiledPlan } from "../plan/compile.ts";
import { documentError, formatDetail, type Locate, toDetail } from "../plan/check/findings.ts";
import { Findings } from "../sdk/findings.ts";
import { describe } from "../sdk/value_path.ts";
import { DEFAULT_ESM_HOST, parseSource } from "../plan/source/source.ts";
import type { ModuleSpec, MountPlan, Source } from "../sdk/plan.ts";
import { PreampError } from "../sdk/errors.ts";
import { isObject, type JsonObject } from "../sdk/json.ts";
import { mayNotRead } from "./home_report.ts";
import type { RewrittenSource } from "./types.ts";

/** A file of overrides: `.preamp/sources.yaml` of a project, `$PREAMP_HOME/sources.yaml` of a user. */
export interface SourcesFile {
  url: URL;
  /** Base of its relative sources: a folder. */
  base_url: URL;
  /** Name in messages. Default: the last two parts of its path. */
  name?: string;
  /** Returns whether the file may be used as it was read; else it has no overrides. Default: yes. */
  accepts?(bytes: Uint8Array): Promise<boolean>;
}

/** The source that replaces the plan's. */
export interface Override {
  /** The source as written. */
  text: string;
  source: Source;
}

/** Overrides by module id. */
export type Overrides = ReadonlyMap<string, Override>;

const HINT = "add it with preamp source add <id> <url>";

/**
 * Resolves to the overrides in a file; empty if the file does not exist.
 *
 * @throws {PreampError} `plan_invalid` with every finding, its line and column.
 */
export async function readOverrides(
  { url, base_url, accepts = () => Promise.resolve(true) }: SourcesFile,
  name: string,
  esm_host: string = DEFAULT_ESM_HOST,
): Promise<Overrides> {
  let bytes: Uint8Array;
  try {
    bytes = await Deno.readFile(url);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return new Map();
    const message = `Cannot read sources: this process may not read ${JSON.stringify(name)}`;
    throw documentError("plan_invalid", `the file "${name}"`, [{ path: "", message }], error);
  }
  if (!await accepts(bytes)) return new Map();
  const text = new TextDecoder().decode(bytes);
  const label = `the file "${name}"`;
  const { parseDocument } = await import("../plan/parse/parse.ts");
  const { data, locate } = await parseDocument(text, { label });
  return overridesOf(data, label, locate, base_url, esm_host);
}

function overridesOf(
  data: JsonObject,
  label: string,
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
  throw documentError("plan_invalid", label, findings.errors.map((finding) => toDetail(finding, locate)));
}

/** Returns the text of an override file, sorted by id. */
export function formatOverrides(sources: Readonly<Record<string, string>>): string {
  const lines = Object.entries(sources).toSorted(([a], [b]) => a < b ? -1 : 1)
    .map(([id, source]) => `  ${JSON.stringify(id)}: ${JSON.stringify(source)}\n`);
  const head = "# Overrides of module sources. Written by preamp source add and remove.\n";
  return `${head}sources:${lines.length === 0 ? " {}\n" : `\n${lines.join("")}`}`;
}

/** Reads override files again when they change. Earlier files take precedence. */
export class SourceOverrides {
  readonly #files: readonly SourcesFile[];
  readonly #esm_host: string;
  #read: { state: string; overrides: Overrides } | undefined;

  constructor(files: readonly SourcesFile[], esm_host: string) {
    this.#files = files;
    this.#esm_host = esm_host;
  }

  /** Returns true if there are no override files. */
  get empty(): boolean {
    return this.#files.length === 0;
  }

  /** Resolves to the current overrides. @throws {PreampError} `plan_invalid`. */
  async find(): Promise<Overrides> {
    const is_checked = this.#files.some(({ accepts }) => accepts); // what is accepted may change without the file
    const state = (await Promise.all(this.#files.map(({ url }) => stateOf(url)))).join(" ");
    if (this.#read?.state === state && !is_checked) return this.#read.overrides;
    const read = await Promise.all(this.#files.map((file) => readNamed(file, this.#esm_host)));
    const overrides = new Map(read.toReversed().flatMap((overrides) => [...overrides]));
    this.#read = { state, overrides };
    return overrides;
  }
}

/**
 * Reads a file; findings name the file, because callers read other places as places in the plan. A file that
 * this process may not read has no overrides: the host report says so.
 */
async function readNamed(file: SourcesFile, esm_host: string): Promise<Overrides> {
  const { name = nameOf(file.url) } = file;
  try {
    return await readOverrides(file, name, esm_host);
  } catch (error) {
    if (!(error instanceof PreampError)) throw error;
    if (mayNotRead(error.cause)) return new Map();
    const [first] = error.details;
    throw new PreampError(error.code, first ? formatDetail(first, name) : error.message, { cause: error });
  }
}

async function stateOf(url: URL): Promise<string> {
  try {
    const { mtime, size } = await Deno.stat(url);
    return `${mtime?.getTime() ?? 0}:${size}`;
  } catch {
    return "-"; // missing or not readable: reading it reports which
  }
}

/** Returns the file's name without the folders of this machine. */
function nameOf(url: URL): string {
  return decodeURIComponent(url.pathname.split("/").slice(-2).join("/"));
}

/** Returns the source for run objects, without the folders of this machine. */
function placeOf({ source, text }: Override): string {
  if (source.kind !== "url") return text;
  if (!source.url.startsWith("file:")) return source.url;
  return text.startsWith(".") ? text : `…/${text.slice(text.lastIndexOf("/") + 1)}`;
}

/** Returns the sources whose URL differs from the written one. */
export function rewrittenSources(specs: readonly ModuleSpec[]): RewrittenSource[] {
  return specs.flatMap(({ path, module, source }) =>
    source.kind === "url" && source.via !== undefined && source.via !== "path"
      ? [{ path: `${path}.source`, module, source: source.original, url: source.url }]
      : []
  );
}

/**
 * Returns a plan with its overrides applied, and a warning for each. `written` and `plan_hash` do not
 * change. The permissions that a plan grants to a built-in module are for that module: its override gets
 * none, and never runs inline.
 *
 * @param builtins Ids of the built-in modules.
 */
export function withOverrides(
  compiled: CompiledPlan,
  overrides: Overrides,
  builtins: ReadonlySet<string>,
): CompiledPlan {
  if (overrides.size === 0) return compiled;
  const warnings = [...compiled.warnings];
  const located = (spec: ModuleSpec): ModuleSpec => {
    const override = overrides.get(spec.module);
    if (!override || JSON.stringify(override.source) === JSON.stringify(spec.source)) return spec;
    const is_builtin = spec.source.kind === "builtin" && builtins.has(spec.module);
    const message = `Module "${spec.module}" comes from ${
      describe(placeOf(override))
    }, not from the plan's source${
      is_builtin ? ", and has none of the permissions of the built-in module" : ""
    }; see preamp source list`;
    warnings.push({ code: "source_overridden", path: spec.path, message });
    const { source } = override;
    return is_builtin ? { ...spec, source, permissions: {}, isolation: "process" } : { ...spec, source };
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
