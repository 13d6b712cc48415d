/**
 * A model that speaks Chat Completions: streams the marks of `provider_clock.ts` on a clock. Arguments:
 * deltas, interval in ms. Prints its address.
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
      controller.enqueue(chunkOf({ content: markOf(index) }));
      if (++index < Number(deltas)) return;
      controller.enqueue(chunkOf({}, "stop"));
      controller.enqueue(encoder.encode("data: [DONE]\n\n"));
      controller.close();
    },
  });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
});

function chunkOf(delta: unknown, finish_reason: string | null = null): Uint8Array {
  const choices = [{ index: 0, delta, finish_reason }];
  const usage = finish_reason && { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 };
  const chunk = { id: "c", object: "chat.completion.chunk", created: 1, model: "clock", choices, usage };
  return encoder.encode(`data: ${JSON.stringify(chunk)}\n\n`);
}
