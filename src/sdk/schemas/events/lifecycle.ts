/** Schemas of the events of runs, modules, sessions and turns. */
import * as z from "zod";
import { amount, content, count, fields, flag, ordinal, payload, text } from "./fields.ts";

const status = z.enum([
  "queued",
  "running",
  "awaiting_approval",
  "completed",
  "incomplete",
  "denied",
  "cancelled",
  "failed",
]);
const session = {
  session_id: text,
  parent_id: text.nullable(),
  metadata: fields.optional(),
  raw: fields.optional(),
};

/** Maps each event to the schema of its `data`. */
export const LIFECYCLE = {
  "run:start": payload("The run exists, or waits in the queue of its session.", {
    status,
    plan_hash: text,
    lock_hash: text.nullable(),
    limits: z.looseObject({
      max_iterations: count,
      max_tool_calls: count,
      max_total_tokens: count,
      max_cost_usd: text,
      max_duration_s: z.number(),
    }),
    metadata: fields,
    traceparent: text.optional().meta({
      description: "Span of the run in a distributed trace (W3C Trace Context)",
    }),
  }),
  "run:status": payload("The run waits for a person, continues, or was recovered after a crash.", {
    status,
    resumed: flag.optional(),
  }),
  "run:end": payload("The last entry: the run object.", {
    run: z.looseObject({
      id: text,
      object: z.literal("run"),
      session_id: text,
      status,
      stop_reason: text.nullable(),
      output_text: text,
      error: z.looseObject({ code: text, message: text }).nullable(),
    }),
  }),
  "module:mounted": payload("A module is mounted: under these names, or listening to these events.", {
    module_id: text,
    type: text,
    names: z.array(text),
    isolation: z.enum(["inline", "worker", "process"]),
    integrity: text.nullable(),
    name: text.optional().meta({
      description: "Name of the module; absent for built-in modules",
    }),
    version: text.optional(),
    provides: z.array(text).optional().meta({ description: "What the module's `mount` reports as provided" }),
  }),
  "module:skipped": payload("A provider, tool or hook was left out.", {
    module_id: text,
    type: text,
    reason: text,
    message: text,
  }),
  "module:on_session_ready_failed": payload("A module's onSessionReady failed; the session continues.", {
    module_id: text,
    error: z.union([text, z.looseObject({ type: text, msg: text })]),
  }),
  "session:start": payload("The first turn of a new session begins.", session),
  "session:resume": payload("The first turn of a continued session begins.", session),
  "session:fork": payload("A child session is initialised.", {
    parent: text,
    session_id: text,
    metadata: fields.optional(),
    raw: fields.optional(),
  }),
  "session:state": payload("Modules assigned keys of session_state; null deletes one.", { set: fields }),
  "session:end": payload("The session ends; its cleanups follow.", { session_id: text, status: text }),
  "session:cleanup": payload("The cleanups have run.", {
    ran: count,
    failed: z.array(z.looseObject({ module_id: text, error: text })),
  }),
} as const;

/** Maps each event of a turn (prompts, steering, cancellation) to the schema of its `data`. */
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
