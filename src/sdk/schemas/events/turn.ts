/** Schemas of the events of a turn: start and end, prompts, steering, cancellation. */
import * as z from "zod";
import { amount, content, count, fields, flag, ordinal, payload, text } from "./fields.ts";

/** Maps each event to the schema of its `data`. */
export const TURN = {
  "execution:start": payload("A turn starts.", { prompt: content }),
  "execution:end": payload("A turn ends; emitted exactly once.", {
    response: text,
    status: z.enum(["completed", "cancelled", "error"]),
  }),
  "prompt:submit": payload("A prompt is about to join the conversation; a gate.", { prompt: content }),
  "prompt:complete": payload("A prompt was answered with text.", { response_preview: text, length: count }),
  "plan:start": payload("Reserved for modules that plan.", {}),
  "plan:end": payload("Reserved for modules that plan.", {}),
  "orchestrator:complete": payload("The loop is done; emitted exactly once.", {
    orchestrator: text,
    turn_count: count,
    status: z.enum(["success", "incomplete", "cancelled", "error"]),
  }),
  "orchestrator:steering_injected": payload("A steering text joins the turn.", {
    orchestrator: text,
    content: text,
    iteration: ordinal,
    queued_remaining: count,
    metadata: fields.optional(),
  }),
  "orchestrator:rate_limit_delay": payload("The loop waits before a model call.", {
    delay_ms: amount,
    configured_ms: amount,
    elapsed_ms: amount,
    iteration: ordinal,
  }),
  "orchestrator:goal_progress": payload("Reserved for loops that pursue a goal.", {}),
  "cancel:requested": payload("A cancellation of the turn was requested.", {
    state: z.enum(["graceful", "immediate"]),
  }),
  "cancel:completed": payload("The turn has stopped.", { was_immediate: flag }),
} as const;
