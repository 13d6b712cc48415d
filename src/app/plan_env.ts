/** Expands environment variables in the configs of a plan, and warns about variables that are not set. */
import type { CompiledPlan } from "../plan/compile.ts";
import { type EnvReference, expandEnv } from "../plan/env.ts";
import { typeVariables } from "../plan/check/check_config.ts";
import { type Grants, specsOf } from "../policy/authorise.ts";
import { isSecretKey } from "../policy/redact.ts";
import type { SecretSink } from "../runs/ports.ts";
import { isObject, type JsonObject } from "../sdk/json.ts";
import type { ModuleSpec } from "../sdk/types.ts";
import type { Warning } from "../runs/types.ts";

/** Returns the value of a variable; undefined if it is not set or may not be read. */
export type LookUp = (name: string) => string | undefined;

/** Returns a warning for each reference without a default whose variable is not set. */
export function unsetVariables(compiled: CompiledPlan, lookup: LookUp): Warning[] {
  if (compiled.env.length === 0) return [];
  const own = specsOf(compiled.plan)
    .flatMap((spec) => expandEnv(spec.config, lookup, `${spec.path}.config`).missing);
  return [...own, ...unsetInAgents(compiled, lookup)]
    .map(({ name, path }) => ({ code: "env_unset", path, message: `The variable ${name} is not set` }));
}

/** Returns unset variables in the configs of overlays. `${…}` in text for models is not a reference. */
function unsetInAgents({ plan, env }: CompiledPlan, lookup: LookUp): EnvReference[] {
  const places = new Set(env.flatMap(({ path, expanded }) => expanded ? [path] : []));
  return expandEnv(plan.agents, lookup, "agents").missing.filter(({ path }) => places.has(path));
}

/** Returns a lookup of the variables that a plan may read. */
export function readableVariables({ mayReadEnv }: Pick<Grants, "mayReadEnv">, env: LookUp): LookUp {
  return (name) => mayReadEnv(name) ? env(name) : undefined;
}

/** Lookups of a plan's variables. */
export interface LookUps {
  /** For `${VAR}` in the plan: what its origin may read. */
  readonly plan: LookUp;
  /** For keys and addresses of built-in providers: every variable of the process. */
  readonly keys: LookUp;
}

/**
 * Returns a module's config with the values of its variables, typed by its schema, and with the key and the
 * address of a built-in provider that the plan does not state. Registers its secrets: each text value of a
 * variable, and fields with the names of secrets.
 *
 * @param schema The schema of a built-in module; undefined for others.
 */
export function expandConfig(
  spec: ModuleSpec,
  schema: JsonObject | undefined,
  { plan: lookup, keys }: LookUps,
  secrets: Pick<SecretSink, "register">,
): JsonObject {
  const defaults = schema ? defaultsOf(spec.config, schema, keys) : undefined;
  if (defaults === undefined && isEmpty(spec.config)) return {}; // most modules have none
  const expansion = expandEnv(spec.config, lookup, `${spec.path}.config`);
  const config = schema && expansion.refers
    ? typeVariables(expansion.value, spec.config, schema)
    : expansion.value;
  Object.assign(config, defaults);
  for (const secret of expansion.secrets) if (holdsText(config, secret)) secrets.register(secret);
  registerSecrets(config, secrets);
  return config;
}

/** Returns the settings that a config does not state: each has the value of its first variable that is set. */
function defaultsOf(config: JsonObject, schema: JsonObject, keys: LookUp): JsonObject | undefined {
  let defaults: JsonObject | undefined;
  for (const [setting, names] of defaultVariables(config, schema)) {
    const value = names.map((name) => keys(name)?.trim()).find(Boolean);
    if (value) (defaults ??= {})[setting] = value;
  }
  return defaults;
}

/**
 * Returns the settings of a built-in provider whose default is in a variable, with their variables: `env_vars`
 * in its schema, such as those of `api_key`. Settings that the config states are left out; all of them, when it
 * states `base_url`: the key of a vendor is sent to the vendor only, and another address has a key of its own.
 */
export function defaultVariables(config: JsonObject, { properties }: JsonObject): [string, string[]][] {
  if (!isObject(properties) || Object.hasOwn(config, "base_url")) return [];
  return Object.entries(properties).flatMap(([setting, field]): [string, string[]][] => {
    if (!isObject(field) || !Array.isArray(field.env_vars) || Object.hasOwn(config, setting)) return [];
    return [[setting, field.env_vars.filter((name) => typeof name === "string")]];
  });
}

/**
 * Returns true if a config contains the text. A variable that became a number is not a secret; its digits
 * would be redacted everywhere.
 */
function holdsText(value: unknown, text: string): boolean {
  if (typeof value === "string") return value.includes(text);
  return typeof value === "object" && value !== null &&
    Object.values(value).some((item) => holdsText(item, text));
}

function isEmpty(config: JsonObject): boolean {
  for (const _ in config) return false;
  return true;
}

/** Registers the values of fields with the names of secrets, because a module may copy them elsewhere. */
function registerSecrets(value: unknown, secrets: Pick<SecretSink, "register">): void {
  if (Array.isArray(value)) { for (const item of value) registerSecrets(item, secrets); }
  if (!isObject(value)) return;
  for (const [key, item] of Object.entries(value)) {
    if (typeof item === "string" && isSecretKey(key)) secrets.register(item);
    else registerSecrets(item, secrets);
  }
}
