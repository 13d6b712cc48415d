/** `hooks-logging`: every event as a JSON line, in the format users already parse (behaviour.md §6.3). */
import type { Coordinator, HookResult, JsonObject, ModuleInfo, MountReturn } from "preamp";
import { DEFAULT_MAX_BYTES, LEAST_MAX_BYTES, type LogSettings, readConfig } from "./config.ts";
import { CANONICAL_EVENTS, DROPPED, eventNames, isDelta, MAX_EVENT_CHARS, MAX_EVENTS } from "./events.ts";
import { fileSink } from "./file_sink.ts";
import { mayWrite } from "./grant.ts";
import { formatLine } from "./format_line.ts";
import { dirname } from "./paths.ts";
import { LineQueue, type Sink } from "./queue.ts";

/** What this module is. */
export const module: ModuleInfo = {
  id: "hooks-logging",
  type: "hook",
  version: "1.0.0",
  description: "Writes every event as a JSON line to a file or to standard error.",
  config_schema: {
    type: "object",
    properties: {
      path: { type: ["string", "null"], description: "Absolute path of the file to append to" },
      max_bytes: {
        type: "integer",
        minimum: LEAST_MAX_BYTES,
        default: DEFAULT_MAX_BYTES,
        description: "Size of one rotation",
      },
      stderr: { type: "boolean", description: "Default: true without a path" },
      deltas: { type: "boolean", default: false, description: "Log pieces of answers as they arrive" },
      additional_events: {
        type: "array",
        maxItems: MAX_EVENTS,
        items: { type: "string", minLength: 1, maxLength: MAX_EVENT_CHARS },
        default: [],
      },
    },
  },
};

/** Under this name a session keeps what `onSessionReady` calls: nothing is kept per process (behaviour.md W-22). */
const DISCOVER = "hooks-logging.discover";

/** The capability `session.redact`; of a module that runs elsewhere it answers with a promise. */
type Redact = (event: string, data: JsonObject) => JsonObject | Promise<JsonObject>;

type Discover = (events: readonly string[]) => void;

/**
 * Registers the handlers, after those of usual priority; they observe and never decide. Resolves to a cleanup that waits
 * until all lines are written.
 *
 * @throws {PreampError} `module_invalid` for a bad config, `tool_permission_denied` for a `path` that the plan does not let
 * this module write to.
 */
export async function mount(coordinator: Coordinator, config: JsonObject): Promise<MountReturn> {
  const settings = await readConfig(config);
  const log = new SessionLog(coordinator, settings.deltas, await openSinks(coordinator, settings));
  log.subscribe([...CANONICAL_EVENTS, ...settings.additional_events]);
  const others = discoverOf(coordinator); // a second instance in the same session
  coordinator.registerCapability(DISCOVER, (events: readonly string[]) => {
    others?.(events);
    log.subscribe(events);
  });
  return () => log.close();
}

/** Adds the events that modules say they emit (`observability.events`), once all of them are mounted. */
export async function onSessionReady(coordinator: Coordinator): Promise<void> {
  const contributed = await coordinator.collectContributions("observability.events");
  const legacy = coordinator.getCapability("observability.events");
  discoverOf(coordinator)?.(eventNames(Array.isArray(legacy) ? [...contributed, legacy] : contributed));
}

/** One session's log: which events go in, and the queues they go to. */
class SessionLog {
  readonly #coordinator: Coordinator;
  readonly #deltas: boolean;
  readonly #queues: readonly LineQueue[];
  readonly #subscribed = new Set<string>();
  #told = false;

  constructor(coordinator: Coordinator, deltas: boolean, sinks: readonly Sink[]) {
    this.#coordinator = coordinator;
    this.#deltas = deltas;
    const dropped = (count: number) => this.#line(DROPPED, { session_id: coordinator.session_id, count });
    this.#queues = sinks.map((sink) => new LineQueue(sink, dropped));
  }

  /** Registers for events it has not yet. */
  subscribe(events: readonly string[]): void {
    for (const event of events) {
      if (this.#subscribed.has(event) || (isDelta(event) && !this.#deltas)) continue;
      this.#subscribed.add(event);
      this.#coordinator.hooks.register(event, (name, data) => this.#record(name, data), {
        priority: 100,
        name: module.id,
        fail_closed: false, // also on the gates: a log that fails must not deny a call
      });
    }
  }

  /** Resolves when everything is written; rejects when something could not be. */
  async close(): Promise<void> {
    const settled = await Promise.allSettled(this.#queues.map((queue) => queue.flush()));
    for (const result of settled) if (result.status === "rejected") throw result.reason;
  }

  async #record(event: string, data: JsonObject): Promise<HookResult | null> {
    const line = this.#line(event, await redacted(this.#coordinator, event, data));
    for (const queue of this.#queues) queue.add(line);
    if (this.#told || !this.#queues.some((queue) => queue.failed)) return null;
    this.#told = true;
    await this.#coordinator.hooks.emit("user:notification", {
      message: "The log of this session cannot be written any more",
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
    // Both files that it will make: the log, and the one it is rotated to.
    for (const file of [path, `${path}.1`]) {
      if (!await mayWrite(coordinator, module.id, path, file)) throw await notPermitted();
    }
    await Deno.mkdir(dirname(path), { recursive: true, mode: 0o700 });
    const sink = fileSink(path, settings.max_bytes);
    await sink(""); // a file that cannot be opened is known now, not after the run
    sinks.push(sink);
  }
  if (settings.stderr) sinks.push(writeStderr);
  return sinks;
}

async function writeStderr(text: string): Promise<void> {
  const { stderr } = Deno as Partial<Pick<typeof Deno, "stderr">>;
  if (stderr === undefined) { // a sandbox has none: its console goes to the log of the process
    // deno-lint-ignore no-console -- see above
    for (const line of text.split("\n")) if (line !== "") console.error(line);
    return;
  }
  const bytes = new TextEncoder().encode(text);
  for (let written = 0; written < bytes.length;) {
    written += await stderr.write(bytes.subarray(written));
  }
}

async function notPermitted(): Promise<Error> {
  const { PreampError } = await import("preamp"); // see config.ts: values only when needed
  return new PreampError(
    "tool_permission_denied",
    `Cannot mount module "${module.id}": config.path needs permissions.write with its folder as an absolute path, in ` +
      "this module's entry of the plan: received none that covers it",
  );
}

/** Resolves to an event's data without secrets, as the run's log has them. */
async function redacted(coordinator: Coordinator, event: string, data: JsonObject): Promise<JsonObject> {
  const redact = coordinator.getCapability("session.redact");
  if (typeof redact !== "function") return data; // a session that knows no secrets, such as a test's
  return await (redact as Redact)(event, data);
}

function discoverOf(coordinator: Coordinator): Discover | undefined {
  const discover = coordinator.getCapability(DISCOVER);
  return typeof discover === "function" ? discover as Discover : undefined; // registered above, nowhere else
}
