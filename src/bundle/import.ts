/**
 * Makes one plan of a bundle, a profile or an agent's file, with all that it includes
 * (src/docs/amplifier.md).
 * Executes nothing.
 */
import { PreampError } from "../sdk/errors.ts";
import type { JsonObject } from "../sdk/json.ts";
import { agentOf, agentsIn } from "./agents.ts";
import { BundleFiles, type FileReader } from "./files.ts";
import { NOT_A_PLAN } from "./kinds.ts";
import { BundleLoader, type ParsedFile, parseFile } from "./load.ts";
import { type Place, show } from "./places.ts";
import { type BuiltPlan, PlanBuilder, type PlanPart } from "./plan_builder.ts";
import { loadProfile } from "./profile.ts";
import { Report, type ReportLine } from "./report.ts";

/** Options of {@link importBundle}. */
export interface ImportOptions {
  readonly reader: FileReader;
  /** Ids of the built-in modules. */
  readonly builtins: ReadonlySet<string>;
  /** Name of a bundle → its place, for includes that are a plain name. Default: none. */
  readonly names?: ReadonlyMap<string, Place>;
  /** Whether files of other checkouts may be read. Default: false. */
  readonly remote?: boolean;
  /** Resolves to the keys of a built-in module's config; null: any. */
  readonly keysOf: (module: string) => Promise<ReadonlySet<string> | null>;
  /** Returns a local file or folder as the plan names it. */
  readonly pathOf: (url: string) => string;
  /** Text of the file, if it was read before. */
  readonly text?: string;
}

/** A plan, and where its parts came from. */
export interface ImportedPlan {
  readonly plan: JsonObject;
  /** Path in the plan, such as `tools[0]` → the files that it came from. */
  readonly parts: readonly PlanPart[];
  readonly report: readonly ReportLine[];
  /** Modules that run here, and those that do not, as the bundle names them. */
  readonly modules: { readonly run: readonly string[]; readonly left_out: readonly string[] };
}

/**
 * Resolves to the plan of a file; null if it is a plan already.
 *
 * @param place The file of a bundle, or its folder.
 * @throws {PreampError} `plan_invalid`, `plan_limit_exceeded`, and those of the reader.
 */
export async function importBundle(place: Place, options: ImportOptions): Promise<ImportedPlan | null> {
  const report = new Report();
  const files = new BundleFiles(options.reader);
  const loader = new BundleLoader(files, report, { remote: options.remote ?? false });
  for (const [name, source] of options.names ?? []) await loader.addNamed(name, source);
  const found = options.text === undefined ? await loader.bundleAt(place) : place;
  const builder = new PlanBuilder(loader, options);
  const roster = found === null ? await agentsIn(place, loader) : null;
  if (roster) return finished(await builder.ofBundle(roster), report);
  const text = options.text ?? (found && await files.read(found));
  if (!found || text === null) throw missing(place);
  const file = await parseFile(text, show(found), true);
  if (file.kind === "plan") return null;
  return finished(await planOf(file, found, loader, builder), report);
}

function finished(built: BuiltPlan, { lines }: Report): ImportedPlan {
  return { ...built, report: lines };
}

async function planOf(file: ParsedFile, place: Place, loader: BundleLoader, builder: PlanBuilder) {
  switch (file.kind) {
    case "bundle":
      return await builder.ofBundle(await loader.load(place, file));
    case "profile":
      return await builder.ofBundle(await loadProfile(place, file, loader));
    case "agent":
      return await builder.ofAgent(agentOf(file, place, loader.report));
    default: {
      const { fact, hint } = NOT_A_PLAN[file.kind]!; // every other kind
      throw new PreampError("plan_invalid", `Cannot make a plan of ${show(place)}: ${fact}: ${hint}`);
    }
  }
}

function missing(place: Place): PreampError {
  const fact = /\.\w+$/.test(place.path)
    ? "there is no such file"
    : "there is no such folder with a bundle.md or bundle.yaml";
  return new PreampError("not_found", `Cannot import ${show(place)}: ${fact}`);
}
