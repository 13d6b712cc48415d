/**
 * A module that mounted nothing of its type: what that means, and whose fault it is (behaviour.md §3.4). One table for
 * sessions, which skip the module, and for `module validate`, which tells its author.
 */
import { isObject, type JsonObject } from "../../sdk/json.ts";
import type { ModuleType } from "../../sdk/types.ts";
import type { MountOutcome } from "./mount_return.ts";

/** Text of the Iron Law (R2), byte for byte. */
export const NO_TOOL_MOUNTED =
  "protocol_compliance: No tool was mounted and mount() did not return a Tool instance";

/** Returns the message for a module of this type that mounted nothing; for tools the text that R2 quotes. */
export function nothingMounted(type: ModuleType): string {
  if (type === "tool") return NO_TOOL_MOUNTED;
  if (type === "hook") {
    return "protocol_compliance: No hook was registered and mount() did not return a Hook instance";
  }
  const label = type === "context" ? "context manager" : type;
  return `protocol_compliance: No ${label} was mounted and mount() did not return a ${
    label[0]!.toUpperCase()
  }${label.slice(1)} instance`;
}

/** Why nothing is there. */
export interface MountDiagnosis {
  /** `not_configured`: the module declined; `protocol_compliance`: it broke its contract. */
  reason: "not_configured" | "protocol_compliance";
  message: string;
}

/** A module that mounted nothing. */
export interface EmptyMount {
  /** Id in the plan, for messages. */
  id: string;
  type: ModuleType;
  /** Its exports. */
  module: object;
  /** What it was mounted with. */
  config: JsonObject;
  outcome: MountOutcome;
}

/** Returns the reason and the message for a module of which nothing was mounted. */
export function diagnoseEmptyMount({ id, type, module, config, outcome }: EmptyMount): MountDiagnosis {
  if (outcome.kind === "skipped") return { reason: "not_configured", message: outcome.reason };
  if (type === "provider" && outcome.kind === "nothing") {
    const message = `Provider "${id}" is not configured: its mount() returned nothing`;
    return { reason: "not_configured", message };
  }
  if (type !== "orchestrator" && type !== "context") {
    if (outcome.kind === "cleanup") {
      const message = `Module "${id}" mounted nothing and returned a cleanup: it may be conditional`;
      return { reason: "not_configured", message };
    }
    const unmet = outcome.kind === "nothing" ? unmetRequirements(module, config) : [];
    if (unmet.length > 0) {
      const message = `Module "${id}" is not configured: its config lacks ${unmet.join(", ")}`;
      return { reason: "not_configured", message };
    }
  }
  return { reason: "protocol_compliance", message: nothingMounted(type) };
}

/**
 * Returns the keys of `config` that a module declares to need, in `module.config_schema.required` or as the list
 * `mount.requires`, and was not given; an empty text is not given.
 */
export function unmetRequirements(module: object, config: JsonObject): string[] {
  const { module: info, mount } = module as { module?: unknown; mount?: unknown };
  const schema = isObject(info) ? info.config_schema : undefined;
  const stated = isObject(schema) ? schema.required : undefined;
  const requires = typeof mount === "function" ? (mount as { requires?: unknown }).requires : undefined;
  const names = [...list(stated), ...list(requires)];
  return [...new Set(names)].filter((name) => {
    const value = Object.hasOwn(config, name) ? config[name] : undefined;
    return value === undefined || value === null || value === "";
  });
}

function list(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === "string") : [];
}
