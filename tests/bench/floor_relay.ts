/**
 * A bare relay: streams the answer of a model that speaks Chat Completions, one server-sent event for each of
 * its deltas, and nothing else. Argument: the model's address. Prints its own.
 */
import { serveAnnounced } from "./announced_server.ts";

const [model = ""] = Deno.args;
const encoder = new TextEncoder();

serveAnnounced(async (request) => {
  await request.arrayBuffer();
  const { body } = await fetch(`${model}/v1/chat/completions`, { method: "POST", body: "{}" });
  const decoder = new TextDecoder();
  const reader = body!.getReader();
  let [rest, seq] = ["", 0];
  const frames = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await reader.read();
      if (done) return controller.close();
      const events = (rest + decoder.decode(value, { stream: true })).split("\n\n");
      rest = events.pop()!; // there is one
      for (const event of events) {
        if (event === "data: [DONE]") continue;
        const delta = JSON.parse(event.slice("data: ".length)).choices[0].delta.content;
        if (delta === undefined) continue;
        const data = JSON.stringify({ delta });
        controller.enqueue(encoder.encode(`id: ${++seq}\nevent: content_block:delta\ndata: ${data}\n\n`));
      }
    },
  });
  return new Response(frames, { headers: { "content-type": "text/event-stream" } });
});
