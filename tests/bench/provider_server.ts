/** A worker with a server that answers every request with the same bytes: whole, or as a stream in parts. */

/** What the server answers. */
export interface Bytes {
  readonly whole: string;
  readonly parts: readonly string[];
  readonly stream_type: string;
  /** Milliseconds before the first byte. */
  readonly delay_ms: number;
}

const scope = self as unknown as {
  onmessage: ((event: MessageEvent<Bytes>) => void) | null;
  postMessage(port: number): void;
};

scope.onmessage = ({ data: { whole, parts, stream_type, delay_ms } }) => {
  const encoder = new TextEncoder();
  const body = encoder.encode(whole);
  const chunks = parts.map((part) => encoder.encode(part));
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    const streams = (await request.text()).includes('"stream":true') || request.url.includes("stream");
    if (delay_ms > 0) await new Promise((resolve) => setTimeout(resolve, delay_ms));
    if (!streams) return new Response(body, { headers: { "content-type": "application/json" } });
    let next = 0;
    const stream = new ReadableStream<Uint8Array<ArrayBuffer>>({
      pull(controller) {
        const chunk = chunks[next++];
        if (chunk) controller.enqueue(chunk);
        else controller.close();
      },
    });
    return new Response(stream, { headers: { "content-type": stream_type } });
  });
  scope.postMessage(server.addr.port);
};
