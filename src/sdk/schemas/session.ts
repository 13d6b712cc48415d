/** zod schemas of a session's status and of how calls are retried (behaviour.md §4.5, §4.8). */
import * as z from "zod";
import type { RetryConfig } from "../retry.ts";
import { SessionStatus } from "../session_status.ts";
import { cost, count, model, object, text } from "./model.ts";

const time = z.union([z.iso.datetime({ offset: true }), z.date()]);

/** Session status; gives a {@link SessionStatus}. A cost that is a number is refused; `estimated_cost` is read-only, so ignored. */
export const sessionStatusSchema: z.ZodType<SessionStatus> = model({
  session_id: text,
  started_at: time.exactOptional(),
  ended_at: time.nullable().default(null),
  status: z.enum(["running", "completed", "failed", "cancelled"]).default("running"),
  total_messages: count.default(0),
  tool_invocations: count.default(0),
  tool_successes: count.default(0),
  tool_failures: count.default(0),
  total_input_tokens: count.default(0),
  total_output_tokens: count.default(0),
  cost_usd: cost.default(null),
  last_activity: time.nullable().default(null),
  last_error: object.nullable().default(null),
}).transform(SessionStatus);

/** How often and how long to wait, in seconds. */
export const retryConfigSchema: z.ZodType<RetryConfig> = model({
  max_retries: count.default(3),
  initial_delay: z.number().min(0).default(1),
  max_delay: z.number().min(0).default(60),
  backoff: z.number().min(1).default(2),
  jitter: z.boolean().default(true),
  honor_retry_after: z.boolean().default(true),
});
