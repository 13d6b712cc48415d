/** Events of model calls (trace.md, entries 12-16; behaviour.md §6.2, §7.10). */
import * as z from "zod";
import { amount, block, count, failure, fields, flag, ordinal, payload, text, usage } from "./fields.ts";

const provider = text;
const request_id = text.meta({ description: "one attempt of a model call" });
const block_index = count;
const streamed = { request_id, block_index };

/** Event → schema of its `data`. */
export const MODEL = {
  "provider:request": payload("A model is about to be asked; a gate.", {
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
    inner: flag.optional().meta({ description: "the call was not the loop's own" }),
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
  }),
  "provider:retry": payload("A model call failed and is made again after a wait.", {
    provider,
    attempt: ordinal.meta({ description: "the attempt that failed, from 1" }),
    max_retries: count,
    delay: amount.meta({ description: "seconds" }),
    error_type: text,
    error_message: text,
    request_id: text.optional().meta({
      description: "there when the loop makes the attempts, not the provider itself",
    }),
    status_code: z.int().optional(),
    retry_after: amount.optional(),
    delay_multiplier: amount.optional(),
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
    "A provider answered calls of its request that nobody had answered.",
    {
      provider,
      repair_count: count,
      repairs: z.array(z.looseObject({ tool_call_id: text, tool_name: text })),
      synthetic_assistant_count: count.optional(),
    },
  ),
  "provider:concurrency": payload("A provider's calls at once.", {
    provider,
    active_requests: count,
    waiting_requests: count,
    max_concurrent: count,
  }),
  "llm:request": payload("A provider is about to use its wire.", {
    provider,
    model: text.nullable().optional(),
    message_count: count.optional(),
    raw: fields.optional(),
  }),
  "llm:response": payload("A provider's wire has answered.", {
    provider,
    model: text.nullable().optional(),
    status: z.enum(["ok", "error"]),
    duration_ms: amount.optional(),
    usage: fields.nullable().optional(),
    raw: fields.optional(),
  }),
  "llm:stream_aborted": payload("An answer broke off after its first words, which are void.", {
    request_id,
    error: z.union([failure, text]),
  }),
  "content_block:start": payload("A block of an answer begins.", {
    ...streamed,
    block_type: text,
    name: text.optional().meta({ description: "of a tool call" }),
  }),
  "content_block:delta": payload("More text of a block.", {
    ...streamed,
    sequence: ordinal,
    delta: text.min(1),
  }),
  "content_block:end": payload("A block is whole.", { ...streamed, total_blocks: ordinal, block }),
  "thinking:delta": payload("More of a model's thoughts.", { text }),
  "thinking:final": payload("A model's thoughts, whole.", { text }),
} as const;
