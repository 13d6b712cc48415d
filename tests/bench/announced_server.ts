/** The servers that benches start: each listens on a free port of loopback and prints its address. */
import { markOf } from "./modules/provider_clock.ts";

/** Serves on a free port; prints the address, which `startServer` waits for. */
export function serveAnnounced(handler: (request: Request) => Response | Promise<Response>): void {
  const print = (port: number) =>
    Deno.stdout.writeSync(new TextEncoder().encode(`http://127.0.0.1:${port}\n`));
  Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: ({ port }) => void print(port) }, handler);
}

/** A stream of texts on a clock. */
export interface ClockOptions {
  readonly deltas: number;
  readonly interval_ms: number;
  /** Returns the text of the mark with an index. */
  frameOf(mark: string, index: number): string;
  /** Text after the last mark. Default: none. */
  readonly last?: string;
}

/** Answers with the marks of `provider_clock.ts` as an event stream, one write for each. */
export function answerOnClock({ deltas, interval_ms, frameOf, last = "" }: ClockOptions): Response {
  const encoder = new TextEncoder();
  const start = performance.now();
  let index = 0;
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const wait = start + index * interval_ms - performance.now();
      if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
      controller.enqueue(encoder.encode(frameOf(markOf(index), index)));
      if (++index < deltas) return;
      if (last !== "") controller.enqueue(encoder.encode(last));
      controller.close();
    },
  });
  return new Response(body, {
    headers: { "content-type": "text/event-stream", "cache-control": "no-store" },
  });
}
