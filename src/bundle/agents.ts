/**
 * Reads agents: those of bundles (`meta`, module lists), and those of other programs (`name`, `description`,
 * `tools: Read, Grep`, `model: sonnet`).
 */
import { readModelName } from "../plan/check/field_checks.ts";
import { isObject, type JsonObject } from "../sdk/json.ts";
import { describe } from "../sdk/value_path.ts";
import { type AgentSource, type Composed, mergeMaps } from "./compose.ts";
import type { BundleLoader, ParsedFile } from "./load.ts";
import { parseReference, type Place, show } from "./places.ts";
import type { Report } from "./report.ts";
import { moduleOfTool, toolNames } from "./tool_names.ts";

/** An agent before its modules are translated. */
export interface Agent {
  readonly description?: string;
  readonly instruction: string;
  /** The agent's file, or the bundle that has it. */
  readonly place: Place;
  /** Keys of an agent in a plan that need no translation. */
  readonly fields: JsonObject;
  /** `providers`, `tools`, `hooks` and `session` as they are written. */
  readonly parts: JsonObject;
  /** The only tools that it may use; absent: all. */
  readonly only?: readonly string[];
}

const FIELDS = ["model_role", "provider_preferences", "agents"] as const;
const PARTS = ["providers", "tools", "hooks", "session"] as const;

/** Resolves to an agent of a bundle; null, with a warning, if its file does not exist. */
export async function readAgent(
  name: string,
  { reference, inline, place, origin }: AgentSource,
  loader: BundleLoader,
): Promise<Agent | null> {
  const found = reference === undefined ? null : await findFile(reference, place, loader);
  if (reference !== undefined && found === null) {
    loader.report.warn(
      `The agent ${describe(reference)} of ${origin.file} is left out: there is no such file`,
    );
    return null;
  }
  const base = found ? agentOf(found.file, found.place, loader.report) : null;
  const { instruction, instructions, system, description, ...rest } = inline;
  const own = await textOf(system ?? instruction ?? instructions, place, loader);
  const file: ParsedFile = { kind: "agent", data: rest, body: own ?? "" };
  const over = agentOf(file, found?.place ?? place, loader.report);
  const text = over.instruction || base?.instruction || "";
  const about = typeof description === "string" ? description.trim() : base?.description;
  if (text === "") {
    loader.report.warn(`The agent ${describe(name)} has no text: its description is its instruction`);
  }
  const only = over.only ?? base?.only;
  return {
    ...(about === undefined || about === "" ? {} : { description: about }),
    instruction: text || about || `You are the agent ${name}.`,
    place: base?.place ?? place,
    fields: { ...base?.fields, ...over.fields },
    parts: mergeMaps(base?.parts ?? {}, over.parts),
    ...(only === undefined ? {} : { only }),
  };
}

/** Modules of the plan of a folder of agents: what such agents may use if they name no tools. */
const ROSTER_TOOLS = ["tool-filesystem", "tool-search", "tool-bash", "tool-task"];

/** Resolves to a bundle of the agents in a folder, such as those of another program; null if it has none. */
export async function agentsIn(folder: Place, loader: BundleLoader): Promise<Composed | null> {
  const names = await loader.files.list(folder) ?? [];
  const agents = new Map<string, AgentSource>();
  const origin = { file: show(folder), chain: [] };
  const place = { root: folder.root, path: folder.path === "" ? "bundle.md" : `${folder.path}/bundle.md` };
  for (const name of names.filter((one) => /\.md$/i.test(one))) {
    const path = folder.path === "" ? name : `${folder.path}/${name}`;
    const file = await loader.parse({ root: folder.root, path }, true);
    const reference = name.replace(/\.md$/i, "");
    if (file?.kind === "agent") {
      agents.set(reference, { reference: `./${reference}`, inline: {}, place, origin });
    }
  }
  if (agents.size === 0) return null;
  loader.report.note(
    `${show(folder)} has agents and no bundle: the plan can give tasks to them`,
    "the plan itself has no instruction: write one as system",
  );
  const tools = ROSTER_TOOLS.map((module) => ({ spec: { module }, from: [origin] }));
  return {
    place,
    session: {},
    session_from: {},
    modules: { providers: [], tools, hooks: [] },
    agents,
    context: new Map(),
    rest: {},
  };
}

async function findFile(reference: string, place: Place, loader: BundleLoader) {
  const parsed = parseReference(reference);
  const [prefix, path] = parsed.kind === "named" ? [`${parsed.namespace}:`, parsed.path] : ["", reference];
  const plain = path.replace(/^agents\//, "").replace(/\.md$/i, "");
  const written = parsed.kind === "path"
    ? `${reference.replace(/\.md$/i, "")}.md`
    : `${prefix}agents/${plain}.md`;
  const candidates = loader.candidates(written, place, "The agent");
  for (const candidate of candidates ?? []) {
    const file = await loader.parse(candidate, true);
    if (file !== null) return { place: candidate, file };
  }
  return null;
}

/** Resolves to the text of an agent that is written in a bundle: the text itself, or that of a file. */
async function textOf(value: unknown, place: Place, loader: BundleLoader): Promise<string | null> {
  if (isObject(value)) return await textOf(value.instruction ?? value.file, place, loader);
  if (typeof value !== "string") return null;
  const is_name = /^@?[\w.-]+:[\w./-]+$|^\.{1,2}\/\S+$/.test(value.trim());
  if (!is_name) return value.trim();
  for (const candidate of loader.candidates(value.trim(), place, "The text") ?? []) {
    const text = await loader.files.read(candidate);
    if (text !== null) return text.trim();
  }
  loader.report.warn(`The text ${describe(value)} of ${show(place)} is left out: there is no such file`);
  return null;
}

/** Returns what an agent's file says. */
export function agentOf({ data, body }: ParsedFile, place: Place, report: Report): Agent {
  const meta = isObject(data.meta) ? data.meta : {};
  const all: JsonObject = { ...meta, ...data };
  const description = typeof meta.description === "string" ? meta.description : data.description;
  const fields: JsonObject = {};
  for (const key of FIELDS) if (all[key] !== undefined && all[key] !== null) fields[key] = all[key];
  if (isObject(fields.agents)) delete fields.agents; // a map is no filter
  const parts: JsonObject = {};
  for (const key of PARTS) if (all[key] !== undefined && all[key] !== null) parts[key] = all[key];
  const only = toolsOf(parts.tools, place, report);
  if (only !== undefined) delete parts.tools;
  const preferences = fields.provider_preferences === undefined
    ? preferencesOf(all.model, place, report)
    : null;
  if (preferences) fields.provider_preferences = preferences;
  return {
    ...(typeof description === "string" && description.trim() !== ""
      ? { description: description.trim() }
      : {}),
    instruction: body,
    place,
    fields,
    parts,
    ...(only === undefined ? {} : { only }),
  };
}

/** Returns the tools that an agent of another program may use; undefined for a list of modules. */
function toolsOf(written: unknown, place: Place, report: Report): string[] | undefined {
  const names = typeof written === "string"
    ? written.split(/,(?![^(]*\))/)
    : Array.isArray(written) && written.length > 0 &&
        written.every((item) => typeof item === "string" && !/^tool-/.test(item))
    ? written as string[]
    : undefined;
  const plain = names?.map((name) => name.trim()).filter((name) => name !== "");
  if (plain === undefined || plain.length === 0 || plain.includes("*")) return undefined;
  return [
    ...new Set(plain.flatMap((name) => {
      const tools = toolNames(name);
      if (tools.length === 0) report.warn(`The tool ${describe(name)} of ${show(place)} does not exist here`);
      return tools;
    })),
  ];
}

/** Short names of models elsewhere → the provider, and a pattern for the ids of its models. */
const MODELS: Readonly<Record<string, { provider: string; model: string }>> = {
  opus: { provider: "anthropic", model: "claude-opus-*" },
  sonnet: { provider: "anthropic", model: "claude-sonnet-*" },
  haiku: { provider: "anthropic", model: "claude-haiku-*" },
};

/** First letters of a model's id → its provider. */
const VENDORS: readonly (readonly [RegExp, string])[] = [
  [/^claude-/, "anthropic"],
  [/^(?:gpt-|o\d|codex)/, "openai"],
  [/^gemini-/, "gemini"],
  [/^grok-/, "xai"],
  [/^(?:mistral|codestral|devstral|magistral)-/, "mistral"],
  [/^deepseek-/, "deepseek"],
];

/** Returns the preferences that a model's name means; null for the plan's own model. */
function preferencesOf(model: unknown, place: Place, report: Report): JsonObject[] | null {
  if (typeof model !== "string" || model === "" || model === "inherit") return null;
  const short = MODELS[model.toLowerCase()];
  if (short) return [{ ...short }];
  const named = model.includes("/") ? readModelName(model) : null;
  if (named) return [{ ...named }];
  const vendor = VENDORS.find(([start]) => start.test(model));
  if (vendor) return [{ provider: vendor[1], model }];
  report.warn(
    `The model ${describe(model)} of ${show(place)} is not known: the agent runs on the plan's model`,
  );
  return null;
}

/** Returns the modules that mount these tools. */
export function modulesOfTools(tools: readonly string[]): string[] {
  return [...new Set(tools.flatMap((tool) => moduleOfTool(tool) ?? []))];
}

/** Tools that only read, or only speak with the person. Calls of others are asked about. */
const HARMLESS: ReadonlySet<string> = new Set([
  "read",
  "list",
  "glob",
  "grep",
  "todo",
  "skill",
  "task",
  "delegate",
]);

/**
 * Returns rules that leave an agent these tools only.
 *
 * @param plan_rules Rules of the plan; those that ask or deny come first.
 */
export function rulesOfTools(tools: readonly string[], plan_rules: readonly unknown[]): unknown[] {
  return [
    ...plan_rules.filter((rule) => isObject(rule) && rule.action !== "allow"),
    ...tools.map((tool) => ({ tool, action: HARMLESS.has(tool) ? "allow" : "ask" })),
    { tool: "*", action: "deny" },
  ];
}
