/** Checks the shape of mounted objects. Of a module's methods it calls only `getInfo` and `getSchema`. */
import { errorMessage } from "../sdk/errors.ts";
import { isObject } from "../sdk/json.ts";
import { inputSchemaOf, methodOf, unboundMethodOf } from "../sdk/snake_case_aliases.ts";
import type { ModuleType } from "../sdk/types.ts";
import { describeKind } from "../sdk/value_path.ts";
import type { Mounted, MountPoint } from "./mounts.ts";

/** Version of the module contract that this runtime implements. */
export const CONTRACT = 1;

export interface Check {
  name: string;
  passed: boolean;
  message: string;
  severity: "error" | "warning" | "info";
}

export function passed(name: string, message: string): Check {
  return { name, passed: true, severity: "info", message };
}

export function failed(name: string, message: string, severity: "error" | "warning" = "error"): Check {
  return { name, passed: false, severity, message };
}

/** Methods that a mounted object of each type must have, by the names of their checks. */
const METHODS: Readonly<Record<ModuleType, Readonly<Record<string, string>>>> = {
  orchestrator: { orchestrator_execute: "execute" },
  context: {
    context_add_message: "addMessage",
    context_get_messages_for_request: "getMessagesForRequest",
    context_get_messages: "getMessages",
    context_set_messages: "setMessages",
    context_clear: "clear",
  },
  provider: {
    provider_list_models: "listModels",
    provider_complete: "complete",
    provider_parse_tool_calls: "parseToolCalls",
  },
  tool: { tool_execute: "execute" },
  hook: {},
};

/** Checks an object that a module of this type mounted. A method may declare fewer parameters. */
export function checkInstance(type: ModuleType, instance: unknown): Check[] {
  const methods = Object.entries(METHODS[type]).map(([name, key]) => method(name, instance, key));
  switch (type) {
    case "tool":
      return [
        text("tool_name", instance, "name", "error"),
        text("tool_description", instance, "description", "warning"),
        schema(instance),
        ...methods,
      ];
    case "provider":
      return [text("provider_name", instance, "name", "error"), providerInfo(instance), ...methods];
    default:
      return methods;
  }
}

/** Mount point → module type. */
export const TYPE_AT: Readonly<Record<MountPoint, ModuleType>> = {
  orchestrator: "orchestrator",
  context: "context",
  providers: "provider",
  tools: "tool",
};

/** Returns the failed checks of a mounted object in one line; null when all passed. */
export function problemsOf({ point, module }: Mounted): string | null {
  const problems = checkInstance(TYPE_AT[point], module)
    .filter(({ passed, severity }) => !passed && severity === "error")
    .map(({ name, message }) => `${name}: ${message}`);
  return problems.length === 0 ? null : problems.join("; ");
}

function text(name: string, instance: unknown, key: string, severity: "error" | "warning"): Check {
  let value: unknown;
  try {
    value = isObject(instance) || typeof instance === "function"
      ? (instance as unknown as Record<string, unknown>)[key]
      : undefined;
  } catch (error) {
    return failed(name, `${key} could not be read: ${errorMessage(error)}`);
  }
  if (typeof value === "string" && value !== "") return passed(name, `${key} is set`);
  const received = typeof value === "string" ? '""' : String(value);
  return failed(name, `${key} must be a non-empty string: received ${received}`, severity);
}

function schema(instance: unknown): Check {
  const name = "tool_input_schema";
  const raw = isObject(instance)
    ? instance.input_schema ?? instance.inputSchema ?? methodOf(instance, "getSchema")?.() ?? {}
    : {};
  if (isObject(raw)) {
    return passed(name, `input_schema has ${Object.keys(inputSchemaOf(instance)).length} keys`);
  }
  const received = raw === null ? "null" : typeof raw;
  return failed(name, `input_schema must be an object: received ${received}`, "warning");
}

/** Checks that `getInfo` of a provider returns its info; a `getInfo` that throws is only a warning. */
function providerInfo(instance: unknown): Check {
  const name = "provider_get_info";
  const getInfo = methodOf(instance, "getInfo");
  if (!getInfo) return failed(name, "getInfo must be a function");
  let info: unknown;
  try {
    info = getInfo();
  } catch (error) {
    return failed(name, `getInfo failed: ${errorMessage(error)}`, "warning");
  }
  const lacks = ["id", "display_name"].filter((key) => !isObject(info) || typeof info[key] !== "string");
  if (lacks.length === 0) return passed(name, "getInfo returns provider info");
  const received = isObject(info) ? `an object without ${lacks.join(" and ")}` : describeKind(info);
  return failed(name, `getInfo must return an object with id and display_name: received ${received}`);
}

function method(name: string, instance: unknown, key: string): Check {
  return unboundMethodOf(instance, key)
    ? passed(name, `${key} is callable`)
    : failed(name, `${key} must be a function`);
}

/** Returns the names that the metadata of a module lists in `provides` and that are not mounted. */
export function missingProvides(metadata: { provides?: unknown }, names: readonly string[]): string[] {
  const provides = Array.isArray(metadata.provides) ? metadata.provides.map(String) : [];
  return provides.filter((name) => !names.includes(name));
}
