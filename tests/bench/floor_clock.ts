/**
 * A minimal server of live streams: writes the marks of `provider_clock.ts` as server-sent events, one write
 * for each, and nothing else. Arguments: deltas, interval in ms. Prints its address.
 */
import { markOf } from "./modules/provider_clock.ts";

const [deltas = "0", interval_ms = "20"] = Deno.args;
const encoder = new TextEncoder();

Deno.serve({
  hostname: "127.0.0.1",
  port: 0,
  onListen: ({ port }) => void Deno.stdout.writeSync(encoder.encode(`http://127.0.0.1:${port}\n`)),
}, async (request) => {
  await request.arrayBuffer();
  const start = performance.now();
  let index = 0;
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const wait = start + index * Number(interval_ms) - performance.now();
      if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
      const frame = `id: ${index + 1}\nevent: content_block:delta\ndata: {"delta":"${markOf(index)}"}\n\n`;
      controller.enqueue(encoder.encode(frame));
      if (++index === Number(deltas)) controller.close();
    },
  });
  return new Response(body, {
    headers: { "content-type": "text/event-stream", "cache-control": "no-store" },
  });
});
