/** Schemas of the events of tools, approvals, the context, hooks and sub-agents. */
import * as z from "zod";
import { count, failure, fields, flag, message, ordinal, payload, text } from "./fields.ts";

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
  decision: text.meta({ description: "allow, deny, an offered option, or timeout" }),
  reason: text.nullable(),
  decided_by: text.nullable(),
  remember: z.enum(["session", "pattern"]).optional().meta({
    description: "Later questions of the session that the answer also holds for",
  }),
  remembered: flag.optional().meta({
    description: "No person was asked: the remembered answer to approval_id also holds for this question",
  }),
  prompt: text.optional().meta({ description: "The question, when no person was asked" }),
  pattern: text.optional(),
};
const agent = { agent: text.nullable().optional(), sub_session_id: text, parent_session_id: text };

/** Maps each event to the schema of its `data`. */
export const TOOLS = {
  "tool:pre": payload(
    "A tool call is about to run; a gate. `tool_input` is the input after changes by hooks.",
    {
      ...call,
      risk: z.enum(["medium", "high", "critical"]).optional().meta({
        description: "Risk declared by the tool; absent: low",
      }),
      requires_approval: flag.optional().meta({
        description: "Whether the tool requires approval; absent: no",
      }),
    },
  ),
  "tool:post": payload("A tool has answered.", {
    ...call,
    result: z.unknown().meta({
      description: "{success, output, error}, or the value with which a hook replaced it",
    }),
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
    action: text,
    risk_level: text,
    prompt: text,
    options: z.array(z.union([text, z.looseObject({ label: text, effect: z.enum(["allow", "deny"]) })])),
    default: z.enum(["allow", "deny"]),
    expires_at: text.meta({ format: "date-time" }),
    hook_name: text.nullable(),
    pattern: text.optional().meta({ description: "Pattern that a remembered answer holds for" }),
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
} as const;
