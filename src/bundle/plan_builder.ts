/** Builds a plan of a composed bundle: modules by their counterparts, texts, agents, grants. */
import { isObject, type JsonObject } from "../sdk/json.ts";
import { SELF } from "../plan/child_plan.ts";
import { keyOf } from "../plan/source/source.ts";
import { describe } from "../sdk/value_path.ts";
import { type Agent, modulesOfTools, readAgent, rulesOfTools } from "./agents.ts";
import { type Composed, type Entry, LISTS, type Origin } from "./compose.ts";
import { moduleIdOf, translate, type TranslationContext } from "./counterparts.ts";
import type { BundleLoader } from "./load.ts";
import { findModes } from "./modes.ts";
import { parseReference, show, urlOf } from "./places.ts";
import { forModel, Prompts } from "./prompts.ts";

/** A part of a plan, and the files that it came from. */
export interface PlanPart {
  /** Keys and indexes, such as `["tools", 0]`. */
  readonly path: readonly (string | number)[];
  readonly from: string;
}

interface BuilderOptions {
  readonly keysOf: TranslationContext["keysOf"];
  readonly builtins: ReadonlySet<string>;
  readonly pathOf: (url: string) => string;
}

/** A plan without the report about it. */
export interface BuiltPlan {
  readonly plan: JsonObject;
  readonly parts: readonly PlanPart[];
  readonly modules: { readonly run: readonly string[]; readonly left_out: readonly string[] };
}

/** Most recipes that a report names. */
const MAX_NAMED = 20;

/** Keys of a plan's session besides the modules. */
const SESSION_KEYS: ReadonlySet<string> = new Set([
  ...["injection_budget_per_turn", "injection_budget_mode", "injection_size_limit"],
  ...["hooks_first", "raw", "metadata"],
]);

/** Where a module came from that no file names. */
const ADDED = "no file: it asks a person, as the program of a bundle does";

/** Modules whose place the plan's `modes` take. */
const MODE_MODULES: ReadonlySet<string> = new Set(["hooks-mode", "tool-mode"]);

/** Builds the plan of one import. */
export class PlanBuilder {
  readonly #loader: BundleLoader;
  readonly #options: BuilderOptions;
  readonly #prompts: Prompts;
  readonly #parts: PlanPart[] = [];
  /** Section and key of a module → the files that it came from. */
  readonly #module_origins = new Map<string, string[]>();
  readonly #run = new Set<string>();
  readonly #left_out = new Set<string>();
  /** Rules of hooks-approval that other modules need. */
  readonly #rules: JsonObject[] = [];
  /** Modules of modes that the bundle names. */
  readonly #mode_modules = new Set<string>();

  constructor(loader: BundleLoader, options: BuilderOptions) {
    this.#loader = loader;
    this.#options = options;
    this.#prompts = new Prompts(loader);
  }

  /** Resolves to the plan of a bundle. */
  async ofBundle(bundle: Composed): Promise<BuiltPlan> {
    const { report } = this.#loader;
    const { rest } = bundle;
    const plan: JsonObject = {};
    if (bundle.description !== undefined) plan.description = oneLine(bundle.description);
    plan.session = await this.#session(bundle.session, bundle.session_from);
    const prompt = await this.#prompts.ofSession(bundle.instruction, bundle.context.values());
    if (prompt && rest.system === undefined) {
      plan.system = prompt.text;
      this.#parts.push({ path: ["system"], from: prompt.sources.join(", ") });
    }
    if (this.#prompts.mentions_project && rest.instructions === undefined) {
      plan.instructions = "project";
      report.note(
        "A text mentions AGENTS.md: instructions: project reads it in the folder that the agent works in",
      );
    }
    for (const section of ["providers", "tools"] as const) {
      const specs = await this.#modules(section, bundle.modules[section]);
      if (specs.length > 0) plan[section] = withoutPatchTwice(specs);
    }
    if (plan.providers === undefined && rest.model === undefined) {
      report.note(
        "The bundle names no provider, as most do",
        "run it with -m PROVIDER/MODEL, or set PREAMP_MODEL for prompts without a plan",
      );
    }
    plan.hooks = await this.#modules("hooks", bundle.modules.hooks);
    const agents = await this.#agents(bundle, plan);
    if (Object.keys(agents).length > 0) plan.agents = agents;
    this.#finishGate(plan);
    this.#reportRoles(agents, rest.roles);
    await this.#reportRecipes();
    const modes = await this.#modes(bundle);
    if (Object.keys(modes).length > 0) plan.modes = modes;
    return this.#built({ ...plan, ...this.#rest(rest) });
  }

  /** Resolves to the plan of an agent's file: the agent speaks with the person itself. */
  async ofAgent(agent: Agent): Promise<BuiltPlan> {
    const { description, instruction, place, parts, fields, only } = agent;
    const from = show(place);
    const origin: Origin = { file: from, chain: [] };
    const prompt = await this.#prompts.ofAgent(instruction, place);
    const session = isObject(parts.session) ? parts.session : {};
    const entries = (section: string) => this.#entriesOf(parts[section], origin);
    const tools = only
      ? modulesOfTools(only).map((module) => ({ spec: { module }, from: [origin] }))
      : entries("tools");
    const plan: JsonObject = {
      ...(description === undefined ? {} : { description: oneLine(description) }),
      session: await this.#session(session, {}),
      system: prompt.text,
    };
    this.#parts.push({ path: ["system"], from: prompt.sources.join(", ") });
    const providers = await this.#modules("providers", entries("providers"));
    if (providers.length > 0) plan.providers = providers;
    plan.tools = await this.#modules("tools", tools);
    const hooks = await this.#modules("hooks", entries("hooks"));
    plan.hooks = only ? withRules(hooks, rulesOfTools(only, [])) : hooks;
    this.#finishGate(plan);
    if (fields.model_role !== undefined || fields.provider_preferences !== undefined) {
      this.#loader.report.note(
        `The model that ${from} asks for is that of a sub-agent, and this plan is run itself`,
        "choose one with -m PROVIDER/MODEL",
      );
    }
    return this.#built(plan);
  }

  #built(plan: JsonObject): BuiltPlan {
    for (const section of LISTS) {
      for (const [index, spec] of (Array.isArray(plan[section]) ? plan[section] : []).entries()) {
        const from = this.#module_origins.get(`${section} ${keyOf(spec)}`) ?? [ADDED];
        this.#parts.push({ path: [section, index], from: from.join("; ") });
      }
    }
    return { plan, parts: this.#parts, modules: { run: [...this.#run], left_out: [...this.#left_out] } };
  }

  async #session(session: JsonObject, from: Composed["session_from"]): Promise<JsonObject> {
    const { report } = this.#loader;
    const { orchestrator, context, ...rest } = session;
    const built: JsonObject = {};
    for (
      const [slot, written, otherwise] of [
        ["orchestrator", orchestrator, "loop-streaming"],
        ["context", context, "context-simple"],
      ] as const
    ) {
      const origins = from[slot] ?? [];
      const translated = written === undefined || written === null
        ? null
        : await this.#translate({ spec: specOf(written), from: origins });
      if (translated === null) {
        report.note(
          `session.${slot} is ${otherwise}, ${written ? "in its place" : "as the bundle names none"}`,
        );
      }
      built[slot] = translated ? short(translated) : otherwise;
      if (origins.length > 0) this.#parts.push({ path: ["session", slot], from: textOf(origins) });
    }
    for (const [key, value] of Object.entries(rest)) {
      if (SESSION_KEYS.has(key)) built[key] = value;
      else if (!/_source$/.test(key)) report.note(`session.${key} has no counterpart`);
    }
    return built;
  }

  async #modules(section: string, entries: readonly Entry[]): Promise<JsonObject[]> {
    const specs: JsonObject[] = [];
    for (const entry of entries) {
      const spec = await this.#translate(entry);
      if (!spec) continue;
      const key = `${section} ${keyOf(spec)}`;
      const from = new Set([...this.#module_origins.get(key) ?? [], textOf(entry.from)]);
      this.#module_origins.set(key, [...from]);
      specs.push(spec);
    }
    return specs;
  }

  async #translate({ spec, from }: Entry): Promise<JsonObject | null> {
    const id = String(spec.module ?? keyOf(spec));
    if (MODE_MODULES.has(id)) {
      this.#mode_modules.add(id);
      return null; // reported with the modes
    }
    const context: TranslationContext = {
      report: this.#loader.report,
      builtins: this.#options.builtins,
      where: from.at(-1)?.file ?? "the bundle",
      skillFolders: (references) => this.#skillFolders(references, from),
      entryOf: (source) => this.#entryOf(source),
      keysOf: this.#options.keysOf,
      addRules: (rules) => void this.#rules.push(...rules),
    };
    const translated = await translate(spec, context);
    (translated === null ? this.#left_out : this.#run).add(id);
    return translated;
  }

  /** Resolves to the folders of skills on this machine; reports the others. */
  async #skillFolders(references: readonly unknown[], from: readonly Origin[]): Promise<string[]> {
    const { report } = this.#loader;
    const where = from.at(-1)?.file ?? "the bundle";
    const folders: string[] = [];
    for (const written of references) {
      const reference = typeof written === "string" ? parseReference(written) : null;
      if (reference?.kind === "named") {
        const found = await this.#folderOf(String(written), where);
        if (found) folders.push(found);
        continue;
      }
      if (reference?.kind === "path" || reference?.kind === "name") {
        folders.push(`\${WORKSPACE}/${String(written).replace(/^(\.\/)+/, "")}`);
        continue;
      }
      report.warn(
        `The skills ${describe(written)} of ${where} are left out: they are on another host`,
        "clone the repository, and name the folder in config.skills and permissions.read of tool-skills",
      );
    }
    return folders;
  }

  /** Resolves to a local module as the plan names it; null if it is not code for this program. */
  async #entryOf(source: string): Promise<string | null> {
    if (!source.startsWith("file:")) return null;
    if (/\.[cm]?[jt]sx?$/.test(source)) return this.#options.pathOf(source);
    for (const { folder: { root } } of [...this.#loader.namespaces.values()].flat()) {
      if (!source.startsWith(root.url)) continue;
      const folder = decodeURIComponent(source.slice(root.url.length)).replace(/\/$/, "");
      if (!(await this.#loader.files.list({ root, path: folder }))?.includes("mod.ts")) return null;
      return this.#options.pathOf(urlOf({ root, path: folder === "" ? "mod.ts" : `${folder}/mod.ts` }));
    }
    return null;
  }

  async #folderOf(written: string, where: string): Promise<string | null> {
    const { report, files, namespaces } = this.#loader;
    const reference = parseReference(written);
    const known = reference.kind === "named" ? namespaces.get(reference.namespace)?.[0]?.file : undefined;
    for (const place of known ? this.#loader.candidates(written, known, "The folder") ?? [] : []) {
      if (await files.list(place) !== null) return this.#options.pathOf(urlOf(place));
    }
    report.warn(
      `The skills ${describe(written)} of ${where} are left out: there is no such folder on this machine`,
    );
    return null;
  }

  /** Sets the rules that the tools of a plan and of its agents need; reports what they may. */
  #finishGate(plan: JsonObject): void {
    const agents = isObject(plan.agents) ? Object.values(plan.agents) : [];
    const tools = [plan, ...agents].flatMap((part) =>
      isObject(part) && Array.isArray(part.tools) ? part.tools : []
    );
    const modules = new Set(tools.map((tool) => String(isObject(tool) ? tool.module : tool)));
    const grants = Object.keys(GRANTS).filter((module) => modules.has(module)).map((module) =>
      GRANTS[module]
    );
    if (grants.length > 0) {
      this.#loader.report.note(
        `The plan grants ${
          grants.join(", ")
        }; a person is asked before a call writes, runs a command or reads the web`,
        "preamp plan explain shows all; narrow permissions and the rules of hooks-approval",
      );
    }
    const web = modules.has("tool-web") ? [{ tool: "web_*", action: "ask", remember: "session" }] : [];
    const hooks = plan.hooks as JsonObject[];
    const rules = [...this.#rules, ...web];
    const gate = gateOf(hooks);
    if (rules.length > 0) plan.hooks = withRules(hooks, [...rules, ...gate ? rulesOf(gate) : []]);
    else if (!gate && [...modules].some((module) => !HARMLESS.has(module))) {
      plan.hooks = [...hooks, { module: "hooks-approval", config: { preset: "ask-writes" } }];
    }
  }

  async #agents(bundle: Composed, plan: JsonObject): Promise<JsonObject> {
    const { report } = this.#loader;
    const agents: JsonObject = {};
    for (const [name, source] of bundle.agents) {
      if (name === SELF) {
        report.warn(`The agent ${describe(name)} is left out: the name means the plan itself`, "rename it");
        continue;
      }
      const agent = await readAgent(name, source, this.#loader);
      if (!agent) continue;
      agents[name] = await this.#agent(agent, plan, source.origin);
      this.#parts.push({
        path: ["agents", name],
        from: textOf([fileOf(agent, source.origin)]),
      });
    }
    return agents;
  }

  async #agent(agent: Agent, plan: JsonObject, origin: Origin): Promise<JsonObject> {
    const { description, instruction, place, fields, parts, only } = agent;
    const prompt = await this.#prompts.ofAgent(instruction, place);
    const own: JsonObject = {
      ...(description === undefined ? {} : { description: forModel(description) }),
      system: prompt.text,
      ...this.#reachable(fields, plan),
    };
    const file = fileOf(agent, origin);
    for (const section of ["providers", "tools", "hooks"] as const) {
      const specs: JsonObject[] = [];
      for (const entry of this.#entriesOf(parts[section], file)) {
        const spec = await this.#translate(entry);
        if (spec) specs.push(spec);
      }
      if (specs.length > 0) own[section] = specs;
    }
    if (isObject(parts.session)) {
      const session: JsonObject = {};
      for (const [slot, written] of Object.entries(parts.session)) {
        const spec = slot === "orchestrator" || slot === "context"
          ? await this.#translate({ spec: specOf(written), from: [file] })
          : null;
        if (spec) session[slot] = short(spec);
      }
      if (Object.keys(session).length > 0) own.session = session;
    }
    if (only) {
      const gate = gateOf(plan.hooks as JsonObject[]);
      own.hooks = withRules((own.hooks ?? []) as JsonObject[], rulesOfTools(only, gate ? rulesOf(gate) : []));
    }
    if (Array.isArray(own.tools)) own.tools = this.#agentTools(own.tools as JsonObject[], plan, file);
    return own;
  }

  /** Returns the fields of an agent without preferences for providers that do not exist here. */
  #reachable(fields: JsonObject, plan: JsonObject): JsonObject {
    const { provider_preferences: preferences, ...rest } = fields;
    if (!Array.isArray(preferences)) return fields;
    const own = (Array.isArray(plan.providers) ? plan.providers : []).map(keyOf);
    const known = preferences.filter((preference) => {
      const provider = isObject(preference) ? preference.provider : undefined;
      if (typeof provider !== "string" || own.includes(provider)) return true; // the check reports another form
      if (this.#options.builtins.has(`provider-${provider.replace(/^provider-/, "")}`)) return true;
      this.#loader.report.note(
        `Preferences for the provider ${describe(provider)}, which does not exist here, are left out`,
      );
      return false;
    });
    return known.length === 0 ? rest : { ...rest, provider_preferences: known };
  }

  /** Returns an agent's tools: what the plan has too is not repeated. */
  #agentTools(tools: readonly JsonObject[], plan: JsonObject, { file }: Origin): unknown[] {
    const inherited = new Map(
      (Array.isArray(plan.tools) ? plan.tools : []).map((spec) => [keyOf(spec), spec]),
    );
    return withoutPatchTwice(tools).map((spec) => {
      const { permissions, ...rest } = spec;
      const known = inherited.get(keyOf(spec));
      if (isObject(known)) {
        return Object.keys(rest).length === 1 ? rest.module : rest;
      }
      if (isObject(permissions) && Object.keys(permissions).length > 0) {
        this.#lend(permissions, plan, String(rest.module), file);
      }
      return spec;
    });
  }

  /** Gives the tool that starts agents a permission of theirs: an agent has none that its parent lacks. */
  #lend(permissions: JsonObject, plan: JsonObject, module: string, file: string): void {
    const tools = Array.isArray(plan.tools) ? plan.tools : [];
    const task = tools.find((spec) => isObject(spec) && spec.module === "tool-task");
    if (!isObject(task)) return; // no agent is started
    const lent: JsonObject = isObject(task.permissions) ? { ...task.permissions } : {};
    for (const [kind, entries] of Object.entries(permissions)) {
      const before = lent[kind];
      lent[kind] = Array.isArray(before) && Array.isArray(entries)
        ? [...new Set([...before, ...entries])]
        : before === true
        ? true
        : entries;
    }
    task.permissions = lent;
    this.#loader.report.note(`tool-task has the permissions of ${module} for the agent of ${file}`);
  }

  #entriesOf(list: unknown, origin: Origin): Entry[] {
    return (Array.isArray(list) ? list : []).flatMap((item) => {
      const spec = specOf(item);
      if (keyOf(spec) !== undefined) return [{ spec, from: [origin] }];
      this.#loader.report.warn(
        `An entry of ${origin.file} is left out: it must be { module }: received ${describe(item)}`,
      );
      return [];
    });
  }

  /** Reports each role that no model is set for, once. */
  #reportRoles(agents: JsonObject, mapped: unknown): void {
    const roles = Object.values(agents).flatMap((agent) => isObject(agent) ? [agent.model_role].flat() : []);
    const missing = [...new Set(roles)].filter((role) =>
      typeof role === "string" && !(isObject(mapped) && Object.hasOwn(mapped, role))
    );
    if (missing.length === 0) return;
    this.#loader.report.note(
      `Agents ask for models by the roles ${missing.join(", ")}, and run on the plan's model`,
      `add a model for each: roles: { ${missing[0]}: PROVIDER/MODEL }`,
    );
  }

  async #reportRecipes(): Promise<void> {
    const recipes = await this.#loader.filesIn("recipes", /\.ya?ml$/i);
    if (recipes.length === 0) return;
    const names = recipes.slice(0, MAX_NAMED).map(show).join(", ");
    const more = recipes.length > MAX_NAMED ? ` and ${recipes.length - MAX_NAMED} more` : "";
    this.#loader.report.note(
      `Recipes (${recipes.length}) are no part of the plan, as there is no runner for them: ${names}${more}`,
      "their steps are prompts of one session, or a program with the library",
    );
  }

  /** Resolves to the modes of the bundle, for a plan; reports a gate that is missing. */
  async #modes(bundle: Composed): Promise<JsonObject> {
    const { report } = this.#loader;
    const named = [...this.#mode_modules];
    const modes = await findModes(this.#loader);
    const names = Object.keys(modes);
    if (names.length > 0) {
      for (const id of named) this.#run.add(id);
      report.note(
        `The modes ${
          names.join(", ")
        } are gates of the plan, and none is on at first; only a person changes the mode`,
        "preamp chat: /mode NAME; preamp run: --mode NAME; or mode: NAME in the plan",
      );
      return modes;
    }
    for (const id of named) this.#left_out.add(id);
    if (named.length > 0) {
      report.warn(
        `The modes of ${
          bundle.name ?? "the bundle"
        } are left out, and with them what they deny: no folder modes/ can be listed`,
        "clone the repositories of bundles on other hosts, and import the folder",
      );
    }
    return {};
  }

  /** Returns the further keys of a plan. */
  #rest({ spawn, ...rest }: JsonObject): JsonObject {
    if (!isObject(spawn)) return rest;
    const mapped: JsonObject = { ...spawn };
    for (const key of ["exclude_tools", "tools"]) {
      const ids = spawn[key];
      if (Array.isArray(ids)) {
        mapped[key] = [...new Set(ids.map((item) => moduleIdOf(String(keyOf(item) ?? item))))];
      }
    }
    return { ...rest, spawn: mapped };
  }
}

/** Tools whose calls need no approval: they read, or only speak with the model. */
const HARMLESS: ReadonlySet<string> = new Set([
  ...["tool-search", "tool-skills", "tool-todo", "tool-task", "tool-calculator"],
]);

/** What a tool may touch, in the words of a report. */
const GRANTS: Readonly<Record<string, string>> = {
  "tool-filesystem": "read and write of the workspace",
  "tool-bash": "the shell, with all rights of this user",
  "tool-web": "all public hosts",
};

/** Returns modules where the tools of a patch are those of `tool-filesystem`, if it is there too. */
function withoutPatchTwice(specs: readonly JsonObject[]): JsonObject[] {
  const first = specs.find((spec) => keyOf(spec) === "tool-filesystem");
  return specs.filter((spec) => spec === first || keyOf(spec) !== "tool-filesystem").map((spec) => {
    const is_both = spec === first && specs.filter((other) => keyOf(other) === "tool-filesystem").length > 1;
    if (!is_both || !isObject(spec.config)) return spec;
    const { dialect: _, ...config } = spec.config;
    const { config: __, ...rest } = spec;
    return Object.keys(config).length === 0 ? rest : { ...rest, config };
  });
}

function gateOf(hooks: readonly JsonObject[]): JsonObject | undefined {
  return hooks.find(({ module }) => module === "hooks-approval");
}

function rulesOf({ config }: JsonObject): unknown[] {
  return isObject(config) && Array.isArray(config.rules) ? config.rules : [];
}

/** Returns hooks whose approval has these rules. */
function withRules(hooks: readonly JsonObject[], rules: readonly unknown[]): JsonObject[] {
  const gate = gateOf(hooks) ?? { module: "hooks-approval", config: { preset: "ask-writes" } };
  const config: JsonObject = isObject(gate.config) ? gate.config : {};
  const changed = { ...gate, config: { ...config, rules: [...rules] } };
  return hooks.includes(gate) ? hooks.map((hook) => hook === gate ? changed : hook) : [...hooks, changed];
}

/** Returns where an agent was written. */
function fileOf({ place }: Agent, origin: Origin): Origin {
  const file = show(place);
  return file === origin.file ? origin : { file, chain: [origin.file, ...origin.chain] };
}

function specOf(written: unknown): JsonObject {
  return isObject(written) ? written : { module: written };
}

/** Returns a module as its id, if there is nothing else to say. */
function short(spec: JsonObject): unknown {
  return Object.keys(spec).length === 1 ? spec.module : spec;
}

function oneLine(text: string): string {
  return forModel(text.replaceAll(/\s+/g, " ").trim());
}

/** Returns the files of a part, with those that include the last one. */
function textOf(origins: readonly Origin[]): string {
  const files = [...new Set(origins.map(({ file }) => file))];
  const chain = origins.at(-1)?.chain ?? [];
  return `${files.join(", ")}${chain.length === 0 ? "" : `, included by ${chain.join(", ")}`}`;
}
