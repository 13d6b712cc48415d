import { diagnoseEmptyMount, nothingMounted, unmetRequirements } from "../../src/kernel/mount_diagnosis.ts";
import type { ModuleType } from "../../src/sdk/types.ts";
import { assertEquals, assertMatch } from "../assert.ts";

const NO_TOOL_MOUNTED = nothingMounted("tool");

const absence = (type: ModuleType, rest: object = {}) =>
  diagnoseEmptyMount({ id: "m", type, module: {}, config: {}, outcome: { kind: "nothing" }, ...rest });

Deno.test("diagnoseEmptyMount() distinguishes a module that declined from one that broke the contract", () => {
  assertEquals(absence("tool"), { reason: "protocol_compliance", message: NO_TOOL_MOUNTED });
  assertEquals(absence("provider").reason, "not_configured");
  assertMatch(absence("hook").message, /No hook was registered/);
  for (const type of ["orchestrator", "context"] as const) {
    assertEquals(absence(type).reason, "protocol_compliance");
  }
  const skipped = { outcome: { kind: "skipped", reason: "no display" } };
  assertEquals(absence("tool", skipped), { reason: "not_configured", message: "no display" });
});

Deno.test("diagnoseEmptyMount() says that a module declares another type than the plan lists it as", () => {
  const message = `${NO_TOOL_MOUNTED}; the module declares type "hook", but the plan lists it as a tool`;
  assertEquals(absence("tool", { module: { module: { type: "hook" } } }).message, message);
  assertEquals(absence("tool", { module: { module: { type: "tool" } } }).message, NO_TOOL_MOUNTED);
});

Deno.test("diagnoseEmptyMount() reports a tool without its declared requirements as not configured", () => {
  const module = { module: { config_schema: { required: ["api_key"] } } };
  assertEquals(absence("tool", { module }).reason, "not_configured");
  assertMatch(absence("tool", { module }).message, /its config lacks api_key/);
  assertEquals(absence("tool", { module, config: { api_key: "k" } }).message, NO_TOOL_MOUNTED);
  const mount = Object.assign(() => {}, { requires: ["url", "api_key"] });
  assertEquals(unmetRequirements({ mount }, { url: "", api_key: "k" }), ["url"]);
});
