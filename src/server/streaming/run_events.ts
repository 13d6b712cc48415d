/** The log of a run as an endless answer: SSE or NDJSON (http.md, SSE). */
import type { Entry } from "../../kernel/host.ts";
import type { Caller } from "../../runs/types.ts";
import { entryStream } from "./log_stream.ts";
import type { RequestContext } from "../context.ts";
import { SSE_PING, sseFrame, sseRetry } from "./sse.ts";

/** Media types of a streamed log. */
export type StreamType = "text/event-stream" | "application/x-ndjson";

/** Which log, from where, and what to tell. */
export interface EventStreamOptions {
  run_id: string;
  type: StreamType;
  /** Only entries with a larger seq. */
  after: number;
  headers?: Record<string, string>;
  /** Told when the reader went away before the end. */
  onLeave?(): void;
}

/** Milliseconds between comments (http.md). Proxies commonly cut what is silent for 30 s or more. */
const PING_MS = 15_000;
/** What a reader waits before it connects again: at once is a storm, seconds are seen by a person. Our choice. */
const RETRY_MS = 1000;

/** Returns the answer that streams a run's entries until `run:end`. The run must exist and be the caller's. */
export function eventStream(exchange: RequestContext, caller: Caller, options: EventStreamOptions): Response {
  const { server } = exchange;
  const sse = options.type === "text/event-stream";
  const stream = entryStream<Entry>({
    follow: (signal) => server.runtime.runs.follow(caller, options.run_id, { after: options.after, signal }),
    frame: sse ? frameEntry : (entry) => `${JSON.stringify(entry)}\n`,
    ...(sse
      ? {
        opening: sseRetry(RETRY_MS),
        ping: { text: SSE_PING, every_ms: PING_MS },
        farewell: sseRetry(RETRY_MS),
      }
      : {}),
    clock: server.clock,
    onEnd(how, error) {
      leave();
      if (how === "left") options.onLeave?.();
      if (how === "failed") server.note(exchange, error);
    },
  });
  const leave = server.streams.add(stream.end);
  return new Response(stream.body, {
    headers: {
      "content-type": options.type,
      "cache-control": "no-store",
      "x-accel-buffering": "no", // nginx would hold events back
      "x-content-type-options": "nosniff",
      "preamp-run-id": options.run_id,
      ...options.headers,
    },
  });
}

function frameEntry(entry: Entry): string {
  return sseFrame({ id: entry.seq, event: entry.event, data: JSON.stringify(entry) });
}
