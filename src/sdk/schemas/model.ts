/** How a model of the requirements is told to zod: what is absent, what is kept. Knows no model. */
import * as z from "zod";
import { isObject, type JsonObject } from "../json.ts";

/** The schema that {@link model} returns. */
export type ModelSchema<Shape extends z.ZodRawShape> = z.ZodPreprocess<z.ZodObject<Shape, z.core.$loose>>;

/**
 * Returns a schema of an object whose other fields are kept. Null and undefined both mean absent for a field that may be
 * absent and cannot be null (behaviour.md, Appendix B).
 */
export function model<Shape extends z.ZodRawShape>(shape: Shape): ModelSchema<Shape> {
  return z.preprocess((value) => withoutAbsent(value, shape), z.looseObject(shape));
}

function withoutAbsent(value: unknown, shape: z.ZodRawShape): unknown {
  if (!isObject(value)) return value;
  const present: JsonObject = {};
  for (const [key, item] of Object.entries(value)) {
    if (item === undefined || (item === null && Object.hasOwn(shape, key) && refusesNull(shape[key]!))) {
      continue;
    }
    present[key] = item;
  }
  return present;
}

function refusesNull(schema: z.core.$ZodType): boolean {
  return schema._zod.optin === "optional" && !z.safeParse(schema, null).success;
}

/** Any JSON-like object. */
export const object: z.ZodType<JsonObject> = z.record(z.string(), z.unknown());

/** Text that is not empty. */
export const text: z.ZodString = z.string().min(1);

/** A list of texts. */
export const texts: z.ZodArray<z.ZodString> = z.array(z.string());

/** A count: a whole number from 0. */
export const count: z.ZodNumber = z.number().int().min(0);

/** Seconds above 0. */
export const seconds: z.ZodNumber = z.number().positive();

/** US dollars: a decimal string, or null for unknown. A number has lost the money already (behaviour.md §4.10). */
export const cost: z.ZodNullable<z.ZodString> = z.string("must be a decimal string or null, never a number")
  .regex(/^\d{1,15}(\.\d{1,18})?$/, 'must be a decimal string such as "0.50"')
  .nullable();
