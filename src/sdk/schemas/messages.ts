/** zod schemas of what goes to a model and comes back (behaviour.md §4.6). */
import * as z from "zod";
import type {
  ChatRequest,
  ChatResponse,
  ContentBlock,
  Degradation,
  Message,
  ResponseFormat,
  StreamDelta,
  ToolSpec,
  Usage,
} from "../messages.ts";
import { Usage as completeUsage } from "../messages.ts";
import { cost, count, model, object, text } from "./model.ts";
import { toolCallSchema } from "./tools.ts";

const visibility = z.enum(["internal", "developer", "user"]).exactOptional();

/** The fields of each kind of block we know; every other kind is kept as it is. */
const BLOCKS = {
  text: model({ type: z.literal("text"), text: z.string(), visibility }),
  thinking: model({
    type: z.literal("thinking"),
    thinking: z.string(),
    signature: z.string().exactOptional(),
    visibility,
  }),
  redacted_thinking: model({ type: z.literal("redacted_thinking"), data: z.string(), visibility }),
  tool_call: model({ type: z.literal("tool_call"), id: text, name: text, input: object, visibility }),
  tool_result: model({ type: z.literal("tool_result"), tool_call_id: text, output: z.unknown(), visibility }),
  image: model({ type: z.literal("image"), source: object, visibility }),
  reasoning: model({
    type: z.literal("reasoning"),
    content: z.array(z.unknown()),
    summary: z.array(z.unknown()),
    visibility,
  }),
} as const;

/** One content block: a known kind with its fields, or any other object with a `type`. */
export const contentBlockSchema: z.ZodType<ContentBlock> = model({ type: text }).transform(
  (block, context) => {
    if (!Object.hasOwn(BLOCKS, block.type)) return block;
    const known = BLOCKS[block.type as keyof typeof BLOCKS].safeParse(block); // an own key of BLOCKS
    if (known.success) return known.data as ContentBlock; // each of BLOCKS is one of its members
    for (const { message, path } of known.error.issues) context.addIssue({ code: "custom", message, path });
    return z.NEVER;
  },
);

/** The content of a message: text, or content blocks. */
export const contentSchema: z.ZodType<string | ContentBlock[]> = z.union([
  z.string(),
  z.array(contentBlockSchema),
]);

const storedCall = toolCallSchema.transform(({ id, name, arguments: given }) => ({
  id,
  name,
  tool: name,
  arguments: given,
}));

/** One message. A tool message must say which call it answers. */
export const messageSchema: z.ZodType<Message> = model({
  role: z.enum(["system", "developer", "user", "assistant", "function", "tool"]),
  content: contentSchema,
  name: z.string().exactOptional(),
  tool_call_id: text.exactOptional(),
  tool_calls: z.array(storedCall).exactOptional(),
  metadata: object.exactOptional(),
}).refine((message) => message.role !== "tool" || message.tool_call_id !== undefined, {
  path: ["tool_call_id"],
  message: "a tool message must say which call it answers",
});

/** A tool as it is offered to a model. */
export const toolSpecSchema: z.ZodType<ToolSpec> = model({
  name: text,
  description: z.string().exactOptional(),
  parameters: object,
});

/** What form an answer must have; `json_schema` is read as `schema` (behaviour.md §4.6). */
export const responseFormatSchema: z.ZodType<ResponseFormat> = z.union([
  model({ type: z.literal("text") }).transform(() => ({ type: "text" as const })),
  model({ type: z.literal("json") }).transform(() => ({ type: "json" as const })),
  model({
    type: z.literal("json_schema"),
    schema: object.exactOptional(),
    json_schema: object.exactOptional(),
    strict: z.boolean().exactOptional(),
  }).transform(({ schema, json_schema, strict }, context) => {
    const given = schema ?? json_schema;
    if (given === undefined) {
      context.addIssue({ code: "custom", path: ["schema"], message: "must be a JSON Schema" });
      return z.NEVER;
    }
    return { type: "json_schema" as const, schema: given, ...(strict === undefined ? {} : { strict }) };
  }),
]);

/** What `complete` is given. */
export const chatRequestSchema: z.ZodType<ChatRequest> = model({
  messages: z.array(messageSchema),
  tools: z.array(toolSpecSchema).exactOptional(),
  response_format: responseFormatSchema.exactOptional(),
  temperature: z.number().min(0).exactOptional(),
  top_p: z.number().min(0).max(1).exactOptional(),
  max_output_tokens: count.exactOptional(),
  model: z.string().exactOptional(),
  tool_choice: z.union([z.string(), object]).exactOptional(),
  stop: z.array(z.string()).exactOptional(),
  reasoning_effort: z.string().exactOptional(),
  metadata: object.exactOptional(),
  conversation_id: z.string().exactOptional(),
  stream: z.boolean().exactOptional(),
  timeout: z.number().positive().exactOptional(),
});

/** Tokens and money of one model call; a cost that is a number is refused (MODEL-08). */
export const usageSchema: z.ZodType<Usage> = model({
  input_tokens: count.default(0),
  output_tokens: count.default(0),
  total_tokens: count.exactOptional(),
  reasoning_tokens: count.exactOptional(),
  cache_read_tokens: count.exactOptional(),
  cache_write_tokens: count.exactOptional(),
  cost_usd: cost.default(null),
}).transform(completeUsage);

/** What a provider gave less than was asked. */
export const degradationSchema: z.ZodType<Degradation> = model({
  requested: z.string(),
  actual: z.string(),
  reason: z.string(),
});

/** What `complete` resolves to, already in canonical form; `toChatResponse` reads every other one (C9). */
export const chatResponseSchema: z.ZodType<ChatResponse> = model({
  content: z.array(contentBlockSchema),
  tool_calls: z.array(toolCallSchema).exactOptional(),
  usage: usageSchema.exactOptional(),
  degradation: degradationSchema.exactOptional(),
  finish_reason: z.string().exactOptional(),
  metadata: object.exactOptional(),
});

/** A piece of an answer as it arrives. */
export const streamDeltaSchema: z.ZodType<StreamDelta> = model({
  block_index: count,
  block_type: z.enum(["text", "thinking", "tool_call"]),
  delta: z.string(),
  id: z.string().exactOptional(),
  name: z.string().exactOptional(),
});
