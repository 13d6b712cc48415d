import * as schemas from "../../src/sdk/schemas.ts";
import type { HookResult } from "../../src/sdk/hooks.ts";
import type { ChatRequest, ChatResponse, Message } from "../../src/sdk/messages.ts";
import type { ToolCall, ToolResult } from "../../src/sdk/tools.ts";
import { assert, assertEquals } from "../assert.ts";

const plain = (value: unknown) => JSON.parse(JSON.stringify(value));
const paths = (found: { error?: { issues: { path: PropertyKey[] }[] } | undefined }) =>
  found.error?.issues.map((issue) => issue.path.join("."));

Deno.test("what the schemas give is what the types say", () => {
  // the assignments are the test: they do not compile when a schema and its type part
  const call: ToolCall = schemas.toolCallSchema.parse({ name: "f" });
  const result: ToolResult = schemas.toolResultSchema.parse({});
  const hook: HookResult = schemas.hookResultSchema.parse({});
  const message: Message = schemas.messageSchema.parse({ role: "user", content: "x" });
  const request: ChatRequest = schemas.chatRequestSchema.parse({ messages: [] });
  const response: ChatResponse = schemas.chatResponseSchema.parse({ content: [] });
  assertEquals([call.name, result.success, hook.action, message.role, request.messages, response.content], [
    "f",
    true,
    "continue",
    "user",
    [],
    [],
  ]);
});

Deno.test("toolCallSchema reads both spellings and refuses arguments that are no object (MODEL-05)", () => {
  const call = schemas.toolCallSchema.parse({ id: null, tool: "bash", input: '{"command":"ls"}' });
  assertEquals([call.name, call.tool, call.arguments], ["bash", "bash", { command: "ls" }]);
  assertEquals(paths(schemas.toolCallSchema.safeParse({ name: "f", arguments: "{x" })), ["arguments"]);
  assertEquals(paths(schemas.toolCallSchema.safeParse({ id: "c" })), ["name"]);
});

Deno.test("toolResultSchema fills in defaults and reads is_error (MODEL-01, C33)", () => {
  assertEquals(plain(schemas.toolResultSchema.parse({})), { success: true, output: null, error: null });
  const failed = schemas.toolResultSchema.parse({ is_error: true, error: { message: "bad" } });
  assertEquals([failed.success, failed.getSerializedOutput()], [false, "bad"]);
  assert(!schemas.toolResultSchema.safeParse({ success: "yes" }).success);
});

Deno.test("hookResultSchema has R4's defaults and refuses an unknown action", () => {
  assertEquals(
    schemas.hookResultSchema.parse({ user_message: "hi", approval_timeout: undefined }) as unknown,
    {
      action: "continue",
      data: null,
      reason: null,
      context_injection: null,
      context_injection_role: "system",
      ephemeral: false,
      append_to_last_tool_result: false,
      approval_prompt: null,
      approval_options: null,
      approval_timeout: 300,
      approval_default: "deny",
      suppress_output: false,
      user_message: "hi",
      user_message_level: "info",
      user_message_source: null,
    },
  );
  for (
    const bad of [{ action: "block" }, { approval_timeout: 0 }, { approval_default: "maybe" }, { data: [] }]
  ) {
    assert(!schemas.hookResultSchema.safeParse(bad).success, JSON.stringify(bad));
  }
});

Deno.test("messageSchema checks known blocks and keeps unknown ones", () => {
  const content = [{ type: "text", text: "a", cache: true }, { type: "hologram", depth: 3 }];
  assertEquals(schemas.messageSchema.parse({ role: "user", content, name: null }), { role: "user", content });
  assertEquals(paths(schemas.contentBlockSchema.safeParse({ type: "text", text: 5 })), ["text"]);
  assert(
    !schemas.contentBlockSchema.safeParse({ type: "thinking", thinking: "x", visibility: "all" }).success,
  );
  assertEquals(paths(schemas.messageSchema.safeParse({ role: "tool", content: "x" })), ["tool_call_id"]);
});

Deno.test("messageSchema stores tool calls in both spellings (C1)", () => {
  const message = schemas.messageSchema.parse({
    role: "assistant",
    content: "",
    tool_calls: [{ id: "c", tool: "f", arguments: {} }],
  });
  assertEquals(message.tool_calls, [{ id: "c", name: "f", tool: "f", arguments: {} }]);
});

Deno.test("usageSchema refuses a cost that is a number, keeps text and null (MODEL-08)", () => {
  assertEquals(paths(schemas.usageSchema.safeParse({ cost_usd: 0.1 })), ["cost_usd"]);
  assertEquals(schemas.usageSchema.parse({ cost_usd: "0.10" }).cost_usd, "0.10");
  assertEquals(schemas.usageSchema.parse({ input_tokens: 1, output_tokens: 2 }), {
    input_tokens: 1,
    output_tokens: 2,
    total_tokens: 3,
    cost_usd: null,
  });
  assert(!schemas.usageSchema.safeParse({ input_tokens: -1 }).success);
});

Deno.test("chatRequestSchema keeps extra fields and reads json_schema under both names", () => {
  const request = schemas.chatRequestSchema.parse({
    messages: [{ role: "user", content: "x" }],
    response_format: { type: "json_schema", json_schema: { type: "object" }, strict: true },
    service_tier: "flex",
  });
  assertEquals(request.response_format, { type: "json_schema", schema: { type: "object" }, strict: true });
  assertEquals(request.service_tier, "flex");
  assert(
    !schemas.chatRequestSchema.safeParse({ messages: [], response_format: { type: "json_schema" } }).success,
  );
});

Deno.test("permissionsSchema refuses a kind that Deno does not know", () => {
  assertEquals(schemas.permissionsSchema.parse({ net: ["a.example"], read: false }), {
    net: ["a.example"],
    read: false,
  });
  assert(!schemas.permissionsSchema.safeParse({ network: true }).success);
  assert(!schemas.permissionsSchema.safeParse({ net: "a.example" }).success);
});

Deno.test("module, provider, model and field schemas hold R4's shapes", () => {
  assertEquals(schemas.moduleInfoSchema.parse({ id: "tool-x", config_schema: null, version: null }), {
    id: "tool-x",
    config_schema: null,
  });
  assert(!schemas.moduleInfoSchema.safeParse({ id: "x", type: "plugin" }).success);
  assertEquals(schemas.providerInfoSchema.parse({ id: "a", display_name: "A" }), {
    id: "a",
    display_name: "A",
    credential_env_vars: [],
    capabilities: [],
    defaults: {},
    config_fields: [],
  });
  assert(
    !schemas.modelInfoSchema.safeParse({
      id: "m",
      display_name: "M",
      context_window: 0,
      max_output_tokens: 1,
    }).success,
  );
  assertEquals(
    paths(
      schemas.configFieldSchema.safeParse({ id: "c", display_name: "C", prompt: "?", field_type: "choice" }),
    ),
    ["choices"],
  );
});

Deno.test("sessionStatusSchema gives a status whose estimated_cost is read from cost_usd (C15)", () => {
  const status = schemas.sessionStatusSchema.parse({
    session_id: "s",
    started_at: "2026-01-01T00:00:00Z",
    cost_usd: "1.5",
    estimated_cost: 9,
  });
  assertEquals([status.estimated_cost, status.status, status.started_at], [
    1.5,
    "running",
    "2026-01-01T00:00:00.000Z",
  ]);
  assertEquals(paths(schemas.sessionStatusSchema.safeParse({ session_id: "s", cost_usd: 1.5 })), [
    "cost_usd",
  ]);
});

Deno.test("retry, delta, degradation and approval schemas hold their shapes", () => {
  assertEquals(schemas.retryConfigSchema.parse({}).max_delay, 60);
  assert(!schemas.retryConfigSchema.safeParse({ backoff: 0 }).success);
  assert(!schemas.streamDeltaSchema.safeParse({ block_index: 0, block_type: "image", delta: "" }).success);
  assert(schemas.degradationSchema.safeParse({ requested: "a", actual: "b", reason: "c" }).success);
  assert(
    !schemas.approvalRequestSchema.safeParse({ tool_name: "a", action: "b", risk_level: "low", timeout: 0 })
      .success,
  );
  assertEquals(schemas.approvalResponseSchema.parse({ approved: true }), {
    approved: true,
    reason: null,
    remember: false,
  });
});
