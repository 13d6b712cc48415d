/** The properties of each error code: see src/docs/http.md#errors. */
import type { ErrorCode } from "./errors.ts";

/** Properties of an error code. */
export interface ErrorCodeInfo {
  /** HTTP status. */
  readonly status: number;
  /** Short summary, the same for every occurrence (RFC 9457 §3.1.3). */
  readonly title: string;
  /** Exit code of the command line; default 1. */
  readonly exit?: number;
}

/** Every error code with its properties. */
export const ERRORS: Readonly<Record<ErrorCode, ErrorCodeInfo>> = {
  request_invalid: { status: 400, title: "Invalid request", exit: 2 },
  plan_invalid: { status: 400, title: "Invalid plan", exit: 3 },
  plan_limit_exceeded: { status: 422, title: "Plan too large", exit: 3 },
  unauthorized: { status: 401, title: "Missing or unknown API key" },
  forbidden: { status: 403, title: "Request not allowed", exit: 4 },
  policy_refused: { status: 403, title: "Plan refused by the policy", exit: 4 },
  module_source_denied: { status: 403, title: "Module source not allowed", exit: 4 },
  isolation_unavailable: { status: 403, title: "Isolation tier not available", exit: 4 },
  not_found: { status: 404, title: "Not found" },
  method_not_allowed: { status: 405, title: "Method not allowed" },
  session_busy: { status: 409, title: "Session has an active run" },
  session_conflict: { status: 409, title: "Session was changed by another run" },
  idempotency_conflict: { status: 409, title: "Idempotency key used by another request" },
  run_ended: { status: 409, title: "Run has ended" },
  not_steerable: { status: 409, title: "Run cannot be steered" },
  not_replayable: { status: 409, title: "Run cannot be replayed" },
  log_expired: { status: 410, title: "Event log of the run has expired" },
  module_integrity_mismatch: { status: 409, title: "Module differs from its integrity hash" },
  module_pin_required: { status: 422, title: "Module needs an integrity hash" },
  lock_invalid: { status: 422, title: "Invalid lock file", exit: 3 },
  approval_already_resolved: { status: 409, title: "Approval already decided" },
  approval_expired: { status: 410, title: "Approval expired" },
  approval_args_mismatch: { status: 409, title: "Approval is for other arguments" },
  body_too_large: { status: 413, title: "Request body too large" },
  unsupported_media_type: { status: 415, title: "Unsupported media type" },
  request_timeout: { status: 408, title: "Timed out reading the request body" },
  module_too_large: { status: 422, title: "Module too large" },
  module_invalid: { status: 422, title: "Invalid module" },
  module_load_failed: { status: 422, title: "Cannot load a module" },
  module_fetch_failed: { status: 502, title: "Cannot fetch a module" },
  module_fetch_timeout: { status: 504, title: "Timed out fetching a module" },
  rate_limited: { status: 429, title: "Rate limit exceeded" },
  too_many_runs: { status: 429, title: "Too many runs" },
  overloaded: { status: 503, title: "Server overloaded" },
  draining: { status: 503, title: "Server is shutting down" },
  storage_full: { status: 507, title: "Store is full" },
  internal: { status: 500, title: "Internal server error" },
  // The codes below occur in run objects and tool results, not as problem responses.
  provider_rate_limited: { status: 502, title: "Provider rate limit exceeded" },
  provider_overloaded: { status: 502, title: "Provider overloaded" },
  provider_timeout: { status: 504, title: "Provider timed out" },
  provider_bad_response: { status: 502, title: "Invalid response of the provider" },
  provider_auth: { status: 502, title: "Provider refused the credentials" },
  context_overflow: { status: 422, title: "Conversation exceeds the model's context window" },
  denied: { status: 403, title: "Denied by a hook or approver", exit: 4 },
  cancelled: { status: 409, title: "Run cancelled" },
  interrupted: { status: 502, title: "Run interrupted by a server stop" },
  limit_reached: { status: 422, title: "Run limit reached" },
  tool_not_found: { status: 422, title: "Unknown tool" },
  tool_input_invalid: { status: 422, title: "Invalid tool input" },
  tool_timeout: { status: 504, title: "Tool timed out" },
  tool_memory_exceeded: { status: 422, title: "Tool exceeded its memory limit" },
  tool_output_exceeded: { status: 422, title: "Tool output too large" },
  tool_crashed: { status: 502, title: "Tool crashed" },
  tool_permission_denied: { status: 403, title: "Tool lacks a permission", exit: 4 },
};
