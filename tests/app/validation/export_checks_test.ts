import {
  checkInfo,
  checkMountSignature,
  checkSessionReady,
  typeOfExports,
  typeOfId,
} from "../../../src/app/validation/export_checks.ts";
import type { ModuleType } from "../../../src/sdk/types.ts";
import { assertEquals } from "../../assert.ts";

const nothing = { kind: "nothing" } as const;

Deno.test("checkMountSignature() requires a promise, and accepts any number of parameters", () => {
  const functions: [(...args: never[]) => unknown, boolean | undefined, boolean][] = [
    [async (_a: unknown, _b: unknown) => await null, undefined, true],
    [async (_a: unknown, _b = {}) => await null, undefined, true],
    [async (..._all: unknown[]) => await null, undefined, true],
    [(_a: unknown, _b: unknown) => Promise.resolve(), true, true],
    [(_a: unknown, _b: unknown) => undefined, false, false],
    [async (_a: unknown) => await null, true, true],
    [async () => await null, true, true],
  ];
  for (const [mount, awaited, fits] of functions) {
    assertEquals(checkMountSignature(mount, awaited).passed, fits, mount.toString());
  }
});

Deno.test("checkSessionReady() accepts both spellings, and a module without it", () => {
  assertEquals(checkSessionReady({}, undefined), null);
  assertEquals(
    checkSessionReady({ onSessionReady: async (_c: unknown) => await null }, undefined)?.passed,
    true,
  );
  assertEquals(checkSessionReady({ on_session_ready: (_c: unknown) => null }, false)?.passed, false);
  assertEquals(checkSessionReady({ onSessionReady: async () => await null }, undefined)?.passed, true);
  assertEquals(checkSessionReady({ onSessionReady: 5 }, undefined)?.passed, false);
});

Deno.test("typeOfId() reads the word before the first hyphen", () => {
  const ids: [string, ModuleType | undefined][] = [
    ["hooks-tool-dedupe", "hook"],
    ["hook-provider", "hook"],
    ["amplifier-module-tool-context", "tool"],
    ["loop-basic", "orchestrator"],
    ["orchestrator-tool", "orchestrator"],
    ["context-hooks", "context"],
    ["provider-mock", "provider"],
    ["toolbox", undefined],
    ["constructor-x", undefined],
  ];
  for (const [id, type] of ids) assertEquals(typeOfId(id), type, id);
});

Deno.test("typeOfExports() prefers moduleType, then __amplifier_module_type__, then module.type", () => {
  assertEquals(typeOfExports({ moduleType: "hook", module: { type: "tool" } }), "hook");
  assertEquals(typeOfExports({ __amplifier_module_type__: "context" }), "context");
  assertEquals(typeOfExports({ moduleType: "x", module: { type: "provider" } }), "provider");
  assertEquals(typeOfExports({}), undefined);
});

Deno.test("checkInfo() warns of fields that a module does not state", () => {
  const good = { id: "tool-a", type: "tool", version: "1.0.0" };
  assertEquals(checkInfo({ module: good }, "tool", nothing).passed, true);
  const bad = [undefined, "tool-a", { ...good, id: "" }, { ...good, version: 1 }, { ...good, type: "hook" }, {
    ...good,
    config_schema: "any",
  }, { ...good, permissions: { network: true } }];
  for (const module of bad) assertEquals(checkInfo({ module }, "tool", nothing).severity, "warning");
});

Deno.test("checkInfo() accepts the metadata that mount returned", () => {
  const metadata = { name: "tool-a", version: "0.1.0", provides: ["a"] };
  assertEquals(checkInfo({}, "tool", { kind: "metadata", metadata }).message, "tool-a 0.1.0");
  const { version: _, ...without } = metadata;
  assertEquals(checkInfo({}, "tool", { kind: "metadata", metadata: without }).severity, "warning");
});

Deno.test("checkInfo() refuses a module of another contract, as a session does", () => {
  const good = { id: "tool-a", type: "tool", version: "1.0.0" };
  assertEquals(checkInfo({ module: { ...good, contract: 1 } }, "tool", nothing).passed, true);
  const { severity, message } = checkInfo({ module: { ...good, contract: 2 } }, "tool", nothing);
  assertEquals([severity, message], ["error", "module.contract must be 1: received 2"]);
});
