/**
 * The least a streaming server on Deno can be: reads each body, answers the same events, one write for each. Argument: a file
 * with the events as they are on the wire. Tells its address on stdout.
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
