/**
 * Checks values of a document, for the plan and for the policy. Each function reports what is wrong as a
 * finding and returns the value only if it is valid.
 */
import { isObject, type JsonObject } from "../../sdk/json.ts";
import { compareDecimal, isDecimal } from "../../sdk/money.ts";
import { didYouMean } from "../../sdk/did_you_mean.ts";
import type { Findings } from "../../sdk/findings.ts";
import { describe, describeKind, formatPath, type Path } from "../../sdk/value_path.ts";

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
    `Cannot read ${nameOf(path)}: must be an object: received ${describeKind(value)}`,
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
    `Cannot read ${nameOf(path)}: must be text: received ${describeKind(value)}`,
    hint,
  );
  return undefined;
}

/** Returns `value` if it is true or false. */
export function boolean(value: unknown, path: Path, findings: Findings): boolean | undefined {
  if (typeof value === "boolean") return value;
  findings.error(
    path,
    "type",
    `Cannot read ${nameOf(path)}: must be true or false: received ${describe(value)}`,
  );
  return undefined;
}

/** Returns `value` if it is a whole number of at least `min` and at most `max` (default 2⁵³−1). */
export function integer(
  value: unknown,
  path: Path,
  findings: Findings,
  min: number,
  max: number = Number.MAX_SAFE_INTEGER,
): number | undefined {
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= min && value <= max) return value;
  const range = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`;
  const hint = typeof value === "string" && /^\d+$/.test(value) ? "write it without quotes" : undefined;
  findings.error(
    path,
    "type",
    `Cannot read ${nameOf(path)}: must be a whole number ${range}: received ${describe(value)}`,
    hint,
  );
  return undefined;
}

/** Returns `value` if it is a finite number of at least `min`, such as a duration in seconds. */
export function number(value: unknown, path: Path, findings: Findings, min: number): number | undefined {
  if (typeof value === "number" && Number.isFinite(value) && value >= min) return value;
  findings.error(
    path,
    "type",
    `Cannot read ${nameOf(path)}: must be a number of at least ${min}: received ${describe(value)}`,
  );
  return undefined;
}

/**
 * Returns `value` if it is money: a decimal string such as `"0.50"`. Numbers are refused, because floats
 * are not exact.
 */
export function money(value: unknown, path: Path, findings: Findings): string | undefined {
  if (isDecimal(value)) return value;
  const hint = typeof value === "number" && value >= 0
    ? `write it in quotes: "${value}"`
    : 'write it as "0.50"';
  findings.error(
    path,
    "type",
    `Cannot read ${nameOf(path)}: must be US dollars as a decimal string: received ${describe(value)}`,
    hint,
  );
  return undefined;
}

/** Returns `value` if it is one of `choices`. */
export function oneOf<T extends string>(
  value: unknown,
  choices: readonly T[],
  path: Path,
  findings: Findings,
): T | undefined {
  const found = choices.find((choice) => choice === value);
  if (found !== undefined) return found;
  const meant = typeof value === "string" ? didYouMean(value, choices) : undefined;
  findings.error(
    path,
    "type",
    `Cannot read ${nameOf(path)}: must be ${choices.join(", ")}: received ${describe(value)}`,
    meant === undefined ? undefined : `did you mean "${meant}"?`,
  );
  return undefined;
}

/** Returns `value` if it is a list of texts, none blank. */
export function texts(value: unknown, path: Path, findings: Findings, hint?: string): string[] | undefined {
  if (!Array.isArray(value)) {
    findings.error(
      path,
      "type",
      `Cannot read ${nameOf(path)}: must be a list: received ${describe(value)}`,
      hint,
    );
    return undefined;
  }
  const all = value.map((item, index) => text(item, [...path, index], findings, hint));
  return all.every((item) => item !== undefined) ? all : undefined;
}

/** Returns the smaller of two decimal strings. */
export function smallerDecimal(a: string, b: string): string {
  return compareDecimal(a, b) <= 0 ? a : b;
}

function nameOf(path: Path): string {
  const last = path.at(-1);
  return last === undefined ? "the document" : typeof last === "number" ? "this entry" : formatPath([last]);
}
