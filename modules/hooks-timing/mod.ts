/** `hooks-timing`: measures the duration of tool calls and provider calls. */
import {
  type Coordinator,
  type HookResult,
  type JsonObject,
  type ModuleInfo,
  type MountReturn,
  readConfig,
} from "preamp/base";

const CONFIG_SCHEMA = {
  type: "object",
  properties: {
    debug: { type: ["boolean", "null"], default: false, description: "Notify the user after each call" },
  },
};

export const module: ModuleInfo = {
  id: "hooks-timing",
  type: "hook",
  version: "1.0.0",
  description: "Measures the duration of tool calls and provider calls.",
  config_schema: CONFIG_SCHEMA,
};

/**
 * Maximum number of calls that are measured at once; the oldest is dropped first. Denied calls have no end.
 */
const MAX_RUNNING = 1_000;

/** Emitted after each measured call: `{kind, name, tool_call_id?, duration_ms}`. */
const MEASURED = "hooks-timing:measured";

/**
 * Registers handlers that measure calls. They never deny or change anything.
 *
 * @throws {PreampError} `module_invalid` when `debug` is not a boolean.
 */
// deno-lint-ignore require-await -- the contract: mount returns a promise
export async function mount(coordinator: Coordinator, config: JsonObject): Promise<MountReturn> {
  const { debug } = readConfig<{ debug: boolean | null }>(CONFIG_SCHEMA, config);
  coordinator.registerContributor("observability.events", module.id, () => [MEASURED]);
  /**
   * Start of each running call on the session's monotonic clock, which changes of the system time do not
   * affect.
   */
  const started = new Map<string, number>();

  function start(key: string): void {
    started.delete(key); // the newest is the last of the map
    started.set(key, coordinator.clock.monotonic());
    if (started.size > MAX_RUNNING) started.delete(started.keys().next().value!); // the map is not empty
  }

  async function report(
    kind: "tool" | "provider",
    key: string,
    data: JsonObject,
  ): Promise<HookResult | null> {
    const started_ms = started.get(key);
    if (started_ms === undefined) return null;
    started.delete(key);
    const duration_ms = Math.max(0, coordinator.clock.monotonic() - started_ms);
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
    // Not fail-closed, even on gates: a failed measurement must not deny a call.
    coordinator.hooks.register(event, (_event, data) => handler(data), {
      priority: 10,
      name: module.id,
      fail_closed: false,
    });
  on("tool:pre", (data) => start(toolKey(data)));
  // The time that a person needs to decide does not count.
  on("approval:granted", (data) => {
    if (started.has(toolKey(data))) start(toolKey(data));
  });
  on("approval:denied", (data) => void started.delete(toolKey(data)));
  on("tool:post", (data) => report("tool", toolKey(data), data));
  on("tool:error", (data) => report("tool", toolKey(data), data));
  on("provider:request", (data) => start(providerKey(data)));
  on("provider:response", (data) => report("provider", providerKey(data), data));
  on("provider:error", (data) => report("provider", providerKey(data), data));
  on("orchestrator:complete", () => started.clear());
}

function toolName(data: JsonObject): string {
  return typeof data.tool_name === "string" ? data.tool_name : "unknown";
}

/**
 * Returns the key of a tool call: its id, else the tool's name. Loops without call ids run one call at a
 * time.
 */
function toolKey(data: JsonObject): string {
  return typeof data.tool_call_id === "string" ? `call ${data.tool_call_id}` : `tool ${toolName(data)}`;
}

function providerKey(data: JsonObject): string {
  return `provider ${data.provider}`;
}
