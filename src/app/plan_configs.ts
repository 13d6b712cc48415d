/**
 * The configs of a plan's modules: expands environment variables, warns about those that are not set, and
 * checks configs against the `config_schema` of their modules: of built-in modules before anything runs,
 * of others when they are loaded.
 */
import {
  checkExpandedConfig,
  checkWrittenConfig,
  suppliedFields,
  type Supplier,
  typeConfig,
} from "../plan/check/check_config.ts";
import type { CompiledPlan } from "../plan/compile.ts";
import { type EnvReference, expandEnv, findEnv, isFolderVariable, isRequestHeader } from "../plan/env.ts";
import { PreampError } from "../sdk/errors.ts";
import { Findings } from "../sdk/findings.ts";
import { parsePath, type Path } from "../sdk/value_path.ts";
import { type Grants, specsOf } from "../policy/authorise.ts";
import { withDefaults } from "../sdk/config.ts";
import { isObject, type JsonObject } from "../sdk/json.ts";
import type { Module } from "../sdk/contracts.ts";
import type { ModuleSpec } from "../sdk/plan.ts";
import type { ModuleTable } from "./module_table.ts";
import { isSecretKey } from "../policy/redact.ts";
import type { SecretSink } from "../runs/ports.ts";
import type { Warning } from "../runs/types.ts";

/**
 * Resolves to findings about the configs of a plan's built-in modules as written; loads those modules.
 * Modules from URLs are checked when their code runs: see {@link checkOpened}.
 */
export async function checkConfigs(
  specs: readonly ModuleSpec[],
  written: JsonObject,
  modules: ModuleTable,
): Promise<Findings> {
  const findings = new Findings();
  for (const { spec, schema } of await schemasOf(specs, modules)) {
    checkWrittenConfig(spec.config, schema, configPath(spec, written), findings);
  }
  return findings;
}

/**
 * Checks the configs of a plan's built-in modules with the values of their variables, and resolves to the
 * errors. The configs as written must have no errors. Findings name the variables, never their values.
 *
 * @param lookup Returns the value of a variable; undefined if it is not set or may not be read.
 */
export async function checkVariables(
  compiled: CompiledPlan,
  modules: ModuleTable,
  lookup: LookUp,
): Promise<Findings> {
  const findings = new Findings();
  for (const { spec, schema } of await schemasOf(specsOf(compiled.plan), modules)) {
    const { value } = expandEnv(spec.config, lookup);
    const config = typeConfig(value, spec.config, schema);
    checkExpandedConfig(config, schema, configPath(spec, compiled.written), findings, spec.config);
  }
  return findings;
}

/** Adds a warning for each secret in a config of a plan: plans are kept where others read them. */
export function warnOfSecrets(plan: JsonObject, findings: Findings): void {
  const visit = (value: unknown, path: Path, in_config: boolean): void => {
    if (typeof value !== "object" || value === null) return;
    for (const [key, item] of Object.entries(value)) {
      const at = [...path, Array.isArray(value) ? Number(key) : key];
      const is_text = typeof item === "string" && item.trim() !== "";
      if (!in_config || !is_text || !isSecretKey(key) || findEnv(item).length > 0) {
        visit(item, at, in_config || key === "config");
        continue;
      }
      const message = `The plan has the value of ${key} in plain text`;
      findings.warn(at, "secret_literal", message, "set a variable, and write ${NAME} here");
    }
  };
  visit(plan, [], false);
}

/** Loads the built-in modules of a plan and resolves to their schemas. */
async function schemasOf(
  specs: readonly ModuleSpec[],
  modules: ModuleTable,
): Promise<{ spec: ModuleSpec; schema: JsonObject }[]> {
  const found = [];
  for (const spec of specs) {
    if (!isNamedById(spec, modules)) continue;
    await modules.module(spec.module);
    const schema = schemaOf(spec, modules);
    if (schema) found.push({ spec, schema });
  }
  return found;
}

/**
 * Returns the config schema of a built-in module; undefined for other modules, and before the module is
 * loaded.
 */
export function schemaOf(spec: ModuleSpec, modules: ModuleTable): JsonObject | undefined {
  const module = isNamedById(spec, modules) ? modules.module(spec.module) : undefined;
  return module instanceof Promise ? undefined : statedSchema(module?.module);
}

/** Returns true if the table has the module. The policy reports unknown ids. */
function isNamedById({ module, source }: ModuleSpec, { ids }: ModuleTable): boolean {
  return source.kind === "builtin" && ids.has(module);
}

/**
 * Maximum characters of a config, times those of the schema of a module from a URL. Time and findings of a
 * check, and the defaults that it fills in, grow with both.
 */
const MAX_CHECKED = 500_000_000;

/** Checks that a config can be checked in this process. @throws {PreampError} `module_invalid`. */
export function checkSchemaSize({ config }: ModuleSpec, { module: info }: Pick<Module, "module">): void {
  const schema = statedSchema(info);
  if (!schema) return;
  const [written, stated] = [JSON.stringify(config).length, JSON.stringify(schema).length];
  if (written * stated <= MAX_CHECKED) return;
  const fact = `config_schema has ${stated} characters, too many for a config with ${written}`;
  throw new PreampError("module_invalid", fact);
}

/**
 * Checks the config of an opened module, and returns the findings and the config to mount it with: typed
 * variables, defaults filled in.
 *
 * @param expanded The config with the values of its variables.
 * @param written The plan as written.
 * @param folder The folder that the plan's relative paths start at.
 */
export function checkOpened(
  spec: ModuleSpec,
  { module: info }: Pick<Module, "module">,
  expanded: JsonObject,
  written: JsonObject,
  folder: string | undefined,
): { findings: Findings; config: JsonObject } {
  const findings = new Findings();
  const schema = statedSchema(info);
  if (!schema) return { findings, config: expanded };
  const path = configPath(spec, written);
  checkWrittenConfig(spec.config, schema, path, findings);
  const config = typeConfig(expanded, spec.config, schema, folder);
  if (findings.errors.length > 0) return { findings, config };
  if (findEnv(spec.config).length > 0) {
    const values = new Findings();
    checkExpandedConfig(config, schema, path, values, spec.config);
    if (values.errors.length > 0) return { findings: values, config };
  }
  return { findings, config: withDefaults(config, schema) as JsonObject }; // an object remains one
}

function statedSchema(info: unknown): JsonObject | undefined {
  const schema = isObject(info) ? info.config_schema : undefined;
  return isObject(schema) ? schema : undefined;
}

/**
 * Returns the config's path. The string form of orchestrator and context has its config in a top-level
 * block.
 */
function configPath({ path, type }: ModuleSpec, { session }: JsonObject): Path {
  if (isObject(session) && typeof session[type] === "string") return [type, "config"];
  return [...parsePath(path) ?? [], "config"];
}

/** Returns the value of a variable; undefined if it is not set or may not be read. */
export type LookUp = (name: string) => string | undefined;

/** Returns a warning for each reference without a default whose variable is not set. */
export function unsetVariables(compiled: CompiledPlan, lookup: LookUp): Warning[] {
  if (compiled.env.length === 0) return [];
  const own = specsOf(compiled.plan)
    .flatMap((spec) => expandEnv(spec.config, lookup, `${spec.path}.config`).missing);
  return [...own, ...unsetInAgents(compiled, lookup)]
    .map(({ name, path }) => ({
      code: "env_unset",
      path,
      message: isRequestHeader(name)
        ? `The request has no header ${name}`
        : `The variable ${name} is not set`,
    }));
}

/** Returns unset variables in the configs of overlays. `${…}` in text for models is not a reference. */
function unsetInAgents({ plan, env }: CompiledPlan, lookup: LookUp): EnvReference[] {
  const places = new Set(env.flatMap(({ path, expanded }) => expanded ? [path] : []));
  return expandEnv(plan.agents, lookup, "agents").missing
    .filter(({ name, path }) => places.has(path) && !isFolderVariable(name));
}

/** Returns a lookup of the variables that a plan may read, and of the headers of the run's request. */
export function readableVariables(
  { mayReadEnv }: Pick<Grants, "mayReadEnv">,
  env: LookUp,
  headers: LookUp = () => undefined,
): LookUp {
  return (name) => isRequestHeader(name) ? headers(name) : mayReadEnv(name) ? env(name) : undefined;
}

/** Lookups of a plan's variables. */
export interface LookUps {
  /** For `${VAR}` in the plan: what its origin may read. */
  readonly plan: LookUp;
  /** For keys and addresses of built-in providers: every variable of the process. */
  readonly keys: LookUp;
  /** What the host fills into configs, by its origin. */
  readonly supplied?: Readonly<Record<Supplier, JsonObject>>;
  /** The folder that the plan's relative paths start at. Absent: they remain relative. */
  readonly folder?: string | undefined;
}

/**
 * Returns a module's config with the values of its variables, typed by its schema, with absolute paths, and
 * with the key and the address of a built-in provider that the plan does not state. Registers its secrets:
 * each text value of a variable, and fields with the names of secrets.
 *
 * @param schema The schema of a built-in module; undefined for others.
 */
export function expandConfig(
  spec: ModuleSpec,
  schema: JsonObject | undefined,
  { plan: lookup, keys, folder, supplied }: LookUps,
  secrets: Pick<SecretSink, "register">,
): JsonObject {
  const defaults = schema
    ? { ...defaultsOf(spec.config, schema, keys), ...suppliedOf(schema, keys, supplied, secrets) }
    : undefined;
  if (Object.keys(defaults ?? {}).length === 0 && Object.keys(spec.config).length === 0) return {}; // most modules have none
  const expansion = expandEnv(spec.config, lookup, `${spec.path}.config`);
  const config = schema ? typeConfig(expansion.value, spec.config, schema, folder) : expansion.value;
  Object.assign(config, defaults);
  for (const secret of expansion.secrets) if (holdsText(config, secret)) secrets.register(secret);
  registerSecrets(config, secrets);
  return config;
}

/**
 * Returns the fields that a plan must not state, with the values of the operator's variables, which are
 * secrets.
 */
function suppliedOf(
  schema: JsonObject,
  keys: LookUp,
  supplied: LookUps["supplied"],
  secrets: Pick<SecretSink, "register">,
): JsonObject {
  const fields = suppliedFields(schema).map(({ key, by }) => [key, supplied?.[by] ?? {}]);
  if (fields.length === 0) return {};
  const expansion = expandEnv(Object.fromEntries(fields), keys);
  for (const secret of expansion.secrets) secrets.register(secret);
  return expansion.value;
}

/**
 * Returns the settings that a config does not state: each has the value of its first variable that is set.
 */
function defaultsOf(config: JsonObject, schema: JsonObject, keys: LookUp): JsonObject | undefined {
  let defaults: JsonObject | undefined;
  for (const [setting, names] of defaultVariables(config, schema)) {
    const value = names.map((name) => keys(name)?.trim()).find(Boolean);
    if (value) (defaults ??= {})[setting] = value;
  }
  return defaults;
}

/**
 * Returns the settings of a built-in provider whose default is in a variable, with their variables:
 * `env_vars` in its schema, such as those of `api_key`. Settings that the config states are left out; all of
 * them, when it states `base_url`: the key of a vendor is sent to the vendor only, and another address has a
 * key of its own.
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

/** Registers the values of fields with the names of secrets, because a module may copy them elsewhere. */
function registerSecrets(value: unknown, secrets: Pick<SecretSink, "register">): void {
  if (Array.isArray(value)) { for (const item of value) registerSecrets(item, secrets); }
  if (!isObject(value)) return;
  for (const [key, item] of Object.entries(value)) {
    if (typeof item === "string" && isSecretKey(key)) secrets.register(item);
    else registerSecrets(item, secrets);
  }
}
