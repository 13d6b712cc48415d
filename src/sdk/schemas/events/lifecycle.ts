/** Schemas of the events of runs, modules and sessions. */
import * as z from "zod";
import { count, fields, flag, payload, text } from "./fields.ts";

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
