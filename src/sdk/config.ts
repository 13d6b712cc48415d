/**
 * Checks a config against a JSON Schema and fills in its defaults. Modules call {@link readConfig}; the plan
 * check uses the same interpreter before it mounts a module.
 *
 * Supported keywords: `type`, `enum`, `anyOf`, `properties`, `required`, `additionalProperties` (false or a
 * schema), `items`, `minItems`, `maxItems`, `minLength`, `maxLength`, `minimum`, `maximum`,
 * `exclusiveMinimum`, `format: "decimal"` (money) and `default`. Others are ignored. The host makes texts
 * of `format: "path"` absolute.
 */
import { type ErrorDetail, PreampError } from "./errors.ts";
import { checkKeys, didYouMean, type Finding, Findings } from "./findings.ts";
import { isObject, type JsonObject, toPlain } from "./json.ts";
import { isDecimal } from "./money.ts";
import { describe, describeKind, formatPath, type Path } from "./value_path.ts";

/** Reports that the value at a path of a config breaks a rule; `fact` says what is wrong with it. */
export type RefuseConfig = (path: readonly (string | number)[], fact: string, hint?: string) => void;

/**
 * Returns a module's config with the defaults of its schema; does not change `config`. Unknown keys remain;
 * a key within two letters of a known one is an error.
 *
 * @param check Checks rules that the schema cannot express; called only if the config fits the schema.
 * @throws {PreampError} `module_invalid`; `details` has every problem with its path, such as
 * `config.rules[0].tool`.
 *
 * @example
 * ```ts
 * import { readConfig } from "preamp";
 *
 * const schema = {
 *   type: "object",
 *   properties: { low: { type: "integer", default: 1 }, high: { type: "integer", default: 6 } },
 * };
 * const range = readConfig<{ low: number; high: number }>(schema, { high: 20 }, ({ low, high }, refuse) => {
 *   if (low > high) refuse(["low"], "must be at most high");
 * });
 * console.log(range); // { high: 20, low: 1 }
 * ```
 */
export function readConfig<T>(
  schema: JsonObject,
  config: JsonObject,
  check?: (config: T, refuse: RefuseConfig) => void,
): T {
  const findings = new Findings();
  checkConfig(config, schema, { findings, path: ["config"], name: formatPath });
  const settings = withDefaults(config, schema) as T; // it fits the schema, or the next lines throw
  if (findings.errors.length === 0) {
    check?.(settings, (path, fact, hint) => {
      const place = ["config", ...path];
      findings.error(place, "value", `Cannot read ${formatPath(place)}: ${fact}`, hint);
    });
  }
  if (findings.errors.length > 0) throw configError(findings.errors);
  return settings;
}

function configError(errors: readonly Finding[]): PreampError {
  const details = errors.map(({ path, message, hint }): ErrorDetail => ({
    path: formatPath(path),
    message,
    ...(hint === undefined ? {} : { hint }),
  }));
  const { message, hint } = details[0]!; // the caller checked that there is one
  const more = details.length === 1 ? "" : `; and ${details.length - 1} more`;
  return new PreampError("module_invalid", `${message}${hint === undefined ? "" : ` (${hint})`}${more}`, {
    details,
  });
}

/**
 * Returns a config in which missing keys have the defaults of the schema, also in objects and lists inside
 * it. Shares the values that it does not change.
 */
export function withDefaults(value: unknown, schema: JsonObject): unknown {
  if (Array.isArray(schema.anyOf)) {
    const branch = schema.anyOf.filter(isObject).find((branch) => fits(value, branch));
    return branch ? withDefaults(value, branch) : value;
  }
  const { items, properties = {}, additionalProperties: others } = schema;
  if (Array.isArray(value)) return isObject(items) ? value.map((item) => withDefaults(item, items)) : value;
  if (!isObject(value) || !isObject(properties)) return value;
  const filled = { ...value };
  if (isObject(others)) {
    for (const name of otherKeys(value, properties)) filled[name] = withDefaults(value[name], others);
  }
  for (const [name, rule] of rulesOf(properties).list) {
    if (name === "__proto__") continue;
    const given = Object.hasOwn(value, name) ? value[name] : undefined;
    if (given !== undefined) filled[name] = withDefaults(given, rule);
    else if (Object.hasOwn(rule, "default")) filled[name] = toPlain(rule.default);
  }
  return filled;
}

/** Returns the keys of a value that `properties` does not have. */
function otherKeys(value: JsonObject, properties: unknown): string[] {
  const known = isObject(properties) ? properties : {};
  return Object.keys(value).filter((name) => name !== "__proto__" && !Object.hasOwn(known, name));
}

/** The `properties` of a schema as lists. */
interface Rules {
  readonly names: ReadonlySet<string>;
  /** Names and rules that are schemas. */
  readonly list: readonly (readonly [name: string, rule: JsonObject])[];
}

/** perf: a module's schema is read at each of its mounts. */
const known_rules = new WeakMap<JsonObject, Rules>();

function rulesOf(properties: JsonObject): Rules {
  let rules = known_rules.get(properties);
  if (rules === undefined) {
    const entries = Object.entries(properties);
    const list = entries.filter((entry): entry is [string, JsonObject] => isObject(entry[1]));
    known_rules.set(properties, rules = { names: new Set(entries.map(([name]) => name)), list });
  }
  return rules;
}

function fits(value: unknown, schema: JsonObject): boolean {
  const findings = new Findings();
  checkConfig(value, schema, { findings, path: [], name: formatPath });
  return findings.errors.length === 0;
}

/** Findings of a config check, and how its messages refer to values. */
export interface ConfigReport {
  readonly findings: Findings;
  /** Path of the config in its document. */
  readonly path: Path;
  /** Returns the name of the value at a path. */
  name(path: Path): string;
  /**
   * Returns the environment variables in the value at a path. Messages name them instead of the value.
   * Default: none.
   */
  variables?(path: Path): readonly string[];
  /**
   * Formats a wrong value. Default: the kind of a text and the value of a number, since a config may hold
   * secrets.
   */
  show?(value: unknown): string;
  /** Returns whether a value is not checked, because it is not known yet. Default: no value. */
  unknown?(value: unknown): boolean;
}

/**
 * Reports what is wrong with a config. A key within two letters of a known one is an error. Other unknown
 * keys are warnings, or errors where the schema has `additionalProperties: false`.
 */
export function checkConfig(config: unknown, schema: JsonObject, report: ConfigReport): void {
  checkValue(config, schema, report.path, report);
}

/** The only `format` that is checked: money as a decimal string. */
const MONEY_FORMAT = "decimal";
const MONEY = 'a decimal number as text, such as "0.50"';

const WORDS: Readonly<Record<string, string>> = {
  string: "text",
  integer: "a whole number",
  number: "a number",
  boolean: "true or false",
  array: "a list",
  object: "an object",
  null: "null",
};

function checkValue(value: unknown, schema: JsonObject, path: Path, report: ConfigReport): void {
  if (report.unknown?.(value)) return;
  if (Array.isArray(schema.anyOf)) return checkBranches(value, schema.anyOf.filter(isObject), path, report);
  if (Array.isArray(schema.enum)) return checkChoice(value, schema.enum, path, report);
  if (!fitsType(value, schema)) {
    const rule = schema.format === MONEY_FORMAT ? MONEY : `${wordsOf([schema])}${rangeOf(schema)}`;
    return wrong(value, rule, path, report);
  }
  if (typeof value === "number") checkNumber(value, schema, path, report);
  else if (typeof value === "string") {
    checkLength(value.length, "Length", "characters", schema, path, report);
    if (schema.format === MONEY_FORMAT && !isDecimal(value)) wrong(value, MONEY, path, report);
  } else if (Array.isArray(value)) checkItems(value, schema, path, report);
  else if (isObject(value)) checkFields(value, schema, path, report);
}

/**
 * Checks `anyOf`: reports what is wrong in the branch of the value's type, or else the list of accepted
 * types.
 */
function checkBranches(
  value: unknown,
  branches: readonly JsonObject[],
  path: Path,
  report: ConfigReport,
): void {
  const meant: Findings[] = [];
  for (const branch of branches) {
    if (!fitsType(value, branch)) continue;
    const found = new Findings();
    checkValue(value, branch, path, { ...report, findings: found });
    if (found.errors.length === 0) {
      report.findings.warnings.push(...found.warnings);
      return;
    }
    meant.push(found);
  }
  const [first] = meant;
  if (!first) return wrong(value, wordsOf(branches), path, report);
  report.findings.errors.push(...first.errors);
}

function checkChoice(value: unknown, choices: readonly unknown[], path: Path, report: ConfigReport): void {
  if (choices.includes(value)) return;
  const names = choices.filter((choice) => typeof choice === "string");
  const variables = variablesAt(path, report);
  const meant = typeof value === "string" && variables.length === 0 ? didYouMean(value, names) : undefined;
  const words = choices.map((choice) => typeof choice === "string" ? choice : JSON.stringify(choice)).join(
    ", ",
  );
  report.findings.error(
    path,
    "type",
    `Cannot read ${report.name(path)}: must be one of ${words}: received ${
      variables.length > 0 ? valueOf(variables) : describe(value)
    }`,
    meant === undefined ? hintFor(variables) : `did you mean "${meant}"?`,
  );
}

function checkNumber(value: number, schema: JsonObject, path: Path, report: ConfigReport): void {
  const { minimum, maximum, exclusiveMinimum } = schema;
  const outside = typeof minimum === "number" && value < minimum ||
    typeof maximum === "number" && value > maximum ||
    typeof exclusiveMinimum === "number" && value <= exclusiveMinimum;
  if (!outside) return;
  const word = typesOf(schema).includes("integer") ? "a whole number" : "a number";
  wrong(value, `${word}${rangeOf(schema)}`, path, report);
}

function checkLength(
  length: number,
  suffix: "Length" | "Items",
  unit: string,
  schema: JsonObject,
  path: Path,
  report: ConfigReport,
): void {
  const [least, most] = [schema[`min${suffix}`], schema[`max${suffix}`]];
  const rule = typeof least === "number" && length < least
    ? `at least ${least}`
    : typeof most === "number" && length > most
    ? `at most ${most}`
    : null;
  if (rule === null) return;
  const variables = variablesAt(path, report);
  const received = variables.length > 0 ? valueOf(variables) : String(length);
  const message = `Cannot read ${report.name(path)}: must have ${rule} ${unit}: received ${received}`;
  report.findings.error(path, "type", message, hintFor(variables));
}

function checkItems(items: readonly unknown[], schema: JsonObject, path: Path, report: ConfigReport): void {
  checkLength(items.length, "Items", "entries", schema, path, report);
  const { items: rule } = schema;
  if (!isObject(rule)) return;
  for (const [index, item] of items.entries()) checkValue(item, rule, [...path, index], report);
}

function checkFields(fields: JsonObject, schema: JsonObject, path: Path, report: ConfigReport): void {
  const { properties, additionalProperties: others } = schema;
  const rules = isObject(properties) ? rulesOf(properties) : undefined;
  if (isObject(others)) {
    for (const name of otherKeys(fields, properties)) {
      checkValue(fields[name], others, [...path, name], report);
    }
  } else if (rules) {
    const unknown = schema.additionalProperties === false ? "error" : "warning";
    checkKeys(fields, rules.names, path, report.findings, unknown);
  }
  const has = (name: string) => Object.hasOwn(fields, name) && fields[name] !== undefined;
  for (const name of Array.isArray(schema.required) ? schema.required : []) {
    if (typeof name !== "string" || has(name)) continue;
    const variables = variablesAt([...path, name], report);
    const received = variables.length > 0 ? `: received ${valueOf(variables)}, which is not set` : "";
    const message = `Cannot read ${formatPath(path)}: it must have ${describe(name)}${received}`;
    report.findings.error(path, "type", message, hintFor(variables) ?? `add ${name}`);
  }
  for (const [name, rule] of rules?.list ?? []) {
    if (has(name)) checkValue(fields[name], rule, [...path, name], report);
  }
}

/**
 * Reports a wrong value. A config may hold secrets: messages have the kind of a text and the name of a
 * variable, never the value.
 */
function wrong(value: unknown, rule: string, path: Path, report: ConfigReport): void {
  const variables = variablesAt(path, report);
  const received = variables.length > 0 ? valueOf(variables) : (report.show ?? showKind)(value);
  const message = `Cannot read ${report.name(path)}: must be ${rule}: received ${received}`;
  const hint = variables.length > 0 && (rule === WORDS.array || rule === WORDS.object)
    ? `write ${rule} itself: a variable is always text`
    : hintFor(variables);
  report.findings.error(path, "type", message, hint ?? quotesHint(value, rule));
}

function showKind(value: unknown): string {
  return typeof value === "number" ? String(value) : describeKind(value);
}

function quotesHint(value: unknown, rule: string): string | undefined {
  if (typeof value === "number" && (rule === WORDS.string || rule === MONEY)) {
    return `write it in quotes: "${value}"`;
  }
  const numeric = typeof value === "string" && value.trim() !== "" && Number.isFinite(Number(value));
  return numeric && rule !== MONEY && rule.includes("number") ? "write it without quotes" : undefined;
}

function variablesAt(path: Path, report: ConfigReport): readonly string[] {
  return report.variables?.(path) ?? [];
}

function valueOf(variables: readonly string[]): string {
  return `the value of ${variables.map((name) => `\${${name}}`).join(", ")}`;
}

function hintFor(variables: readonly string[]): string | undefined {
  return variables.length === 0 ? undefined : `set ${variables.join(", ")} to a value that fits`;
}

function typesOf(schema: JsonObject): readonly string[] {
  const { type } = schema;
  if (typeof type === "string") return [type];
  if (Array.isArray(type)) return type.filter((name) => typeof name === "string");
  return Array.isArray(schema.anyOf) ? schema.anyOf.filter(isObject).flatMap(typesOf) : [];
}

function wordsOf(schemas: readonly JsonObject[]): string {
  const words = schemas.flatMap(typesOf).map((type) => WORDS[type] ?? type);
  return [...new Set(words)].join(" or ");
}

/**
 * Returns whether a value has one of the types of a schema; one without types, or with an unknown type,
 * accepts any.
 */
function fitsType(value: unknown, schema: JsonObject): boolean {
  const types = typesOf(schema);
  return types.length === 0 || types.some((type) => IS_OF_TYPE.get(type)?.(value) ?? true);
}

/** Type of JSON Schema → whether a value has it. */
export const IS_OF_TYPE: ReadonlyMap<unknown, (value: unknown) => boolean> = new Map([
  ["null", (value: unknown) => value === null],
  ["array", Array.isArray],
  ["object", isObject],
  ["integer", Number.isSafeInteger],
  ["number", Number.isFinite],
  ["string", (value: unknown) => typeof value === "string"],
  ["boolean", (value: unknown) => typeof value === "boolean"],
]);

/** Returns ` of at least 1`, ` from 0 to 1`, ` above 0`, … or empty text. */
function rangeOf({ minimum, maximum, exclusiveMinimum }: JsonObject): string {
  if (typeof minimum === "number") {
    return typeof maximum === "number" ? ` from ${minimum} to ${maximum}` : ` of at least ${minimum}`;
  }
  const above = typeof exclusiveMinimum === "number" ? ` above ${exclusiveMinimum}` : "";
  return typeof maximum === "number" ? `${above}${above && " and"} of at most ${maximum}` : above;
}
