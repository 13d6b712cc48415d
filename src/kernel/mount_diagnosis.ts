/**
 * Classifies what `mount` returned, and decides why a module that mounted nothing of its type did so.
 * Sessions use the diagnosis to skip the module, `preamp module validate` to report it to the author.
 */
import { isObject, type JsonObject } from "../sdk/json.ts";
import { methodOf } from "../sdk/snake_case_aliases.ts";
import type { Cleanup, ModuleType } from "../sdk/types.ts";

/** Classified return value of `mount`. */
export type MountOutcome =
  | { kind: "nothing" }
  | { kind: "cleanup"; cleanup: Cleanup }
  | { kind: "instance"; instance: JsonObject; cleanup?: Cleanup }
  | { kind: "metadata"; metadata: JsonObject; cleanup?: Cleanup }
  | { kind: "skipped"; reason: string }
  | { kind: "unknown"; received: string };

/** Methods that an instance of each type has. */
const METHODS: Readonly<Record<ModuleType, readonly string[]>> = {
  orchestrator: ["execute"],
  context: ["addMessage", "getMessages"],
  provider: ["complete"],
  tool: ["execute"],
  hook: ["handler"],
};

/** Classifies the return value of `mount` of a module of this type. */
export function classifyMountReturn(value: unknown, type: ModuleType): MountOutcome {
  if (value === undefined || value === null) return { kind: "nothing" };
  if (typeof value === "function") return { kind: "cleanup", cleanup: value as Cleanup };
  if (!isObject(value)) return { kind: "unknown", received: typeof value };
  if (METHODS[type].every((name) => methodOf(value, name))) {
    const cleanup = disposeOf(value);
    return { kind: "instance", instance: value, ...(cleanup ? { cleanup } : {}) };
  }
  if (typeof value.skipped === "string") return { kind: "skipped", reason: value.skipped };
  const cleanup = methodOf(value, "cleanup");
  const isMetadata = typeof value.name === "string" && Array.isArray(value.provides);
  if (cleanup || isMetadata) {
    const { cleanup: _, ...metadata } = value;
    return { kind: "metadata", metadata, ...(cleanup ? { cleanup } : {}) };
  }
  return { kind: "unknown", received: `an object with ${Object.keys(value).join(", ") || "no keys"}` };
}

function disposeOf(instance: JsonObject): Cleanup | undefined {
  for (const key of ["close", "dispose", Symbol.asyncDispose, Symbol.dispose]) {
    const method = (instance as Record<string | symbol, unknown>)[key];
    if (typeof method === "function") return method.bind(instance);
  }
  return undefined;
}

/**
 * Returns the message for a module of this type that mounted nothing; modules and tests compare it byte for
 * byte.
 */
export function nothingMounted(type: ModuleType): string {
  const label = type === "context" ? "context manager" : type;
  const is_mounted = type === "hook" ? "was registered" : "was mounted";
  const instance = `${label[0]!.toUpperCase()}${label.slice(1)} instance`;
  return `protocol_compliance: No ${label} ${is_mounted} and mount() did not return a ${instance}`;
}

/** Why a module mounted nothing. */
export interface MountDiagnosis {
  /** `not_configured`: the module declined to mount; `protocol_compliance`: it broke its contract. */
  reason: "not_configured" | "protocol_compliance";
  message: string;
}

export interface EmptyMount {
  /** Id in the plan, used in messages. */
  id: string;
  type: ModuleType;
  /** Exports of the module. */
  module: object;
  /** Config that the module was mounted with. */
  config: JsonObject;
  outcome: MountOutcome;
}

/** Returns why a module mounted nothing, with a message. */
export function diagnoseEmptyMount({ id, type, module, config, outcome }: EmptyMount): MountDiagnosis {
  if (outcome.kind === "skipped") return declined(outcome.reason);
  if (type === "provider" && outcome.kind === "nothing") {
    return declined(`Provider "${id}" is not configured: its mount() returned nothing`);
  }
  if (type !== "orchestrator" && type !== "context") {
    if (outcome.kind === "cleanup") {
      return declined(`Module "${id}" mounted nothing and returned a cleanup: it may be conditional`);
    }
    const unmet = outcome.kind === "nothing" ? unmetRequirements(module, config) : [];
    if (unmet.length > 0) {
      return declined(`Module "${id}" is not configured: its config lacks ${unmet.join(", ")}`);
    }
  }
  return { reason: "protocol_compliance", message: `${nothingMounted(type)}${otherType(module, type)}` };
}

/** Returns the advice for a module that the plan lists as another type than the one it declares. */
function otherType(module: object, type: ModuleType): string {
  const { module: info } = module as { module?: unknown };
  const declared = isObject(info) ? info.type : undefined;
  return typeof declared !== "string" || declared === type
    ? ""
    : `; the module declares type "${declared}", but the plan lists it as a ${type}`;
}

function declined(message: string): MountDiagnosis {
  return { reason: "not_configured", message };
}

/**
 * Returns the required keys that `config` lacks or has as an empty string. A module declares required keys in
 * `module.config_schema.required` or in the list `mount.requires`.
 */
export function unmetRequirements(module: object, config: JsonObject): string[] {
  const { module: info, mount } = module as { module?: unknown; mount?: unknown };
  const schema = isObject(info) ? info.config_schema : undefined;
  const required = isObject(schema) ? schema.required : undefined;
  const requires = typeof mount === "function" ? (mount as { requires?: unknown }).requires : undefined;
  const names = [...strings(required), ...strings(requires)];
  return [...new Set(names)].filter((name) => {
    const value = Object.hasOwn(config, name) ? config[name] : undefined;
    return value === undefined || value === null || value === "";
  });
}

function strings(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}
