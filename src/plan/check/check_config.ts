/**
 * Configs of modules in a plan: checks them against the `config_schema`, and gives values of `${VAR}`s its
 * types.
 */
import { checkConfig } from "../../sdk/config.ts";
import type { Findings } from "../../sdk/findings.ts";
import { isObject, type JsonObject } from "../../sdk/json.ts";
import { isAbsolutePath, normalizePath } from "../../sdk/paths.ts";
import { lastStep, type Path } from "../../sdk/value_path.ts";
import { findEnv } from "../env.ts";

/**
 * Reports what is wrong with a config as written. Values with a `${VAR}` pass, because their type is known
 * after expansion.
 *
 * @param path Place of the config in the plan.
 */
export function checkWrittenConfig(
  config: JsonObject,
  schema: JsonObject,
  path: Path,
  findings: Findings,
): void {
  const unknown = (value: unknown) => typeof value === "string" && findEnv(value).length > 0;
  for (const { key, by } of suppliedFields(schema)) {
    if (!Object.hasOwn(config, key)) continue;
    const message = `Cannot set ${key}: ${SUPPLIERS[by]}`;
    findings.error([...path, key], "value", message, "remove it");
  }
  checkConfig(config, schema, { findings, path, name: lastStep, unknown });
}

/** Where a field comes from that a plan must not state. */
export type Supplier = keyof typeof SUPPLIERS;

const SUPPLIERS = {
  settings: "it comes from the settings of the operator",
  lock: "it comes from the lock of the plan",
};

/** Returns the fields of a config that the host fills in: those with `supplied_by` in the schema. */
export function suppliedFields({ properties }: JsonObject): { key: string; by: Supplier }[] {
  if (!isObject(properties)) return [];
  return Object.entries(properties).flatMap(([key, field]) => {
    const by = isObject(field) ? field.supplied_by : undefined;
    return by === "settings" || by === "lock" ? [{ key, by }] : [];
  });
}

/**
 * Reports what is wrong with an expanded config after {@link typeConfig}. Messages name the variables of a
 * value, never the value.
 *
 * @param path Place of the config in the plan.
 * @param written The config before its variables were expanded.
 */
export function checkExpandedConfig(
  config: JsonObject,
  schema: JsonObject,
  path: Path,
  findings: Findings,
  written: JsonObject,
): void {
  const variables = (place: Path) => {
    let value: unknown = written;
    for (const step of place.slice(path.length)) value = (value as Record<string | number, unknown>)?.[step];
    return typeof value === "string" ? [...new Set(findEnv(value).map(({ name }) => name))] : [];
  };
  checkConfig(config, schema, { findings, path, name: lastStep, variables });
}

/**
 * Returns an expanded config in which the text of each `${VAR}` has the type that its schema wants, and each
 * path (`format: "path"`) is absolute. Where the schema allows text, it remains text. Other values are not
 * converted.
 *
 * @param expanded The config with the values of its variables (env.ts).
 * @param written The same config with its `${VAR}`s.
 * @param schema The module's `config_schema`.
 * @param folder Absolute path of the folder that relative paths start at. Default: they remain relative.
 */
export function typeConfig(
  expanded: JsonObject,
  written: JsonObject,
  schema: JsonObject,
  folder?: string,
): JsonObject {
  return typeValue(expanded, written, [schema], folder) as JsonObject; // an object remains one
}

/** Converts one value; each of `schemas` may describe it. */
function typeValue(
  value: unknown,
  written: unknown,
  schemas: readonly JsonObject[],
  folder: string | undefined,
): unknown {
  if (typeof value === "string") {
    const is_path = folder !== undefined && schemas.some(({ format }) => format === "path");
    if (is_path && value !== "" && !isAbsolutePath(value)) return normalizePath(`${folder}/${value}`);
    return findEnv(written).length > 0 ? typeText(value, schemas) : value;
  }
  if (Array.isArray(value) && Array.isArray(written)) {
    const items = schemas.flatMap(({ items }) => isObject(items) ? branchesOf(items) : []);
    return value.map((item, index) => typeValue(item, written[index], items, folder));
  }
  if (!isObject(value) || !isObject(written)) return value;
  const typed: JsonObject = {};
  for (const key of Object.keys(value)) {
    const own = schemas.flatMap(({ properties, additionalProperties }) => {
      const schema = isObject(properties) && Object.hasOwn(properties, key)
        ? properties[key]
        : additionalProperties;
      return isObject(schema) ? branchesOf(schema) : [];
    });
    typed[key] = typeValue(value[key], written[key], own, folder);
  }
  return typed;
}

/** Splits a schema into its alternatives. */
function branchesOf(schema: JsonObject): JsonObject[] {
  return Array.isArray(schema.anyOf) ? schema.anyOf.filter(isObject).flatMap(branchesOf) : [schema];
}

function typeText(text: string, schemas: readonly JsonObject[]): unknown {
  const choices = schemas.flatMap(choicesOf);
  if (choices.length === 0 || choices.includes("string")) return text;
  const word = text.trim().toLowerCase();
  if (choices.includes("boolean") && (word === "true" || word === "false")) return word === "true";
  if (choices.includes("null") && (word === "null" || word === "")) return null;
  const numeric = choices.includes("number") || choices.includes("integer");
  return numeric && /^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/.test(word) ? Number(word) : text;
}

/** Returns the types that a schema without alternatives accepts; text if it does not say. */
function choicesOf({ type, enum: values }: JsonObject): string[] {
  if (Array.isArray(values)) return values.map((value) => value === null ? "null" : typeof value);
  if (Array.isArray(type)) return type.filter((name) => typeof name === "string");
  return [typeof type === "string" ? type : "string"];
}
