/**
 * The parts of zod that modules use, by name. The namespace itself (`export { z }`) would put all of zod, every language
 * of its messages included, into each bundle.
 */
import * as zod from "zod";
import type { SchemaInput, SchemaOutput, StandardSchema } from "./standard_schema.ts";

/** Schemas for module authors; the part of zod's `z` that a tool's input needs. */
export const z = {
  any: zod.any,
  array: zod.array,
  bigint: zod.bigint,
  boolean: zod.boolean,
  coerce: zod.coerce,
  custom: zod.custom,
  date: zod.date,
  discriminatedUnion: zod.discriminatedUnion,
  enum: zod.enum,
  int: zod.int,
  intersection: zod.intersection,
  lazy: zod.lazy,
  literal: zod.literal,
  looseObject: zod.looseObject,
  never: zod.never,
  null: zod.null,
  nullable: zod.nullable,
  number: zod.number,
  object: zod.object,
  optional: zod.optional,
  preprocess: zod.preprocess,
  record: zod.record,
  strictObject: zod.strictObject,
  string: zod.string,
  toJSONSchema: zod.toJSONSchema,
  tuple: zod.tuple,
  union: zod.union,
  unknown: zod.unknown,
  url: zod.url,
} as const;

/** The type side of `z`, so that `z.infer<typeof schema>` works as authors expect. */
export declare namespace z {
  /** The type of what a schema gives. */
  export type infer<Schema extends StandardSchema> = SchemaOutput<Schema>;
  /** The type of what a schema takes. */
  export type input<Schema extends StandardSchema> = SchemaInput<Schema>;
  /** The type of what a schema gives. */
  export type output<Schema extends StandardSchema> = SchemaOutput<Schema>;
}
