/** zod schemas of tool calls and results (behaviour.md §4.1, §4.2). */
import * as z from "zod";
import { isObject } from "../json.ts";
import { parseToolCall, type ToolCall, ToolResult } from "../tools.ts";
import { model, object, text } from "./model.ts";

const callFields = model({
  id: z.string().exactOptional(),
  name: text.exactOptional(),
  tool: text.exactOptional(),
  arguments: z.union([object, z.string()]).exactOptional(),
  input: z.union([object, z.string()]).exactOptional(),
});

/** A tool call in either spelling (C1); gives a {@link ToolCall}. Arguments that are not a JSON object are an issue. */
export const toolCallSchema: z.ZodType<ToolCall> = callFields.transform((fields, context) => {
  const call = parseToolCall(fields);
  if (call.name === "") context.addIssue({ code: "custom", path: ["name"], message: "must name a tool" });
  if (call.invalid_arguments !== undefined) {
    context.addIssue({ code: "custom", path: ["arguments"], message: "must be a JSON object" });
  }
  return call;
});

/** A tool result; gives a {@link ToolResult}. `is_error` is read as the opposite of `success` (C33). */
export const toolResultSchema: z.ZodType<ToolResult> = z.preprocess(
  (value) =>
    isObject(value) && value.success === undefined && typeof value.is_error === "boolean"
      ? { ...value, success: !value.is_error }
      : value,
  model({
    success: z.boolean().default(true),
    output: z.unknown().default(null),
    error: object.nullable().default(null),
  }).transform(ToolResult),
);
