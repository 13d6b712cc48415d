/**
 * Checks of what a module file exports, before and after its `mount` was called (behaviour.md §3.5, steps 2 to 4; VAL-03).
 * Pure: calls nothing.
 */
import { isObject, type JsonObject } from "../../sdk/json.ts";
import { SNAKE_CASE } from "../../sdk/snake_case_aliases.ts";
import type { ModuleType } from "../../sdk/types.ts";
import { PREFIX } from "./module_type.ts";
import type { MountOutcome } from "./mount_return.ts";
import { PERMISSION_KINDS } from "../../sdk/permission_kinds.ts";
import type { Check } from "./validate_instance.ts";

/** Whether a call of an export gave a promise; undefined: it was not called. */
export type Awaited = boolean | undefined;

/** Returns a check that passed. */
export function passed(name: string, message: string): Check {
  return { name, passed: true, severity: "info", message };
}

/** Returns a check that did not pass. */
export function failed(name: string, message: string, severity: "error" | "warning" = "error"): Check {
  return { name, passed: false, severity, message };
}

/** Returns whether there is a `mount` to call. */
export function checkMountExists(module: object): Check {
  const mount = (module as { mount?: unknown }).mount;
  if (typeof mount === "function") return passed("mount_exists", "mount is a function");
  const received = mount === undefined ? "none" : typeof mount;
  return failed("mount_exists", `the module must export mount(coordinator, config): received ${received}`);
}

/** Returns whether `mount` is as the contract says: async. */
// deno-lint-ignore ban-types -- whatever a module exports under the name
export function checkMountSignature(mount: Function, awaited: Awaited): Check {
  const name = "mount_signature";
  if (!isAsync(mount, awaited)) {
    return failed(name, "mount must be async: received a function that returns no promise");
  }
  return passed(name, "mount is async");
}

/** Returns whether the optional `onSessionReady` is as the contract says; null when there is none. */
export function checkSessionReady(module: object, awaited: Awaited): Check | null {
  const name = "on_session_ready_async";
  const found = sessionReadyOf(module);
  if (!found) return null;
  const { key, value } = found;
  if (typeof value !== "function") return failed(name, `${key} must be a function: received ${typeof value}`);
  if (!isAsync(value, awaited)) {
    return failed(name, `${key} must be async: received a function that returns no promise`);
  }
  return passed(name, `${key}(coordinator) is async`);
}

function sessionReadyOf(module: object): { key: string; value: unknown } | undefined {
  for (const key of ["onSessionReady", SNAKE_CASE.onSessionReady!]) {
    const value = (module as Record<string, unknown>)[key];
    if (value !== undefined) return { key, value };
  }
  return undefined;
}

/** An async function says so; any other may return a promise, which only a call shows. Not called: it may. */
// deno-lint-ignore ban-types -- whatever a module exports under the name
function isAsync(fn: Function, awaited: Awaited): boolean {
  const tag = (fn as unknown as { [Symbol.toStringTag]?: string })[Symbol.toStringTag];
  return tag === "AsyncFunction" || awaited !== false;
}

/** Version of the module contract that this runtime has. */
export const CONTRACT = 1;

const KNOWN_KINDS: ReadonlySet<string> = new Set(PERMISSION_KINDS);

/** Returns whether the module says what it is: in its export `module`, or in the metadata that `mount` returned. */
export function checkInfo(module: object, type: ModuleType, outcome: MountOutcome): Check {
  const name = "module_info";
  const info = (module as { module?: unknown }).module;
  const example = `export const module = { id: "${PREFIX[type]}-…", type: "${type}", version: "1.0.0", … }`;
  const warn = (fact: string) => failed(name, `${fact}: write ${example}`, "warning");
  if (info === undefined) {
    const { name: id, version }: JsonObject = outcome.kind === "metadata" ? outcome.metadata : {};
    return typeof id === "string" && typeof version === "string"
      ? passed(name, `${id} ${version}`)
      : warn("the module does not say what it is");
  }
  if (!isObject(info)) return warn(`module must be an object: received ${typeof info}`);
  for (const key of ["id", "version"]) {
    if (typeof info[key] !== "string" || info[key] === "") return warn(`module.${key} must be a text`);
  }
  if (info.type !== type) {
    return warn(`module.type must be "${type}": received ${JSON.stringify(info.type) ?? "none"}`);
  }
  const { config_schema = null, permissions = {}, contract = CONTRACT } = info;
  if (contract !== CONTRACT) {
    return failed(
      name,
      `module.contract must be ${CONTRACT}: received ${JSON.stringify(contract) ?? "none"}`,
    );
  }
  if (config_schema !== null && !isObject(config_schema)) {
    return warn(`module.config_schema must be a JSON Schema: received ${typeof config_schema}`);
  }
  if (!isObject(permissions)) {
    return warn(`module.permissions must be an object: received ${typeof permissions}`);
  }
  const unknown = Object.keys(permissions).filter((kind) => !KNOWN_KINDS.has(kind));
  if (unknown.length > 0) {
    return warn(`module.permissions may have ${[...PERMISSION_KINDS].join(", ")}: received ${unknown[0]}`);
  }
  return passed(name, `${info.id} ${info.version}`);
}

/** Returns the names that metadata says are provided and that were not mounted. */
export function missingProvides(metadata: { provides?: unknown }, names: readonly string[]): string[] {
  const provides = Array.isArray(metadata.provides) ? metadata.provides.map(String) : [];
  return provides.filter((name) => !names.includes(name));
}
