/** Response formats: JSON Schemas in the subset that the API enforces. */
import type { Anthropic } from "@anthropic-ai/sdk";
import { transformJSONSchema } from "@anthropic-ai/sdk/lib/transform-json-schema";
import { errorMessage, isObject, type JsonObject } from "preamp/base";
import type { CallSettings, Degradations } from "preamp/provider";
import { traitsOf } from "./mod.ts";

/**
 * Returns the format of a call as far as the API enforces it; the loop checks the answer in any case.
 *
 * @param refused Results of {@link formatKey} for the formats to leave out.
 */
export function formatOf(
  call: Pick<CallSettings, "model" | "response_format">,
  refused: ReadonlySet<string>,
  degradations: Degradations,
): Pick<Anthropic.OutputConfig, "format"> {
  const { model, response_format: format } = call;
  if (!format || format.type === "text") return {};
  if (format.type === "json") {
    addFormat(degradations, format.type, "the API has no JSON mode without a schema");
    return {};
  }
  if (!traitsOf(model).structured_outputs) {
    addFormat(degradations, format.type, `${model} has no structured outputs`);
    return {};
  }
  if (refused.has(formatKey(call))) {
    addFormat(degradations, format.type, "the API refuses its schema");
    return {};
  }
  const problem = problemIn(format.schema);
  if (problem !== undefined) {
    addFormat(degradations, format.type, `the API cannot enforce ${problem}`);
    return {};
  }
  try {
    return { format: { type: "json_schema", schema: transformJSONSchema(format.schema) } };
  } catch (error) {
    addFormat(degradations, format.type, errorMessage(error)); // such as a schema that allows anything
    return {};
  }
}

/** Returns a text that identifies a model's response format. */
export function formatKey(
  { model, response_format }: Pick<CallSettings, "model" | "response_format">,
): string {
  return JSON.stringify([model, response_format]);
}

/** Adds that a format is left out. */
function addFormat(degradations: Degradations, type: string, reason: string): void {
  degradations.add(`response_format ${type}`, reason, "response_format text");
}

/**
 * Returns what the API would enforce in another sense: it closes every object, so that one with any names
 * would always be empty, and one of several schemas would fit none.
 */
function problemIn(schema: unknown): string | undefined {
  if (!isObject(schema)) return undefined;
  const { type, properties, additionalProperties, items, allOf, anyOf, oneOf, $defs } = schema;
  if (valuesOf(schema.definitions).length > 0) return "definitions outside of $defs";
  const alternatives = anyOf ?? oneOf;
  if (allOf !== undefined || alternatives !== undefined && isObject(properties)) {
    return "several schemas of one object";
  }
  if (Array.isArray(type) && type.some((one) => one === "object" || one === "array")) {
    return `the types ${type.join(", ")} together`;
  }
  const is_open = isObject(additionalProperties) || schema.patternProperties !== undefined ||
    valuesOf(properties).length === 0 && additionalProperties !== false;
  if (type === "object" && is_open) return "objects with properties of any name";
  const parts = [items, alternatives, ...valuesOf(properties), ...valuesOf($defs)].flat();
  return parts.map(problemIn).find((problem) => problem !== undefined);
}

function valuesOf(schemas: unknown): unknown[] {
  return isObject(schemas) ? Object.values(schemas) : [];
}

const REFUSAL = /output_(?:config\.)?format|schema is too complex|compiled grammar|circular reference/i;

/** Returns whether the API refused the schema of a request, such as one that refers to itself. */
export function refusesFormat(error: unknown, { output_config }: JsonObject): boolean {
  if (!isObject(error) || error.status !== 400) return false;
  return isObject(output_config) && output_config.format !== undefined && REFUSAL.test(String(error.message));
}
