/**
 * Checks values of a document, for the plan and for the policy. Each function reports what is wrong as a
 * finding and returns the value only if it is valid.
 */
import { checkConfig } from "../../sdk/config.ts";
import { isObject, type JsonObject } from "../../sdk/json.ts";
import type { Findings } from "../../sdk/findings.ts";
import { describe, describeKind, lastStep, type Path } from "../../sdk/value_path.ts";

/** Returns `value` if it is an object. */
export function object(
  value: unknown,
  path: Path,
  findings: Findings,
  hint?: string,
): JsonObject | undefined {
  if (isObject(value)) return value;
  findings.error(
    path,
    "type",
    `Cannot read ${lastStep(path)}: must be an object: received ${describeKind(value)}`,
    hint,
  );
  return undefined;
}

/** Returns `value` if it is text that is not blank. */
export function text(value: unknown, path: Path, findings: Findings, hint?: string): string | undefined {
  if (typeof value === "string" && value.trim() !== "") return value;
  findings.error(
    path,
    "type",
    `Cannot read ${lastStep(path)}: must be text: received ${describeKind(value)}`,
    hint,
  );
  return undefined;
}

/**
 * Returns `value` if it fits a JSON Schema, as a module's config is checked. Messages show the value: it must
 * not be a secret.
 */
export function fitting<T>(
  value: unknown,
  schema: JsonObject,
  path: Path,
  findings: Findings,
): T | undefined {
  const before = findings.errors.length;
  checkConfig(value, schema, { findings, path, name: lastStep, show: describe });
  return findings.errors.length === before ? value as T : undefined; // it fits the schema of T
}

/** Returns `value` if it is a list of texts, none blank. */
export function texts(value: unknown, path: Path, findings: Findings, hint?: string): string[] | undefined {
  if (!Array.isArray(value)) {
    findings.error(
      path,
      "type",
      `Cannot read ${lastStep(path)}: must be a list: received ${describe(value)}`,
      hint,
    );
    return undefined;
  }
  const all = value.map((item, index) => text(item, [...path, index], findings, hint));
  return all.every((item) => item !== undefined) ? all : undefined;
}
