/** `hooks-timing`: measures the duration of tool calls and provider calls. */
import {
  type Clock,
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
    // Not fail-closed, even on gates: a failed measurement must not deny a call.
    coordinator.hooks.register(event, (_event, data) => handler(data), {
      priority: 10,
      name: module.id,
      fail_closed: false,
    });
  on("tool:pre", (data) => timers.start(toolKey(data)));
  // The time that a person needs to decide does not count.
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

/** Returns the key of a tool call: its id, else the tool's name. Loops without call ids run one call at a time. */
function toolKey(data: JsonObject): string {
  return typeof data.tool_call_id === "string" ? `call ${data.tool_call_id}` : `tool ${toolName(data)}`;
}

function providerKey(data: JsonObject): string {
  return `provider ${data.provider}`;
}

/** Maximum number of running stopwatches; the oldest is dropped first. Those of denied calls are never stopped. */
const MAX_RUNNING = 1_000;

/** Measures with the session's monotonic clock, which changes of the system time do not affect. */
class Stopwatches {
  readonly #clock: Clock;
  readonly #started = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Starts the stopwatch of a key, from zero if it is running. */
  start(key: string): void {
    this.#started.delete(key);
    this.#started.set(key, this.#clock.monotonic());
    if (this.#started.size > MAX_RUNNING) {
      const oldest = this.#started.keys().next();
      if (!oldest.done) this.#started.delete(oldest.value);
    }
  }

  /** Restarts the stopwatch of a key from zero if it is running. */
  restart(key: string): void {
    if (this.#started.has(key)) this.start(key);
  }

  /** Stops the stopwatch of a key and returns its milliseconds; undefined when it was not running. */
  stop(key: string): number | undefined {
    const started = this.#started.get(key);
    if (started === undefined) return undefined;
    this.#started.delete(key);
    return Math.max(0, this.#clock.monotonic() - started);
  }

  drop(key: string): void {
    this.#started.delete(key);
  }

  clear(): void {
    this.#started.clear();
  }
}
