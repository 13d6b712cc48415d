/** `hooks-timing`: how long tools and providers took (R0's timing hook, keyed by call). */
import type { Coordinator, HookResult, JsonObject, ModuleInfo, MountReturn } from "preamp";
import { Stopwatches } from "./stopwatches.ts";

/** What this module is. */
export const module: ModuleInfo = {
  id: "hooks-timing",
  type: "hook",
  version: "1.0.0",
  description: "Measures tool and provider calls and tells how long they took.",
  config_schema: {
    type: "object",
    properties: {
      debug: { type: ["boolean", "null"], default: false, description: "Tell the user after each call" },
    },
  },
};

/** Emitted after each measured call: `{kind, name, tool_call_id?, duration_ms}`. */
const MEASURED = "hooks-timing:measured";

/**
 * Registers the handlers; they observe and never decide.
 *
 * @throws {PreampError} `module_invalid`, when `debug` is not a boolean.
 */
export async function mount(coordinator: Coordinator, config: JsonObject): Promise<MountReturn> {
  const debug = config.debug ?? false;
  if (typeof debug !== "boolean") {
    const { PreampError } = await import("preamp"); // the SDK's values bring a schema library: only when needed
    throw new PreampError(
      "module_invalid",
      `Cannot mount module "${module.id}": config.debug must be true or false: received ${typeof debug}`,
    );
  }
  coordinator.registerContributor("observability.events", module.id, () => [MEASURED]);
  const timers = new Stopwatches(coordinator.clock);

  async function report(
    kind: "tool" | "provider",
    key: string,
    data: JsonObject,
  ): Promise<HookResult | null> {
    const duration_ms = timers.stop(key);
    if (duration_ms === undefined) return null;
    const name = kind === "tool" ? toolName(data) : String(data.provider);
    const call = typeof data.tool_call_id === "string" ? { tool_call_id: data.tool_call_id } : {};
    await coordinator.hooks.emit(MEASURED, { kind, name, ...call, duration_ms });
    if (!debug) return null;
    const label = kind === "tool" ? "Tool" : "Provider";
    return {
      action: "continue",
      user_message: `${label} ${name} took ${(duration_ms / 1000).toFixed(2)}s`,
      user_message_level: "info",
    };
  }

  const on = (event: string, handler: (data: JsonObject) => Promise<HookResult | null> | void) =>
    // Not fail-closed, also on the gates: a stopwatch must never deny a call.
    coordinator.hooks.register(event, (_event, data) => handler(data), {
      priority: 10,
      name: module.id,
      fail_closed: false,
    });
  on("tool:pre", (data) => timers.start(toolKey(data)));
  // The time a person takes to decide is not the tool's.
  on("approval:granted", (data) => timers.restart(toolKey(data)));
  on("approval:denied", (data) => timers.drop(toolKey(data)));
  on("tool:post", (data) => report("tool", toolKey(data), data));
  on("tool:error", (data) => report("tool", toolKey(data), data));
  on("provider:request", (data) => timers.start(providerKey(data)));
  on("provider:response", (data) => report("provider", providerKey(data), data));
  on("provider:error", (data) => report("provider", providerKey(data), data));
  on("orchestrator:complete", () => timers.clear());
}

function toolName(data: JsonObject): string {
  return typeof data.tool_name === "string" ? data.tool_name : "unknown";
}

/** The call's id; loops that give none (R0's) run one call of a tool at a time, so its name will do. */
function toolKey(data: JsonObject): string {
  return typeof data.tool_call_id === "string" ? `call ${data.tool_call_id}` : `tool ${toolName(data)}`;
}

function providerKey(data: JsonObject): string {
  return `provider ${data.provider}`;
}
