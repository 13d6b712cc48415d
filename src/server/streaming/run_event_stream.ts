/** Streams the event log of a run as SSE or NDJSON: see src/docs/events.md. */
import type { Entry } from "../../kernel/host.ts";
import type { Caller } from "../../runs/types.ts";
import { type Answer, API_HEADERS } from "../answers.ts";
import { entryStream } from "./entry_stream.ts";
import type { RequestContext } from "../context.ts";
import { SSE_PING, sseFrame, sseRetry } from "./sse_format.ts";

/** Media type of a streamed log. */
export type StreamType = "text/event-stream" | "application/x-ndjson";

/** Options of {@link eventStream}. */
export interface EventStreamOptions {
  run_id: string;
  type: StreamType;
  /** Only entries with a larger seq. */
  after: number;
  headers?: Record<string, string>;
  /** Called when the client disconnects before the end. */
  onDisconnect?(): void;
}

/** Milliseconds between comments. Proxies commonly close connections that are silent for 30 s or more. */
const PING_MS = 15_000;
/**
 * Milliseconds that a client waits before it reconnects: prevents a storm of reconnects, and a person hardly
 * notices.
 */
const RETRY_MS = 1000;

/**
 * Returns an answer that streams a run's entries until `run:end`. The run must exist and belong to the
 * caller.
 */
export function eventStream(context: RequestContext, caller: Caller, options: EventStreamOptions): Answer {
  const { server } = context;
  const count = server.open_streams.add(caller.name);
  const sse = options.type === "text/event-stream";
  const stream = entryStream<Entry>({
    follow: (signal, pageEntries) =>
      server.runtime.runs.follow(caller, options.run_id, { after: options.after, signal, pageEntries }),
    frame: sse ? (entry) => sseFrame(entry.seq, entry.event, entry) : (entry) => `${JSON.stringify(entry)}\n`,
    ...(sse ? { opening: sseRetry(RETRY_MS), closingFrame: sseRetry(RETRY_MS) } : {}),
    ...(sse || server.heartbeat_ms !== null
      ? { ping: { text: sse ? SSE_PING : "\n", every_ms: server.heartbeat_ms ?? PING_MS } }
      : {}),
    clock: server.clock,
    onEnd(reason, error) {
      removeStream();
      count();
      if (reason === "disconnected") options.onDisconnect?.();
      if (reason === "failed") server.logError(context, error);
    },
  });
  const removeStream = server.streams.add(stream.end);
  return {
    status: 200,
    body: stream.body,
    headers: {
      ...API_HEADERS,
      "content-type": options.type,
      "x-accel-buffering": "no", // nginx buffers responses otherwise
      "preamp-run-id": options.run_id,
      ...options.headers,
    },
  };
}
