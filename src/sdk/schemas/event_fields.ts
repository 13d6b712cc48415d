/** Schemas of fields that the `data` of several events have. */
import * as z from "zod";

/** Any text. */
export const text = z.string();
/** True or false. */
export const flag = z.boolean();
/** A whole number from 0. */
export const count = z.int().min(0);
/** A whole number from 1. */
export const ordinal = z.int().min(1);
/** A number from 0. */
export const amount = z.number().min(0);
/** Any JSON object. */
export const fields = z.record(z.string(), z.unknown());
/** US dollars: a decimal string; null when no price is known. */
const cost = z.string().regex(/^\d+(\.\d+)?$/).nullable();
/** Type and message of a failure. */
export const failure = z.looseObject({ type: text, msg: text });
/** One content block. */
export const block = z.looseObject({ type: text });
/** A prompt, or a message's content: text, or content blocks. */
export const content = z.union([text, z.array(block)]);
/** A message of a conversation. */
export const message = z.looseObject({
  role: z.enum(["system", "developer", "user", "assistant", "function", "tool"]),
  content,
  tool_call_id: text.optional(),
  tool_calls: z.array(z.looseObject({ id: text, name: text, arguments: fields })).optional(),
});
/** Usage of a model call. */
export const usage = z.looseObject({
  input_tokens: count,
  output_tokens: count,
  total_tokens: count,
  cost_usd: cost,
  estimated: flag.optional().describe("the provider reported no tokens of the request"),
});
