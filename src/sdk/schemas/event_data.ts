/** Schemas of the `data` of all canonical events. All payloads are open: readers ignore unknown fields. */
import * as z from "zod";
import type { RunLimits } from "../contracts.ts";
import {
  amount,
  block,
  content,
  count,
  failure,
  fields,
  flag,
  message,
  ordinal,
  text,
  usage,
} from "./event_fields.ts";

/** Returns the schema of a payload with these fields; emitters may add others. */
function payload(description: string, shape: z.ZodRawShape): z.ZodType {
  return z.looseObject(shape).describe(description);
}

/** Fields of an event about a model call. */
const part_usage = usage.optional().describe("present when the call failed after a part of its answer");
const inner = flag.optional().describe("the call was made by a module, not by the loop");

const status = z.enum([
  "queued",
  "running",
  "awaiting_approval",
  "awaiting_limit",
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

/** Fields of the limits that apply to a run. */
export const RUN_LIMITS = {
  max_iterations: count,
  max_tool_calls: count,
  max_total_tokens: count,
  max_cost_usd: text,
  max_duration_s: z.number(),
  on_limit: z.enum(["end", "pause"]).optional(),
} satisfies Record<keyof RunLimits, z.ZodType>;

/** The limit that a person is asked to raise. */
export const LIMIT_QUESTION = z.object({
  name: text,
  value: z.union([z.number(), text]).describe("the limit as it is"),
  used: z.union([z.number(), text]).describe("what the run has used of it"),
  next: z.object({ tokens: count, cost_usd: text.nullable() }).nullable().describe(
    "what the next step takes at most; null for a tool call, `cost_usd` null without a known price",
  ),
});

/** Events of runs, modules and sessions. */
const LIFECYCLE = {
  "run:start": payload("The run exists, or waits in the queue of its session.", {
    status,
    plan_hash: text,
    lock_hash: text.nullable(),
    limits: z.looseObject(RUN_LIMITS),
    metadata: fields,
    title: text.optional().describe("Beginning of the prompt, on one line; absent in older logs"),
    instructions: z.array(z.object({ path: text, sha256: text, bytes: count })).optional().describe(
      "Files of `instructions: project` that are part of the system message",
    ),
    forked_from: z.object({ run_id: text, seq: count }).optional().describe(
      "entry that the run continues from",
    ),
    traceparent: text.optional().describe("Span of the run in a distributed trace (W3C Trace Context)"),
  }),
  "run:steered": payload("A steering text was received; it joins the turn at its next model call.", { text }),
  "run:limits": payload("A person raised limits of the run: those that apply now.", {
    limits: z.looseObject(RUN_LIMITS),
    raised_by: text.nullable(),
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
    isolation: z.enum(["inline", "process"]),
    integrity: text.nullable(),
    name: text.optional().describe("Name of the module; absent for built-in modules"),
    version: text.optional(),
    provides: z.array(text).optional().describe("What the module's `mount` reports as provided"),
  }),
  "module:skipped": payload("A provider, tool or hook was left out.", {
    module_id: text,
    type: text,
    reason: text,
    message: text,
  }),
  "module:load_failed": payload("A provider, tool or hook failed to load or mount; follows module:skipped.", {
    module_type: z.enum(["provider", "tool", "hook"]),
    module_id: text,
    error: text,
    reason_code: z.enum([
      "invalid_package_layout",
      "missing_source",
      "invalid_entry_point",
      "invalid_module_metadata",
      "validation_failed",
      "unknown",
    ]),
    instance_id: text.optional(),
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
};

/** Events of turns: prompts, steering, cancellation. */
const TURN = {
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
};

const provider = text;
const request_id = text.describe("one attempt of a model call");
const own_request_id = text.optional().describe("that of the `llm:request` of the same call");
const block_index = count;
/** Numbers of a request that was too long for the model. */
const overflow = {
  limit_tokens: ordinal.optional().describe("input tokens that the model takes"),
  requested_tokens: ordinal.optional().describe("input tokens of the request"),
};
const streamed = { request_id, block_index };

/** Events of model calls. */
const MODEL = {
  "provider:request": payload("A model is about to be called; a gate.", {
    provider,
    iteration: ordinal,
    max_reached: flag.optional().describe("the loop's own limit is reached: the last call, without tools"),
  }),
  "provider:response": payload("A model has answered.", {
    provider,
    iteration: ordinal.optional(),
    usage,
    tool_calls: flag,
    inner,
    response: z.looseObject({
      content: z.array(block),
      tool_calls: z.array(z.looseObject({ id: text, name: text, arguments: fields })).optional(),
      finish_reason: text.optional(),
    }).optional().describe("needed to replay the run"),
  }),
  "provider:error": payload("A model call failed for good.", {
    provider,
    request_id: own_request_id,
    error: failure,
    retryable: flag,
    status_code: z.int().nullable(),
    usage: part_usage,
    inner,
    ...overflow,
  }),
  "provider:retry": payload(
    "A model call failed and is repeated: after a delay, with a smaller view, or without what was refused.",
    {
      provider,
      attempt: ordinal.describe("the attempt that failed, from 1"),
      max_retries: count,
      delay: amount.describe("seconds"),
      error_type: text,
      error_message: text,
      request_id: text.optional().describe(
        "the loop's attempt, or that of the `llm:request` of the provider that retries",
      ),
      status_code: z.int().optional(),
      retry_after: amount.optional(),
      delay_multiplier: amount.optional(),
      usage: part_usage,
      ...overflow,
    },
  ),
  "provider:throttle": payload("A provider waits before it calls.", {
    request_id: own_request_id,
    provider,
    delay: amount.describe("seconds"),
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
    request_id: own_request_id,
    provider,
    model: text.nullable().optional(),
    message_count: count.optional(),
    raw: fields.optional(),
  }),
  "llm:response": payload("A provider's own request has ended.", {
    request_id: own_request_id,
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
    usage: usage.optional().describe("of the part, when a cancellation or the end of the time broke it off"),
  }),
  "content_block:start": payload("A block of an answer starts.", {
    ...streamed,
    block_type: text,
    name: text.optional().describe("of a tool call"),
  }),
  "content_block:delta": payload("More text of a block.", {
    ...streamed,
    sequence: ordinal,
    delta: text.min(1),
  }),
  "content_block:end": payload("A block is complete.", { ...streamed, total_blocks: ordinal, block }),
  "content_block:void": payload("The process of a model call has ended; the call's deltas are void.", {
    request_id,
  }),
  "thinking:delta": payload("More text of a model's reasoning.", { text }),
  "thinking:final": payload("A model's complete reasoning.", { text }),
};

const call = {
  tool_name: text,
  tool_call_id: text,
  tool_input: fields,
  parallel_group_id: text.optional(),
};
const approval = {
  approval_id: text,
  tool_name: text.nullable(),
  tool_call_id: text.nullable(),
  args_hash: text,
};
const decided = {
  ...approval,
  decision: text.describe("allow, deny, an offered option, timeout, or unanswered: no one could be asked"),
  reason: text.nullable(),
  decided_by: text.nullable(),
  remember: z.enum(["session", "pattern"]).optional().describe(
    "Later questions of the session that the answer also holds for",
  ),
  remembered: flag.optional().describe(
    "No person was asked: the remembered answer to approval_id also holds for this question",
  ),
  prompt: text.optional().describe("The question, when no person was asked"),
  pattern: text.optional(),
};
const agent = { agent: text.nullable().optional(), sub_session_id: text, parent_session_id: text };

/** Events of tools, approvals, the context, hooks and sub-agents. */
const TOOLS = {
  "tool:pre": payload(
    "A tool call is about to run; a gate. `tool_input` is the input after changes by hooks.",
    {
      ...call,
      risk: z.enum(["low", "medium", "high", "critical"]).optional().describe(
        "Risk declared by the tool; absent in older logs: low",
      ),
      requires_approval: flag.optional().describe(
        "Whether the tool requires approval; absent in older logs: no",
      ),
    },
  ),
  "tool:output": payload("A running tool has written a text, for people who watch.", {
    tool_call_id: text,
    text,
    stream: z.enum(["stdout", "stderr"]),
  }),
  "tool:post": payload("A tool has answered.", {
    ...call,
    result: z.unknown().describe(
      "{success, output, error, content?}, or the value with which a hook replaced it; texts in the place of images",
    ),
    images: z.array(block).optional().describe("the images of the result's content, in order"),
  }),
  "tool:error": payload("A tool call failed, or was refused.", { ...call, error: failure }),
  "tool:selecting": payload("Hooks may change or deny a call.", {
    ...call,
    available_tools: z.array(text),
  }),
  "tool:selected": payload("The selection of the hooks.", {
    ...call,
    denied: flag.optional(),
    reason: text.optional(),
    decisions: z.array(fields),
  }),
  "approval:required": payload("A person is asked.", {
    ...approval,
    tool_input: fields.nullable(),
    preview: text.optional().describe("What the call would do, such as a diff"),
    action: text,
    risk_level: text,
    prompt: text,
    options: z.array(z.union([text, z.looseObject({ label: text, effect: z.enum(["allow", "deny"]) })])),
    default: z.enum(["allow", "deny"]),
    expires_at: text.meta({ format: "date-time" }),
    hook_name: text.nullable(),
    limit: LIMIT_QUESTION.optional().describe("Set when the person is asked to raise a limit"),
    pattern: text.optional().describe("Pattern that a remembered answer holds for"),
  }),
  "approval:granted": payload("The action is allowed.", decided),
  "approval:denied": payload("The action is denied.", decided),
  "context:message": payload("A message joined the history.", {
    index: count,
    message,
  }),
  "context:reset": payload("The history was replaced.", { messages: z.array(message) }),
  "context:compaction": payload("A view was made smaller; the history is unchanged.", {
    strategy_level: ordinal.max(8),
    before_tokens: count,
    after_tokens: count,
    before_messages: count.optional(),
    after_messages: count.optional(),
    budget: z.number().optional(),
  }),
  "context:pre_compact": payload("A view is about to be made smaller.", {}),
  "context:post_compact": payload("A view was made smaller.", {}),
  "context:compaction-skipped": payload("A view was not made smaller.", {}),
  "context:tool_result_ingress_truncated": payload("A tool result was shortened in views.", {
    tool_call_id: text,
  }),
  "context:token_meter": payload("How a context counts tokens.", {}),
  "context:summary": payload("Messages that were left out were summarised.", {
    messages: count,
    length: count,
  }),
  "context:include": payload("A file joined the context.", { path: text, size: count.optional() }),
  "user:notification": payload("A text for the user.", {
    message: text,
    level: z.enum(["info", "warning", "error"]),
    source: text.optional(),
    tool_call_id: text.optional(),
  }),
  "artifact:write": payload("A module wrote a file.", { path: text.optional() }),
  "artifact:read": payload("A module read a file.", { path: text.optional() }),
  "policy:violation": payload("A limit on injections was exceeded.", {
    kind: text,
    hook_name: text.nullable().optional(),
    limit: z.unknown(),
    actual: z.unknown(),
  }),
  "task:agent_spawned": payload("A sub-agent starts.", agent),
  "task:agent_resumed": payload("A sub-agent continues.", agent),
  "task:agent_completed": payload("A sub-agent is done.", agent),
  "delegate:agent_spawned": payload("A sub-agent starts.", agent),
  "delegate:agent_completed": payload("A sub-agent is done.", agent),
  "delegate:error": payload("A sub-agent failed.", { error: z.unknown() }),
};

/** Maps each event to the schema of its `data`. */
export const EVENT_DATA: Readonly<Record<string, z.ZodType>> = { ...LIFECYCLE, ...TURN, ...MODEL, ...TOOLS };
