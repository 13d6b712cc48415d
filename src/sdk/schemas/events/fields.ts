/** Schemas of fields that several events have. All payloads are open: readers ignore unknown fields. */
import * as z from "zod";

/** Returns the schema of a payload with these fields; emitters may add others. */
export function payload(description: string, shape: z.ZodRawShape): z.ZodType {
  return z.looseObject(shape).meta({ description });
}

/** Any text. */
export const text: z.ZodString = z.string();
/** True or false. */
export const flag: z.ZodBoolean = z.boolean();
/** A whole number from 0. */
export const count: z.ZodInt = z.int().min(0);
/** A whole number from 1. */
export const ordinal: z.ZodInt = z.int().min(1);
/** A number from 0. */
export const amount: z.ZodNumber = z.number().min(0);
/** Any JSON object. */
export const fields: z.ZodType = z.record(z.string(), z.unknown());
/** US dollars: a decimal string; null when no price is known. */
export const cost: z.ZodType = z.string().regex(/^\d+(\.\d+)?$/).nullable();
/** Type and message of a failure. */
export const failure: z.ZodType = z.looseObject({ type: text, msg: text });
/** One content block. */
export const block: z.ZodType = z.looseObject({ type: text });
/** A prompt, or a message's content: text, or content blocks. */
export const content: z.ZodType = z.union([text, z.array(block)]);
/** A message of a conversation. */
export const message: z.ZodType = z.looseObject({
  role: z.enum(["system", "developer", "user", "assistant", "function", "tool"]),
  content,
  tool_call_id: text.optional(),
  tool_calls: z.array(z.looseObject({ id: text, name: text, arguments: fields })).optional(),
});
/** Usage of a model call. */
export const usage: z.ZodType = z.looseObject({
  input_tokens: count,
  output_tokens: count,
  total_tokens: count,
  cost_usd: cost,
});
