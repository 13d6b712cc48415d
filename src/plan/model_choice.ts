/**
 * Chooses the provider and the model of a plan: that of a run (`anthropic/claude-sonnet-5-5` of `preamp
 * run -m`, of a request's `model`, of a plan's own `model`), and that of a sub-agent (src/docs/plan.md): the
 * first preference whose provider the plan has and whose model the provider lists is promoted before all
 * others. A preference cannot add a credential, an endpoint or a network setting, and cannot read a variable.
 */
import { documentError } from "./check/findings.ts";
import { MODEL_FORM, readModelName } from "./check/field_checks.ts";
import { didYouMean } from "../sdk/findings.ts";
import { PreampError } from "../sdk/errors.ts";
import { isObject, type JsonObject } from "../sdk/json.ts";
import { describe } from "../sdk/value_path.ts";
import { findEnv } from "./env.ts";
import { mergePlans } from "./merge.ts";
import { keyOf } from "./source/source.ts";
import { compileModelGlob } from "../sdk/glob.ts";
import type { ProviderPreference } from "../sdk/spawn.ts";

/** A provider and one of its models. */
interface ModelChoice {
  /** Provider as written, such as `anthropic`. */
  readonly provider: string;
  /** Id of the module, such as `provider-anthropic`. */
  readonly module: string;
  /** Id of the model, which may contain slashes and colons; absent: the provider's default. */
  readonly model?: string;
}

const PREFIX = "provider-";

/**
 * Returns the choice that a text names.
 *
 * @param modules Ids of the modules that a plan can name.
 * @throws {PreampError} `request_invalid` for another form, or a provider that is not among the modules.
 */
export function readModelChoice(text: unknown, modules: ReadonlySet<string>): ModelChoice {
  const name = typeof text === "string" ? readModelName(text) : null;
  if (name === null) throw invalid(`Cannot read model: must be ${MODEL_FORM}: received ${describe(text)}`);
  const { provider } = name;
  const module = `${PREFIX}${provider}`;
  if (modules.has(module)) return { ...name, module };
  const known = providerNames(modules);
  const meant = didYouMean(provider, known);
  throw invalid(
    `Cannot use model ${describe(text)}: there is no provider ${describe(provider)}`,
    `${meant === undefined ? "" : `did you mean ${meant}? `}the providers are ${
      known.join(", ")
    }; write ${MODEL_FORM}`,
  );
}

function invalid(message: string, hint?: string): PreampError {
  return documentError("request_invalid", "the request", [
    { path: "model", message, ...(hint === undefined ? {} : { hint }) },
  ]);
}

/** Returns the names of the providers among modules, sorted: `anthropic` for `provider-anthropic`. */
export function providerNames(modules: Iterable<string>): string[] {
  return [...modules].filter((id) => id.startsWith(PREFIX)).map((id) => id.slice(PREFIX.length)).sort();
}

/** Returns the error for a caller that chooses the model of an operator's plan. */
export function modelRefused(label: string): PreampError {
  return new PreampError(
    "policy_refused",
    `Cannot use "model" with ${label}: only the operator chooses the model of a plan on the server: leave "model" out, or send a plan of your own`,
  );
}

/** Returns the error for a caller that chooses a workspace. */
export function workspaceRefused(): PreampError {
  return new PreampError(
    "policy_refused",
    'Cannot use "workspace": only the person who has started the server chooses it: leave it out',
  );
}

/**
 * Returns a plan with its own `model` chosen, and without that key.
 *
 * @throws {PreampError} as {@link readModelChoice}.
 */
export function withOwnModel(plan: JsonObject, modules: ReadonlySet<string>): JsonObject {
  if (plan.model === undefined) return plan;
  const { model, ...rest } = plan;
  return withModel(rest, readModelChoice(model, modules));
}

/** Settings of a provider that hold for its configured model only. */
const OF_ONE_MODEL = ["prices", "context_window"] as const;

/**
 * Returns a plan that prefers the chosen provider and requires it, so that a missing key does not lead to
 * another model. A provider that the plan has keeps its settings; any other replaces the plan's first one.
 */
export function withModel(plan: JsonObject, { module, model }: ModelChoice): JsonObject {
  const providers: readonly unknown[] = Array.isArray(plan.providers) ? plan.providers : [];
  const own = providers.find((spec) => (isObject(spec) ? spec.module : spec) === module);
  const chosen = entryFor(own ?? module, model);
  const others = own === undefined ? providers.slice(1) : providers.filter((spec) => spec !== own);
  // 0: a module may have a priority of its own, which its config does not state
  return promoteProvider({ ...plan, providers: [chosen, ...others] }, chosen, {}, 0);
}

function entryFor(spec: unknown, model: string | undefined): JsonObject {
  const entry: JsonObject = isObject(spec) ? spec : { module: spec };
  const { priority: _, ...config }: JsonObject = isObject(entry.config) ? entry.config : {}; // it gets a new one
  if (model !== undefined && model !== config.model) {
    for (const key of OF_ONE_MODEL) delete config[key];
    config.model = model;
  }
  return { ...entry, ...(Object.keys(config).length > 0 ? { config } : {}), required: true };
}

/**
 * Config keys that a preference must not set: credentials, endpoints and network settings, compared without
 * case, hyphens and underscores. Extends upstream's PROTECTED_CONFIG_KEYS.
 */
const PROTECTED =
  /^(apibase|apiversion|auth|authorization|host|organization|port|privatekey|project|verify|verifyssl)$/;
const PROTECTED_ENDS = /(apikey|credentials?|endpoint|headers|password|proxy|secret|token|url)$/;

/** Priority of a provider without `priority`. */
const DEFAULT_PRIORITY = 100;

/**
 * Returns what is wrong with a list of preferences, as `<place>: <fact>`, or null. `place` names the list.
 */
export function preferenceProblem(value: unknown, place: string): string | null {
  if (!Array.isArray(value)) {
    return `${place}: must be a list of {provider, model}: received ${describe(value)}`;
  }
  for (const [index, item] of value.entries()) {
    const problem = problemOf(item);
    if (problem !== null) return `${place}[${index}]${problem}`;
  }
  return null;
}

function problemOf(item: unknown): string | null {
  if (!isObject(item)) return `: must be {provider, model}: received ${describe(item)}`;
  const { provider, model, config } = item;
  if (typeof provider !== "string" || provider === "") {
    return `.provider: must be the name of a provider: received ${describe(provider)}`;
  }
  if (model !== undefined && (typeof model !== "string" || model === "")) {
    return `.model: must be the name of a model: received ${describe(model)}`;
  }
  if (config !== undefined && !isObject(config)) {
    return `.config: must be an object: received ${describe(config)}`;
  }
  const kept = protectedKey(config);
  if (kept !== undefined) {
    const reason = "credentials, endpoints and network settings are the plan's";
    return `.config: must not set ${describe(kept)}: ${reason}`;
  }
  const [reference] = findEnv(item);
  if (!reference) return null;
  return `: must not name the variable ${describe(reference.name)}: variables are not expanded here`;
}

/** Returns the first protected key at any depth, or undefined. */
function protectedKey(value: unknown): string | undefined {
  if (Array.isArray(value)) return value.map(protectedKey).find((key) => key !== undefined);
  if (!isObject(value)) return undefined;
  for (const [key, item] of Object.entries(value)) {
    const name = key.toLowerCase().replaceAll(/[-_\s]/g, "");
    if (PROTECTED.test(name) || PROTECTED_ENDS.test(name)) return key;
    const inner = protectedKey(item);
    if (inner !== undefined) return inner;
  }
  return undefined;
}

/**
 * Returns the models that `roles` of a plan has for the first of these roles that it knows, best first; empty
 * if it knows none of them.
 */
export function modelsOfRoles(roles: unknown, names: readonly string[]): ProviderPreference[] {
  if (!isObject(roles)) return [];
  for (const name of names) {
    const written = Object.hasOwn(roles, name) ? roles[name] : undefined;
    const models = [written].flat().flatMap((text) =>
      typeof text === "string" ? readModelName(text) ?? [] : []
    );
    if (models.length > 0) return models;
  }
  return [];
}

/** Returns the models of a provider by the names it may be mounted under; empty if unknown. */
type ModelsOf = (names: readonly string[]) => Promise<readonly string[]>;

/**
 * Returns the plan with the first preference that the plan can meet promoted before all other providers:
 * its model set, its priority one below the lowest. Returns null if no preference can be met; the plan's
 * own order then applies.
 */
export async function preferProvider(
  plan: JsonObject,
  preferences: readonly ProviderPreference[],
  modelsOf: ModelsOf,
): Promise<JsonObject | null> {
  const providers = Array.isArray(plan.providers) ? plan.providers : [];
  for (const { provider, model, config = {} } of preferences) {
    const index = providers.findIndex((spec) => isNamed(spec, provider));
    if (index < 0) continue;
    const chosen = await chooseModel(model, providers[index], modelsOf);
    if (chosen === null) continue;
    const over = { ...config, ...(chosen === undefined ? {} : { model: chosen }) };
    return promoteProvider(plan, providers[index], over);
  }
  return null;
}

/**
 * Returns a plan that prefers one of its providers: its priority becomes one below the lowest.
 *
 * @param over Merged over its config.
 * @param highest The priority is below this one too.
 */
function promoteProvider(
  plan: JsonObject,
  promoted: unknown,
  over: JsonObject,
  highest: number = DEFAULT_PRIORITY,
): JsonObject {
  const providers = plan.providers as unknown[]; // a list with `promoted`
  const priority = Math.min(highest, ...providers.map(priorityOf)) - 1;
  const config = { ...over, priority };
  return withoutDefault(mergePlans(plan, { providers: [{ ...identity(promoted), config }] }));
}

/** Removes the loop's `default_provider`, which would take precedence over priorities, from a merged plan. */
function withoutDefault(plan: JsonObject): JsonObject {
  const session = isObject(plan.session) ? plan.session : {};
  for (const slot of [session.orchestrator, plan.orchestrator]) {
    if (isObject(slot) && isObject(slot.config)) delete slot.config.default_provider;
  }
  return plan;
}

function isNamed(spec: unknown, name: string): boolean {
  const module = moduleOf(spec);
  return keyOf(spec) === name || module === name || module === `provider-${name}`;
}

/**
 * Returns the model to request; undefined if the preference names none, null if none of the provider's
 * models fits.
 */
async function chooseModel(
  model: string | undefined,
  spec: unknown,
  modelsOf: ModelsOf,
): Promise<string | undefined | null> {
  const fits = model === undefined ? undefined : compileModelGlob(model);
  if (fits === undefined) return model;
  const module = moduleOf(spec) ?? "";
  const short = module.startsWith("provider-") ? module.slice("provider-".length) : module;
  const models = await modelsOf([keyOf(spec) ?? module, module, short]);
  return models.find(fits) ?? null;
}

function moduleOf(spec: unknown): string | undefined {
  const module = isObject(spec) ? spec.module : spec;
  return typeof module === "string" ? module : undefined;
}

function priorityOf(spec: unknown): number {
  const config = isObject(spec) ? spec.config : undefined;
  return isObject(config) && typeof config.priority === "number" ? config.priority : DEFAULT_PRIORITY;
}

/** Returns only the keys by which a spec is merged. */
function identity(spec: unknown): JsonObject {
  if (!isObject(spec)) return { module: spec };
  const { module, instance_id, id } = spec;
  return {
    module,
    ...(instance_id === undefined ? {} : { instance_id }),
    ...(id === undefined ? {} : { id }),
  };
}
