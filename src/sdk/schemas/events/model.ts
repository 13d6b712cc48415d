/** Schemas of the events of model calls. */
import * as z from "zod";
import { amount, block, count, failure, fields, flag, ordinal, payload, text, usage } from "./fields.ts";

const provider = text;
const request_id = text.meta({ description: "one attempt of a model call" });
const block_index = count;
/** Numbers of a request that was too long for the model. */
const overflow = {
  limit_tokens: ordinal.optional().meta({ description: "input tokens that the model takes" }),
  requested_tokens: ordinal.optional().meta({ description: "input tokens of the request" }),
};
const streamed = { request_id, block_index };

/** Maps each event to the schema of its `data`. */
export const MODEL = {
  "provider:request": payload("A model is about to be called; a gate.", {
    provider,
    iteration: ordinal,
    max_reached: flag.optional().meta({
      description: "the loop's own limit is reached: the last call, without tools",
    }),
  }),
  "provider:response": payload("A model has answered.", {
    provider,
    iteration: ordinal.optional(),
    usage,
    tool_calls: flag,
    inner: flag.optional().meta({ description: "the call was made by a module, not by the loop" }),
    response: z.looseObject({
      content: z.array(block),
      tool_calls: z.array(z.looseObject({ id: text, name: text, arguments: fields })).optional(),
      finish_reason: text.optional(),
    }).optional().meta({ description: "needed to replay the run" }),
  }),
  "provider:error": payload("A model call failed for good.", {
    provider,
    error: failure,
    retryable: flag,
    status_code: z.int().nullable(),
    ...overflow,
  }),
  "provider:retry": payload("A model call failed and is repeated: after a delay, or with a smaller view.", {
    provider,
    attempt: ordinal.meta({ description: "the attempt that failed, from 1" }),
    max_retries: count,
    delay: amount.meta({ description: "seconds" }),
    error_type: text,
    error_message: text,
    request_id: text.optional().meta({
      description: "present when the loop retries, not the provider",
    }),
    status_code: z.int().optional(),
    retry_after: amount.optional(),
    delay_multiplier: amount.optional(),
    ...overflow,
  }),
  "provider:throttle": payload("A provider waits before it calls.", {
    provider,
    delay: amount.meta({ description: "seconds" }),
    reason: text.optional(),
  }),
  "provider:resolve": payload("Another provider or model was chosen.", {
    provider,
    model: text.nullable(),
    role: text.optional(),
    reason: text,
  }),
  "provider:tool_sequence_repaired": payload(
    "A provider added results for unanswered calls of its request.",
    {
      provider,
      repair_count: count,
      repairs: z.array(z.looseObject({ tool_call_id: text, tool_name: text })),
      synthetic_assistant_count: count.optional(),
    },
  ),
  "provider:concurrency": payload("Concurrent calls of a provider.", {
    provider,
    active_requests: count,
    waiting_requests: count,
    max_concurrent: count,
  }),
  "llm:request": payload("A provider is about to send its own request.", {
    provider,
    model: text.nullable().optional(),
    message_count: count.optional(),
    raw: fields.optional(),
  }),
  "llm:response": payload("A provider's own request has ended.", {
    provider,
    model: text.nullable().optional(),
    status: z.enum(["ok", "error"]),
    duration_ms: amount.optional(),
    usage: fields.nullable().optional(),
    raw: fields.optional(),
  }),
  "llm:stream_aborted": payload("A stream broke; its deltas are void.", {
    request_id,
    error: z.union([failure, text]),
  }),
  "content_block:start": payload("A block of an answer starts.", {
    ...streamed,
    block_type: text,
    name: text.optional().meta({ description: "of a tool call" }),
  }),
  "content_block:delta": payload("More text of a block.", {
    ...streamed,
    sequence: ordinal,
    delta: text.min(1),
  }),
  "content_block:end": payload("A block is complete.", { ...streamed, total_blocks: ordinal, block }),
  "thinking:delta": payload("More text of a model's reasoning.", { text }),
  "thinking:final": payload("A model's complete reasoning.", { text }),
} as const;
