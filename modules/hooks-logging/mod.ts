/** `hooks-logging`: writes every event as a JSON line, in Amplifier's log format. */
import {
  type Coordinator,
  type HookResult,
  isAbsolutePath,
  isPathGranted,
  type JsonObject,
  type JsonSchema,
  type ModuleInfo,
  type MountReturn,
  parentFolder,
  PreampError,
  readConfig,
} from "preamp/base";
import { DROPPED, fileSink, formatLine, isDelta, LineQueue, type Sink, writeStderr } from "./log_lines.ts";

/** Amplifier's canonical events, which are logged by default. */
const CANONICAL_EVENTS: readonly string[] = [
  ...names("session", "start end fork resume"),
  ...names("prompt", "submit complete"),
  ...names("plan", "start end"),
  ...names("provider", "request response retry error throttle tool_sequence_repaired resolve"),
  ...names("llm", "request response"),
  ...names("content_block", "start delta end"),
  ...names("thinking", "delta final"),
  ...names("tool", "pre post error"),
  ...names("context", "pre_compact post_compact compaction include"),
  ...names("orchestrator", "complete"),
  ...names("execution", "start end"),
  ...names("user", "notification"),
  ...names("artifact", "write read"),
  ...names("policy", "violation"),
  ...names("approval", "required granted denied"),
  ...names("cancel", "requested completed"),
  ...names("module", "on_session_ready_failed"),
];

/** Maximum events that modules may add, and maximum characters of each name. */
const MAX_EVENTS = 1_000;
const MAX_EVENT_CHARS = 128;

interface LogSettings {
  /** Absolute path of the log file, or null. */
  path: string | null;
  /** Maximum bytes of the file before it is rotated. */
  max_bytes: number;
  /** Whether lines go to stderr; default: without a path. */
  stderr?: boolean;
  /** Whether deltas of answers are logged. */
  deltas: boolean;
  additional_events: string[];
}

export const CONFIG_SCHEMA: JsonSchema = {
  type: "object",
  properties: {
    path: { type: ["string", "null"], format: "path", default: null, description: "File to append to" },
    max_bytes: {
      type: "integer",
      minimum: 64 * 1024, // less would rotate after a few lines
      default: 10 * 1024 * 1024,
      description: "Maximum size of the file; it is then renamed to <path>.1",
    },
    stderr: { type: "boolean", description: "Default: true without a path" },
    deltas: { type: "boolean", default: false, description: "Log deltas of answers as they arrive" },
    additional_events: {
      type: "array",
      maxItems: MAX_EVENTS,
      items: { type: "string", minLength: 1, maxLength: MAX_EVENT_CHARS },
      default: [],
    },
  },
};

/**
 * Returns the settings of a config.
 *
 * @throws {PreampError} `module_invalid` with all problems and their paths.
 */
function readLogSettings(config: JsonObject): LogSettings {
  return readConfig<LogSettings>(CONFIG_SCHEMA, config, ({ path, additional_events }, refuse) => {
    if (path !== null && (!isAbsolutePath(path) || path.includes("\0"))) {
      refuse(["path"], "must be an absolute path");
    }
    for (const [index, event] of additional_events.entries()) {
      if (!isEventName(event)) refuse(["additional_events", index], 'must be an event name without "*"');
    }
  });
}

/** Returns the valid event names in lists of contributors; other values are ignored. */
function eventNames(contributions: readonly unknown[]): string[] {
  return contributions.flat().filter(isEventName).slice(0, MAX_EVENTS);
}

/** Returns whether a value is the name of one event, not a pattern. */
function isEventName(value: unknown): value is string {
  return typeof value === "string" && value !== "" && value.length <= MAX_EVENT_CHARS && !value.includes("*");
}

function names(subject: string, moments: string): string[] {
  return moments.split(" ").map((moment) => `${subject}:${moment}`);
}

export const module: ModuleInfo = {
  id: "hooks-logging",
  type: "hook",
  version: "1.0.0",
  description: "Writes every event as a JSON line to a file or to standard error.",
  config_schema: CONFIG_SCHEMA,
};

/**
 * Capability with the function that `onSessionReady` calls; it belongs to one session, so there is no global
 * state.
 */
const DISCOVER = "hooks-logging.discover";

/** The capability `session.redact`; it returns a promise when this module runs in a sandbox. */
type Redact = (event: string, data: JsonObject) => JsonObject | Promise<JsonObject>;

type Discover = (events: readonly string[]) => void;

/**
 * Registers handlers after those of default priority. They never deny or change anything. Resolves to a
 * cleanup that waits until all lines are written.
 *
 * @throws {PreampError} `module_invalid` when the config is wrong; `tool_permission_denied` when the plan
 * does not grant write access to `path`.
 */
export async function mount(coordinator: Coordinator, config: JsonObject): Promise<MountReturn> {
  const settings = readLogSettings(config);
  const log = new SessionLog(coordinator, settings.deltas, await openSinks(coordinator, settings));
  log.subscribe([...CANONICAL_EVENTS, ...settings.additional_events]);
  const previous = discoverOf(coordinator); // of another instance in the same session
  coordinator.registerCapability(DISCOVER, (events: readonly string[]) => {
    previous?.(events);
    log.subscribe(events);
  });
  return () => log.close();
}

/** Subscribes to the events that modules declare in `observability.events`, once all modules are mounted. */
export async function onSessionReady(coordinator: Coordinator): Promise<void> {
  const contributed = await coordinator.collectContributions("observability.events");
  const legacy = coordinator.getCapability("observability.events");
  discoverOf(coordinator)?.(eventNames(Array.isArray(legacy) ? [...contributed, legacy] : contributed));
}

/** The log of one session: its subscribed events and its queues. */
class SessionLog {
  readonly #coordinator: Coordinator;
  readonly #deltas: boolean;
  readonly #queues: readonly LineQueue[];
  readonly #subscribed = new Set<string>();
  #warned = false;

  constructor(coordinator: Coordinator, deltas: boolean, sinks: readonly Sink[]) {
    this.#coordinator = coordinator;
    this.#deltas = deltas;
    const dropped = (count: number) => this.#line(DROPPED, { session_id: coordinator.session_id, count });
    this.#queues = sinks.map((sink) => new LineQueue(sink, dropped));
  }

  /** Registers handlers for events that are not subscribed yet. */
  subscribe(events: readonly string[]): void {
    for (const event of events) {
      if (this.#subscribed.has(event) || (isDelta(event) && !this.#deltas)) continue;
      this.#subscribed.add(event);
      this.#coordinator.hooks.register(event, (name, data) => this.#record(name, data), {
        priority: 100,
        name: module.id,
        fail_closed: false, // also on gates: a failed log must not deny a call
      });
    }
  }

  /** Resolves when all lines are written; rejects when a write failed. */
  async close(): Promise<void> {
    const settled = await Promise.allSettled(this.#queues.map((queue) => queue.flush()));
    for (const result of settled) if (result.status === "rejected") throw result.reason;
  }

  async #record(event: string, data: JsonObject): Promise<HookResult | null> {
    const line = this.#line(event, await redacted(this.#coordinator, event, data));
    for (const queue of this.#queues) queue.add(line);
    if (this.#warned || !this.#queues.some((queue) => queue.failed)) return null;
    this.#warned = true;
    await this.#coordinator.hooks.emit("user:notification", {
      message: "The log of this session can no longer be written",
      level: "warning",
      source: `hook:${module.id}`,
    });
    return null;
  }

  #line(event: string, data: JsonObject): string {
    return formatLine(event, data, this.#coordinator.clock.now());
  }
}

async function openSinks(coordinator: Coordinator, settings: LogSettings): Promise<Sink[]> {
  const sinks: Sink[] = [];
  const { path } = settings;
  if (path !== null) {
    // The log, and the file it is renamed to on rotation.
    for (const file of [path, `${path}.1`]) {
      // a built-in module runs in the program, without a sandbox, so it checks its grant itself
      const { write } = coordinator.permissions;
      if (!await isPathGranted(write, file, Deno.realPath)) throw notPermitted(file, write);
    }
    await Deno.mkdir(parentFolder(path), { recursive: true, mode: 0o700 });
    const sink = fileSink(path, settings.max_bytes);
    await sink(""); // fails now if the file cannot be opened
    sinks.push(sink);
  }
  if (settings.stderr ?? path === null) sinks.push(writeStderr);
  return sinks;
}

function notPermitted(file: string, granted: unknown): PreampError {
  return new PreampError(
    "tool_permission_denied",
    `Cannot mount module "${module.id}": it may not write ${
      JSON.stringify(file)
    }: permissions.write of its ` +
      `entry grants ${JSON.stringify(granted || [])} here`,
  );
}

/** Resolves to an event's data without secrets, as in the run's event log. */
async function redacted(coordinator: Coordinator, event: string, data: JsonObject): Promise<JsonObject> {
  const redact = coordinator.getCapability("session.redact");
  if (typeof redact !== "function") return data; // a session without secrets, as in tests
  return await (redact as Redact)(event, data);
}

function discoverOf(coordinator: Coordinator): Discover | undefined {
  const discover = coordinator.getCapability(DISCOVER);
  return typeof discover === "function" ? discover as Discover : undefined; // registered in mount()
}
