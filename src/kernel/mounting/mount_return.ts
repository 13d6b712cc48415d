/** What `mount` returned: one classifier for every form the requirements allow (behaviour.md §3.3). */
import { isObject, type JsonObject } from "../../sdk/json.ts";
import { methodOf } from "../../sdk/snake_case_aliases.ts";
import type { Cleanup, ModuleType } from "../../sdk/types.ts";

/** The reading of a mount's return value. */
export type MountOutcome =
  | { kind: "nothing" }
  | { kind: "cleanup"; cleanup: Cleanup }
  | { kind: "instance"; instance: JsonObject; cleanup?: Cleanup }
  | { kind: "metadata"; metadata: JsonObject; cleanup?: Cleanup }
  | { kind: "skipped"; reason: string }
  | { kind: "unknown"; received: string };

const METHODS: Readonly<Record<ModuleType, readonly string[]>> = {
  orchestrator: ["execute"],
  context: ["addMessage", "getMessages"],
  provider: ["complete"],
  tool: ["execute"],
  hook: ["handler"],
};

/** Returns what a mount of a module of this type returned. */
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
