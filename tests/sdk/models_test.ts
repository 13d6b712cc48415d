import { toPlainObject } from "../../src/sdk/json.ts";
import { ApprovalRequest, ApprovalResponse, ModuleInfo } from "../../src/sdk/contracts.ts";
import { HookResult } from "../../src/sdk/hook_result.ts";
import { ConfigField, ModelInfo, ProviderInfo } from "../../src/sdk/providers.ts";
import { SessionStatus } from "../../src/sdk/session_status.ts";
import { assertEquals, assertMatch, assertThrows } from "../assert.ts";

Deno.test("ProviderInfo() fills in the defaults, also of its config fields", () => {
  assertEquals(ProviderInfo({ id: "mock", config_fields: [{ id: "api_key", field_type: "secret" }] }), {
    id: "mock",
    display_name: "mock",
    credential_env_vars: [],
    capabilities: [],
    defaults: {},
    config_fields: [{
      id: "api_key",
      display_name: "api_key",
      field_type: "secret",
      prompt: "",
      env_var: null,
      choices: null,
      required: true,
      default: null,
      show_when: null,
      requires_model: false,
    }],
  });
});

Deno.test("ProviderInfo() refuses an empty id and an invalid list", () => {
  assertThrows(
    () => ProviderInfo({ id: "" }),
    TypeError,
    "Cannot make a ProviderInfo: id must be a non-empty string",
  );
  assertThrows(
    () => ProviderInfo({ id: "a", capabilities: "tools" as never }),
    TypeError,
    "capabilities must be a list",
  );
});

Deno.test("ConfigField() refuses a choice without choices and an unknown type", () => {
  assertThrows(() => ConfigField({ id: "a", field_type: "choice" }), TypeError, "choices");
  assertThrows(
    () => ConfigField({ id: "a", field_type: "number" as never }),
    TypeError,
    "field_type must be one of",
  );
});

Deno.test("ModelInfo() refuses tokens that are not a whole number above 0", () => {
  for (const context_window of [0, -1, 1.5, NaN, "9" as never]) {
    assertThrows(
      () => ModelInfo({ id: "m", context_window, max_output_tokens: 1 }),
      TypeError,
      "context_window",
    );
  }
  assertEquals(ModelInfo({ id: "m", context_window: 2, max_output_tokens: 1, cost_per_input_token: "0.1" }), {
    id: "m",
    display_name: "m",
    context_window: 2,
    max_output_tokens: 1,
    capabilities: [],
    defaults: {},
    cost_per_input_token: "0.1",
  });
});

Deno.test("ModuleInfo() derives the mount point from the type and keeps a type it does not know", () => {
  assertEquals(ModuleInfo({ id: "tool-x", type: "tool" }), {
    id: "tool-x",
    name: "tool-x",
    version: "0.0.0",
    type: "tool",
    mount_point: "tools",
    description: "",
    config_schema: null,
  });
  assertEquals(ModuleInfo({ id: "x", type: "router" as never }).type, "router" as never);
  assertThrows(() => ModuleInfo({ id: "" }), TypeError);
});

Deno.test("HookResult() fills in the defaults and refuses unknown words", () => {
  const defaults = {
    action: "continue",
    data: null,
    reason: null,
    context_injection: null,
    context_injection_role: "system",
    context_injections: [],
    ephemeral: false,
    approval_prompt: null,
    approval_options: null,
    approval_timeout: 300,
    approval_default: "deny",
    suppress_output: false,
    user_message: null,
    user_message_level: "info",
  };
  assertEquals(toPlainObject(HookResult()), defaults);
  assertEquals(toPlainObject(HookResult({ reason: "x", data: undefined, user_message_source: "me" })), {
    ...defaults,
    reason: "x",
    user_message_source: "me",
  });
  assertThrows(() => HookResult({ action: "block" }), TypeError, "action must be one of continue, deny");
  assertThrows(() => HookResult({ action: "modify", data: "x" }), TypeError, "data must be an object");
  assertThrows(() => HookResult({ action: "ask_user", approval_timeout: 0 }), TypeError, "approval_timeout");
  assertThrows(
    () => HookResult({ action: "ask_user", approval_default: "maybe" }),
    TypeError,
    "approval_default",
  );
});

Deno.test("SessionStatus() starts running with its counters at 0 and its cost unknown", () => {
  const status = SessionStatus({ session_id: "s" });
  assertEquals([status.status, status.tool_failures, status.cost_usd, status.estimated_cost], [
    "running",
    0,
    null,
    null,
  ]);
  assertMatch(status.started_at, /^\d{4}-\d\d-\d\dT.*Z$/);
});

Deno.test("SessionStatus() shows cost_usd as estimated_cost, read-only and not serialised", () => {
  const status = SessionStatus({ session_id: "s", cost_usd: "0.10", started_at: new Date(0) });
  assertEquals(status.estimated_cost, 0.1);
  assertThrows(() => Object.assign(status, { estimated_cost: 5 }), TypeError);
  assertEquals(status.toDict(), {
    session_id: "s",
    started_at: "1970-01-01T00:00:00.000Z",
    status: "running",
    total_messages: 0,
    tool_invocations: 0,
    tool_successes: 0,
    tool_failures: 0,
    total_input_tokens: 0,
    total_output_tokens: 0,
    cost_usd: "0.10",
  });
});

Deno.test("SessionStatus() refuses a float cost, a broken time and a counter below 0", () => {
  assertThrows(() => SessionStatus({ session_id: "s", cost_usd: 0.1 as never }), TypeError, "cost_usd");
  assertThrows(() => SessionStatus({ session_id: "s", started_at: "yesterday" }), TypeError, "started_at");
  assertThrows(() => SessionStatus({ session_id: "s", tool_invocations: -1 }), TypeError, "tool_invocations");
  assertThrows(() => SessionStatus({ session_id: "s", status: "paused" as never }), TypeError, "status");
});

Deno.test("ApprovalRequest() wants a timeout above 0 or null", () => {
  assertEquals(ApprovalRequest({ tool_name: "bash", action: "execute" }), {
    tool_name: "bash",
    action: "execute",
    details: {},
    risk_level: "low",
    timeout: null,
  });
  assertThrows(() => ApprovalRequest({ tool_name: "b", action: "x", timeout: 0 }), TypeError, "timeout");
});

Deno.test("ApprovalResponse() is not remembered by default", () => {
  assertEquals(ApprovalResponse({ approved: true }), { approved: true, reason: null, remember: false });
  assertThrows(() => ApprovalResponse({ approved: "yes" as never }), TypeError, "approved");
});
