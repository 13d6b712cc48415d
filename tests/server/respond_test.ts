import { assertEquals } from "../assert.ts";
import { acceptsEncoding } from "../../src/server/negotiation.ts";
import { testApp } from "../support/http.ts";

async function unzip(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const stream = ReadableStream.from([bytes]).pipeThrough(new DecompressionStream("gzip"));
  return await new Response(stream).text();
}

Deno.test("a large response is compressed for a client that accepts gzip, with a Vary header", async () => {
  const { send } = testApp();
  const plain = await send("GET /openapi.json");
  const zipped = await send("GET /openapi.json", { headers: { "accept-encoding": "br, gzip;q=0.5" } });
  const headersOf = ({ headers }: Response) =>
    ["content-encoding", "content-length", "vary"].map((name) => headers.get(name));
  const text = await plain.text();
  const length = String(new TextEncoder().encode(text).length);
  assertEquals(headersOf(plain), [null, length, "Accept-Encoding"]);
  assertEquals(headersOf(zipped), ["gzip", null, "Accept-Encoding"]);
  const bytes = await zipped.bytes();
  assertEquals([await unzip(bytes), bytes.length < text.length / 5], [text, true]);
});

Deno.test("a large problem is compressed too", async () => {
  const { send } = testApp();
  const body = {
    prompt: "x",
    ...Object.fromEntries(Array.from({ length: 100 }, (_, key) => [`unknown_${key}`, 1])),
  };
  const response = await send("POST /v1/runs", { body, headers: { "accept-encoding": "gzip" } });
  assertEquals([response.status, response.headers.get("content-encoding")], [400, "gzip"]);
  assertEquals(JSON.parse(await unzip(await response.bytes())).error.details.length, 100);
});

Deno.test("a small response and a stream are never compressed", async () => {
  const { send } = testApp();
  const headers = { "accept-encoding": "gzip" };
  for (const accept of ["application/json", "text/plain", "text/event-stream"]) {
    const response = await send("POST /v1/runs", {
      body: { prompt: "answer" },
      headers: { ...headers, accept },
    });
    assertEquals(
      [response.headers.get("content-encoding"), response.headers.get("vary")],
      [null, null],
      accept,
    );
    await response.body?.cancel();
  }
  const prompt = `answer ${"long ".repeat(1000)}`;
  const accept = "text/event-stream";
  const stream = await send("POST /v1/runs", { body: { prompt }, headers: { ...headers, accept } });
  assertEquals(stream.headers.get("content-encoding"), null);
  await stream.body?.cancel();
});

for (
  const [header, accepted] of [
    [null, false],
    ["", false],
    ["gzip", true],
    ["GZIP ; q=0.1", true],
    ["br,gzip;q=0", false],
    ["gzip;q=0, *", false],
    ["*", true],
    ["*;q=0", false],
    ["br, deflate", false],
    ["identity", false],
  ] as const
) {
  Deno.test(`acceptsEncoding() returns ${accepted} for gzip and ${JSON.stringify(header)}`, () => {
    assertEquals(acceptsEncoding(header, "gzip"), accepted);
  });
}
