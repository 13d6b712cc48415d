/** zod schemas of hook results and approvals (behaviour.md §4.3, §4.7). */
import * as z from "zod";
import type { ApprovalRequest, ApprovalResponse } from "../approvals.ts";
import type { HookResult } from "../hooks.ts";
import { model, object, seconds, text } from "./model.ts";

const option = z.union([
  text,
  model({
    label: text,
    effect: z.enum(["allow", "deny"]),
    remember: z.enum(["once", "session", "pattern"]).exactOptional(),
  }),
]);

/** A handler's answer, strictly: an unknown action or a field of the wrong kind is an issue. `parseHookResult` is the lenient reader. */
export const hookResultSchema: z.ZodType<HookResult> = model({
  action: z.enum(["continue", "deny", "modify", "inject_context", "ask_user"]).default("continue"),
  data: object.nullable().default(null),
  reason: z.string().nullable().default(null),
  context_injection: z.string().nullable().default(null),
  context_injection_role: z.enum(["system", "user", "assistant"]).default("system"),
  ephemeral: z.boolean().default(false),
  append_to_last_tool_result: z.boolean().default(false),
  approval_prompt: z.string().nullable().default(null),
  approval_options: z.array(option).nullable().default(null),
  approval_timeout: seconds.default(300),
  approval_default: z.enum(["allow", "deny"]).default("deny"),
  approval_pattern: z.string().nullable().exactOptional(),
  risk_level: z.string().exactOptional(),
  suppress_output: z.boolean().default(false),
  user_message: z.string().nullable().default(null),
  user_message_level: z.enum(["info", "warning", "error"]).default("info"),
  user_message_source: z.string().nullable().default(null),
});

/** What a person is asked about. */
export const approvalRequestSchema: z.ZodType<ApprovalRequest> = model({
  tool_name: text,
  action: text,
  details: object.default({}),
  risk_level: z.enum(["low", "medium", "high", "critical"]),
  timeout: seconds.nullable().default(null),
});

/** What the person decided. */
export const approvalResponseSchema: z.ZodType<ApprovalResponse> = model({
  approved: z.boolean(),
  reason: z.string().nullable().default(null),
  remember: z.boolean().default(false),
});
