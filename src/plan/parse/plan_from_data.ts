/** Checks plans that are given as data: the same limits and forbidden keys as for text, on a private copy. */
import { PreampError } from "../../sdk/errors.ts";
import type { JsonValue } from "../../sdk/json.ts";
import { documentError, toDetail } from "../check/findings.ts";
import type { Finding } from "../../sdk/findings.ts";
import { type DocumentLimits, exceedsBytes, FORBIDDEN_KEYS } from "./document_limits.ts";
import { formatPath } from "../../sdk/value_path.ts";

/**
 * Returns the JSON text of data. Leaves out values that JSON cannot represent, as `JSON.stringify` does.
 *
 * @throws {PreampError} `plan_limit_exceeded` for more than `max_bytes` or extreme depth, `plan_invalid`
 * for a cycle or no data.
 */
export function textOfData(value: unknown, label: string, { max_bytes }: DocumentLimits): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (error) {
    if (error instanceof RangeError) {
      throw tooMuch(label, "lists and objects are nested too deeply", "", error);
    }
    const message = `Cannot accept ${label}: it is not JSON data`;
    throw new PreampError("plan_invalid", message, { cause: error });
  }
  if (text === undefined) throw new PreampError("plan_invalid", `Cannot accept ${label}: there is no data`);
  if (exceedsBytes(text, max_bytes)) {
    throw tooMuch(label, `it has more than ${max_bytes} bytes as JSON`, "");
  }
  return text;
}

/**
 * Checks JSON data for limits, forbidden keys and malformed text.
 *
 * @throws {PreampError} `plan_limit_exceeded` at the first limit, `plan_invalid` with all findings.
 */
export function checkData(data: JsonValue, label: string, { max_nodes, max_depth }: DocumentLimits): void {
  const findings: Omit<Finding, "code">[] = [];
  const path: (string | number)[] = [];
  let nodes = 0;

  function visit(value: JsonValue, depth: number): void {
    if (++nodes > max_nodes) throw tooMuch(label, `more than ${max_nodes} values`, formatPath(path));
    if (typeof value === "string") {
      if (!value.isWellFormed()) {
        note("Cannot read text: it contains half of a surrogate pair", "write the whole character");
      }
      return;
    }
    if (typeof value !== "object" || value === null) return;
    if (depth >= max_depth) {
      throw tooMuch(label, `more than ${max_depth} levels of nested lists and objects`, formatPath(path));
    }
    if (Array.isArray(value)) {
      for (let index = 0; index < value.length; index++) descend(index, value[index]!, depth);
      return;
    }
    for (const key of Object.keys(value)) {
      if (!FORBIDDEN_KEYS.has(key) && key.isWellFormed()) descend(key, value[key]!, depth);
      else {
        path.push(key.toWellFormed());
        note("Cannot read this key: it is not allowed in any object", "rename the key");
        path.pop();
      }
    }
  }

  function descend(step: string | number, value: JsonValue, depth: number): void {
    path.push(step);
    visit(value, depth + 1);
    path.pop();
  }

  function note(message: string, hint: string): void {
    findings.push({ path: [...path], message, hint });
  }

  visit(data, 0);
  if (findings.length > 0) {
    throw documentError(
      "plan_invalid",
      label,
      findings.map((finding) => toDetail(finding)),
    );
  }
}

function tooMuch(label: string, fact: string, path: string, cause?: unknown): PreampError {
  return documentError(
    "plan_limit_exceeded",
    label,
    [{ path, message: `Cannot read further: ${fact}` }],
    cause,
  );
}
