/** The parts of a session that its modules share through their coordinators. */
import { deepFreeze, type JsonObject, toPlainObject } from "../../sdk/json.ts";
import type { Cleanup, Emission } from "../../sdk/types.ts";
import type { Hooks } from "../hooks/hooks.ts";
import type { SessionContext } from "./session_context.ts";
import type { Mounted, Mounts } from "../mounting/mounts.ts";

/** Parts of a session that its modules share. */
export interface SessionParts {
  readonly session: SessionContext;
  readonly hooks: Hooks;
  readonly mounts: Mounts;
  readonly config: JsonObject;
  readonly capabilities: Map<string, unknown>;
  readonly contributors: Map<string, { name: string; callback: () => unknown }[]>;
  readonly cleanups: { module_id: string; cleanup: Cleanup }[];
  /**
   * Functions that stop the guests of sandboxed modules. Called after all cleanups, because a cleanup may
   * call another module.
   */
  readonly guests: (() => Promise<void>)[];
  /** Wraps a mounted object in its guard; the returned function publishes the guard and cannot fail. */
  guard(mounted: Mounted, module_id: string): () => void;
  processHookResult(result: Emission, event: string, hook_name?: string): Promise<Emission>;
  resetTurn(): void;
  cancel(mode: "graceful" | "immediate"): void;
}

/** Usage of one answered request, with the number of messages in the history at that time. */
export interface LoggedUsage {
  readonly messages: number;
  readonly input_tokens: number;
}

/** Options of {@link initialCapabilities}. */
export interface CapabilityOptions {
  /** Usage that providers reported in earlier runs, for the context's token counter. */
  usages?: readonly LoggedUsage[];
  /** Capabilities that exist before the first module is mounted, such as `session.spawn`. */
  capabilities?: Readonly<Record<string, unknown>>;
}

/** Written plan → frozen copy. Compiled plans are frozen, so that all their runs share one copy. */
const frozen_configs = new WeakMap<JsonObject, JsonObject>();

/** Returns a frozen copy of the written plan, which modules receive as `coordinator.config`. */
export function frozenConfig(written: JsonObject = {}): JsonObject {
  let config = frozen_configs.get(written);
  if (config) return config;
  config = deepFreeze(toPlainObject(written));
  if (Object.isFrozen(written)) frozen_configs.set(written, config); // else it may change before the next session
  return config;
}

/**
 * Returns the capabilities that exist before any module is mounted: the session's own, and those of its
 * options.
 */
export function initialCapabilities(
  { usages, capabilities }: CapabilityOptions,
  session: SessionContext,
): Map<string, unknown> {
  const { host } = session;
  const redact = (event: unknown, data: unknown) => host.redactEvent?.(String(event), toPlainObject(data));
  return new Map<string, unknown>([
    ["session.usages", () => usages ?? []],
    ["session.last_usage", () => session.last_usage],
    ...(host.redactEvent ? [["session.redact", redact] as const] : []),
    ...Object.entries(capabilities ?? {}),
  ]);
}
