/**
 * A module's config against the JSON Schema that the module tells of itself (`config_schema`), in the words and with the places
 * of every other finding about a plan. Reads the keywords that say what a config is: types, ranges, lengths, choices, keys. Others
 * (`if`, `$ref`, …) are the module's own business: it checks its config whole at mount.
 */
import { isObject, type JsonObject } from "../sdk/json.ts";
import { didYouMean } from "./did_you_mean.ts";
import { findEnv } from "./env.ts";
import { checkKeys } from "./fields.ts";
import { Findings } from "./findings.ts";
import { describe, describeKind, formatPath, type Path } from "./path.ts";

/** Keywords that are looked at, and those that say nothing about what is right; a built-in module's schema has no other. */
export const CONFIG_KEYWORDS: ReadonlySet<string> = new Set([
  ...[
    "type",
    "enum",
    "anyOf",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "minItems",
    "maxItems",
  ],
  ...["minimum", "maximum", "exclusiveMinimum", "minLength", "maxLength"],
  ...["description", "default", "title", "examples"],
]);

const WORDS: Readonly<Record<string, string>> = {
  string: "text",
  integer: "a whole number",
  number: "a number",
  boolean: "true or false",
  array: "a list",
  object: "an object",
  null: "null",
};

/**
 * Notes what is wrong with a config. A value that holds a `${VAR}` is text until it is expanded: whatever it is to be, it
 * passes. A key within two letters of a known one is an error also where further keys are let through (plan.md, unknown
 * keys); other unknown keys are errors where the schema has `additionalProperties: false`, else warnings.
 *
 * @param path Place of the config in the plan.
 */
export function checkConfig(config: JsonObject, schema: JsonObject, path: Path, findings: Findings): void {
  checkValue(config, schema, path, findings);
}

function checkValue(value: unknown, schema: JsonObject, path: Path, findings: Findings): void {
  if (typeof value === "string" && value.includes("${") && findEnv(value).length > 0) return;
  if (Array.isArray(schema.anyOf)) return checkBranches(value, schema.anyOf.filter(isObject), path, findings);
  if (Array.isArray(schema.enum)) return checkChoice(value, schema.enum, path, findings);
  const types = typesOf(schema);
  if (types.length > 0 && !types.some((type) => isOfType(value, type))) {
    return wrong(
      value,
      types.map((type) => WORDS[type] ?? type).join(" or ") + rangeOf(schema),
      path,
      findings,
    );
  }
  if (typeof value === "number") checkNumber(value, schema, path, findings);
  else if (typeof value === "string") {
    checkLength(value.length, "Length", "characters", schema, path, findings);
  } else if (Array.isArray(value)) checkItems(value, schema, path, findings);
  else if (isObject(value)) checkFields(value, schema, path, findings);
}

/** Tells what is wrong in the one form that the value has; where it has none of them, which forms there are. */
function checkBranches(
  value: unknown,
  branches: readonly JsonObject[],
  path: Path,
  findings: Findings,
): void {
  const meant: Findings[] = [];
  for (const branch of branches) {
    const types = typesOf(branch);
    if (types.length > 0 && !types.some((type) => isOfType(value, type))) continue;
    const found = new Findings();
    checkValue(value, branch, path, found);
    if (found.errors.length === 0) {
      for (const { path, code, message, hint } of found.warnings) findings.warn(path, code, message, hint);
      return;
    }
    meant.push(found);
  }
  const [first] = meant;
  if (!first) {
    const words = branches.flatMap(typesOf).map((type) => WORDS[type] ?? type);
    return wrong(value, [...new Set(words)].join(" or "), path, findings);
  }
  for (const { path, code, message, hint } of first.errors) findings.error(path, code, message, hint);
}

function checkChoice(value: unknown, choices: readonly unknown[], path: Path, findings: Findings): void {
  if (choices.includes(value)) return;
  const names = choices.filter((choice) => typeof choice === "string");
  const meant = typeof value === "string" ? didYouMean(value, names) : undefined;
  const words = choices.map((choice) => typeof choice === "string" ? choice : JSON.stringify(choice)).join(
    ", ",
  );
  findings.error(
    path,
    "config",
    `Cannot read ${nameOf(path)}: must be one of ${words}: received ${describe(value)}`,
    meant === undefined ? undefined : `did you mean "${meant}"?`,
  );
}

function checkNumber(value: number, schema: JsonObject, path: Path, findings: Findings): void {
  const { minimum, maximum, exclusiveMinimum } = schema;
  const outside = typeof minimum === "number" && value < minimum ||
    typeof maximum === "number" && value > maximum ||
    typeof exclusiveMinimum === "number" && value <= exclusiveMinimum;
  if (!outside) return;
  const word = typesOf(schema).includes("integer") ? "a whole number" : "a number";
  wrong(value, `${word}${rangeOf(schema)}`, path, findings);
}

function checkLength(
  length: number,
  what: "Length" | "Items",
  unit: string,
  schema: JsonObject,
  path: Path,
  findings: Findings,
): void {
  const [least, most] = [schema[`min${what}`], schema[`max${what}`]];
  const rule = typeof least === "number" && length < least
    ? `at least ${least}`
    : typeof most === "number" && length > most
    ? `at most ${most}`
    : null;
  if (rule === null) return;
  const message = `Cannot read ${nameOf(path)}: must have ${rule} ${unit}: received ${length}`;
  findings.error(path, "config", message);
}

function checkItems(items: readonly unknown[], schema: JsonObject, path: Path, findings: Findings): void {
  checkLength(items.length, "Items", "entries", schema, path, findings);
  const { items: rule } = schema;
  if (!isObject(rule)) return;
  for (const [index, item] of items.entries()) checkValue(item, rule, [...path, index], findings);
}

function checkFields(fields: JsonObject, schema: JsonObject, path: Path, findings: Findings): void {
  const properties = isObject(schema.properties) ? schema.properties : undefined;
  if (properties) {
    const unknown = schema.additionalProperties === false ? "error" : "warning";
    checkKeys(fields, new Set(Object.keys(properties)), path, findings, unknown);
  }
  for (const name of Array.isArray(schema.required) ? schema.required : []) {
    if (typeof name !== "string" || Object.hasOwn(fields, name)) continue;
    const message = `Cannot read ${formatPath(path)}: it must have ${describe(name)}: received none`;
    findings.error(path, "config", message, `add ${name}`);
  }
  for (const [name, rule] of Object.entries(properties ?? {})) {
    if (isObject(rule) && Object.hasOwn(fields, name)) {
      checkValue(fields[name], rule, [...path, name], findings);
    }
  }
}

/** A config may hold what nobody must see: of text only its kind is told. */
function wrong(value: unknown, rule: string, path: Path, findings: Findings): void {
  const shown = typeof value === "number" ? String(value) : describeKind(value);
  const numeric = typeof value === "string" && value.trim() !== "" && Number.isFinite(Number(value));
  const hint = numeric && rule.includes("number") ? "write it without quotes" : undefined;
  findings.error(path, "config", `Cannot read ${nameOf(path)}: must be ${rule}: received ${shown}`, hint);
}

function typesOf(schema: JsonObject): readonly string[] {
  const { type } = schema;
  if (typeof type === "string") return [type];
  if (Array.isArray(type)) return type.filter((one) => typeof one === "string");
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
      return true; // no type that JSON Schema knows: nothing is said
  }
}

/** Returns ` of at least 1`, ` from 0 to 1`, ` above 0`, … or nothing. */
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
