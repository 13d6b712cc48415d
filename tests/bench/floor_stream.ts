/**
 * A minimal streaming Deno server: reads each request body and streams the same events, one write for each.
 * The argument is a file with the bytes of the events. Prints its address.
 */
const [path = ""] = Deno.args;
const frames = Deno.readTextFileSync(path).split("\n\n").filter((frame) => frame !== "")
  .map((frame) => new TextEncoder().encode(`${frame}\n\n`));

Deno.serve({
  hostname: "127.0.0.1",
  port: 0,
  onListen: ({ port }) => void Deno.stdout.writeSync(new TextEncoder().encode(`http://127.0.0.1:${port}\n`)),
}, async (request) => {
  await request.arrayBuffer();
  let next = 0;
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      const frame = frames[next++];
      if (frame) controller.enqueue(frame);
      else controller.close();
    },
  });
  return new Response(body, {
    headers: { "content-type": "text/event-stream", "cache-control": "no-store" },
  });
});
