/**
 * The parts of zod that modules use, by name. The namespace itself (`export { z }`) would put all of zod, every language
 * of its messages included, into each bundle.
 */
import * as zod from "zod";

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

// deno-lint-ignore no-namespace -- the type side of `z`, so that `z.infer<typeof schema>` works as authors expect
export declare namespace z {
  export type infer<T extends zod.ZodType> = zod.infer<T>;
  export type input<T extends zod.ZodType> = zod.input<T>;
  export type output<T extends zod.ZodType> = zod.output<T>;
  export type ZodType<Output = unknown, Input = unknown> = zod.ZodType<Output, Input>;
}
