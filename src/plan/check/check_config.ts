/**
 * Checks a module's config against the module's JSON Schema (`config_schema`), with the messages and places
 * of plan findings. Checks types, ranges, lengths, choices and keys. Other keywords (`if`, `$ref`, …) are
 * left to the module, which checks its config at mount.
 */
import { isObject, type JsonObject, toPlain } from "../../sdk/json.ts";
import { isDecimal } from "../../sdk/money.ts";
import { didYouMean } from "../../text/did_you_mean.ts";
import { findEnv } from "../env.ts";
import { checkKeys } from "./field_checks.ts";
import { Findings } from "./findings.ts";
import { describe, describeKind, formatPath, type Path } from "../value_path.ts";

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

/** State of one check: its findings, and the variables of each value. */
interface Report {
  readonly findings: Findings;
  /** Path of the config in the plan. */
  readonly path: Path;
  /** The config before its variables were expanded; undefined if `config` is as written. */
  readonly written: JsonObject | undefined;
}

/**
 * Reports what is wrong with a config. In a config as written, values with a `${VAR}` pass, because their
 * type is known after expansion. In an expanded config, messages name the variables of such a value, never
 * the value. A key within two letters of a known one is an error. Other unknown keys are warnings, or
 * errors where the schema has `additionalProperties: false`.
 *
 * @param path Place of the config in the plan.
 * @param written The config as written, when `config` is the expanded and typed one (typed_env.ts).
 */
export function checkConfig(
  config: JsonObject,
  schema: JsonObject,
  path: Path,
  findings: Findings,
  written?: JsonObject,
): void {
  checkValue(config, schema, path, { findings, path, written });
}

/**
 * Fills in the defaults of a schema where a config, or an object in it, lacks a key. Changes `config`.
 *
 * @param config An expanded copy that is not shared.
 */
export function fillDefaults(config: JsonObject, schema: JsonObject): void {
  if (!isObject(schema.properties)) return;
  for (const [name, rule] of Object.entries(schema.properties)) {
    if (!isObject(rule) || name === "__proto__") continue;
    const value = Object.hasOwn(config, name) ? config[name] : undefined;
    if (isObject(value)) fillDefaults(value, rule);
    else if (value === undefined && Object.hasOwn(rule, "default")) config[name] = toPlain(rule.default);
  }
}

function checkValue(value: unknown, schema: JsonObject, path: Path, report: Report): void {
  if (report.written === undefined && typeof value === "string" && findVariables(value).length > 0) return;
  if (Array.isArray(schema.anyOf)) return checkBranches(value, schema.anyOf.filter(isObject), path, report);
  if (Array.isArray(schema.enum)) return checkChoice(value, schema.enum, path, report);
  const types = typesOf(schema);
  if (types.length > 0 && !types.some((type) => isOfType(value, type))) {
    return wrong(
      value,
      types.map((type) => WORDS[type] ?? type).join(" or ") + rangeOf(schema),
      path,
      report,
    );
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
  report: Report,
): void {
  const meant: Findings[] = [];
  for (const branch of branches) {
    const types = typesOf(branch);
    if (types.length > 0 && !types.some((type) => isOfType(value, type))) continue;
    const found = new Findings();
    checkValue(value, branch, path, { ...report, findings: found });
    if (found.errors.length === 0) {
      for (const { path, code, message, hint } of found.warnings) {
        report.findings.warn(path, code, message, hint);
      }
      return;
    }
    meant.push(found);
  }
  const [first] = meant;
  if (!first) {
    const words = branches.flatMap(typesOf).map((type) => WORDS[type] ?? type);
    return wrong(value, [...new Set(words)].join(" or "), path, report);
  }
  for (const { path, code, message, hint } of first.errors) report.findings.error(path, code, message, hint);
}

function checkChoice(value: unknown, choices: readonly unknown[], path: Path, report: Report): void {
  if (choices.includes(value)) return;
  const names = choices.filter((choice) => typeof choice === "string");
  const variables = variablesAt(path, report);
  const meant = typeof value === "string" && variables.length === 0 ? didYouMean(value, names) : undefined;
  const words = choices.map((choice) => typeof choice === "string" ? choice : JSON.stringify(choice)).join(
    ", ",
  );
  report.findings.error(
    path,
    "config",
    `Cannot read ${nameOf(path)}: must be one of ${words}: received ${
      variables.length > 0 ? valueOf(variables) : describe(value)
    }`,
    meant === undefined ? hintFor(variables) : `did you mean "${meant}"?`,
  );
}

function checkNumber(value: number, schema: JsonObject, path: Path, report: Report): void {
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
  report: Report,
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
  const message = `Cannot read ${nameOf(path)}: must have ${rule} ${unit}: received ${received}`;
  report.findings.error(path, "config", message, hintFor(variables));
}

function checkItems(items: readonly unknown[], schema: JsonObject, path: Path, report: Report): void {
  checkLength(items.length, "Items", "entries", schema, path, report);
  const { items: rule } = schema;
  if (!isObject(rule)) return;
  for (const [index, item] of items.entries()) checkValue(item, rule, [...path, index], report);
}

function checkFields(fields: JsonObject, schema: JsonObject, path: Path, report: Report): void {
  const properties = isObject(schema.properties) ? schema.properties : undefined;
  if (properties) {
    const unknown = schema.additionalProperties === false ? "error" : "warning";
    checkKeys(fields, new Set(Object.keys(properties)), path, report.findings, unknown);
  }
  for (const name of Array.isArray(schema.required) ? schema.required : []) {
    if (typeof name !== "string" || Object.hasOwn(fields, name)) continue;
    const variables = variablesAt([...path, name], report);
    const received = variables.length > 0 ? `${valueOf(variables)}, which is not set` : "none";
    const message = `Cannot read ${formatPath(path)}: it must have ${describe(name)}: received ${received}`;
    report.findings.error(path, "config", message, hintFor(variables) ?? `add ${name}`);
  }
  for (const [name, rule] of Object.entries(properties ?? {})) {
    if (isObject(rule) && Object.hasOwn(fields, name)) {
      checkValue(fields[name], rule, [...path, name], report);
    }
  }
}

/** Reports a wrong value. A config may hold secrets: messages have the kind of a text and the name of a variable, never the value. */
function wrong(value: unknown, rule: string, path: Path, report: Report): void {
  const variables = variablesAt(path, report);
  const received = variables.length > 0
    ? valueOf(variables)
    : typeof value === "number"
    ? String(value)
    : describeKind(value);
  const message = `Cannot read ${nameOf(path)}: must be ${rule}: received ${received}`;
  const hint = variables.length > 0 && (rule === WORDS.array || rule === WORDS.object)
    ? `write ${rule} itself: a variable is always text`
    : hintFor(variables);
  report.findings.error(path, "config", message, hint ?? quotesHint(value, rule));
}

function quotesHint(value: unknown, rule: string): string | undefined {
  if (typeof value === "number" && rule === WORDS.string) return `write it in quotes: "${value}"`;
  const numeric = typeof value === "string" && value.trim() !== "" && Number.isFinite(Number(value));
  return numeric && rule.includes("number") ? "write it without quotes" : undefined;
}

/** Returns the variables in the value at a path of an expanded config. */
function variablesAt(path: Path, { written, path: base }: Report): string[] {
  if (written === undefined) return [];
  let value: unknown = written;
  for (const step of path.slice(base.length)) value = (value as Record<string | number, unknown>)?.[step];
  return typeof value === "string" ? findVariables(value) : [];
}

function findVariables(text: string): string[] {
  return text.includes("${") ? [...new Set(findEnv(text).map(({ name }) => name))] : [];
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

function isOfType(value: unknown, type: string): boolean {
  switch (type) {
    case "null":
      return value === null;
    case "array":
      return Array.isArray(value);
    case "object":
      return isObject(value);
    case "integer":
      return Number.isSafeInteger(value);
    case "number":
      return typeof value === "number" && Number.isFinite(value);
    case "string":
      return typeof value === "string";
    case "boolean":
      return typeof value === "boolean";
    default:
      return true; // Returns ` of at least 1`, ` from 0 to 1`, ` above 0`, … or empty text.
  }
}

/** Returns ` of at least 1`, ` from 0 to 1`, ` above 0`, … or empty text. */
function rangeOf({ minimum, maximum, exclusiveMinimum }: JsonObject): string {
  if (typeof minimum === "number") {
    return typeof maximum === "number" ? ` from ${minimum} to ${maximum}` : ` of at least ${minimum}`;
  }
  const above = typeof exclusiveMinimum === "number" ? ` above ${exclusiveMinimum}` : "";
  return typeof maximum === "number" ? `${above}${above && " and"} of at most ${maximum}` : above;
}

function nameOf(path: Path): string {
  const last = path.at(-1);
  return typeof last === "string" ? formatPath([last]) : `entry ${last}`;
}
