/**
 * The SDK for modules: contracts, data models, errors, `defineTool` and the other define functions, and `z`
 * for schemas.
 *
 * @module
 */
import * as zod from "zod";
import type { SchemaInput, SchemaOutput, StandardSchema } from "./define.ts";

export * from "./base.ts";

/**
 * Schema functions for module authors: those of zod's `z` that a tool's input needs, by name. Exporting the
 * namespace would put all of zod, including the messages in every language, into each bundle.
 */
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

/** Types of `z`, so that `z.infer<typeof schema>` works as in zod. */
export declare namespace z {
  /** Output type of a schema. */
  export type infer<Schema extends StandardSchema> = SchemaOutput<Schema>;
  /** Input type of a schema. */
  export type input<Schema extends StandardSchema> = SchemaInput<Schema>;
  /** Output type of a schema. */
  export type output<Schema extends StandardSchema> = SchemaOutput<Schema>;
}
