import fc from "fast-check";
import { bodyEnds, ByteReader, HttpError, readBody, readHead } from "../../../src/sdk/http/http1_client.ts";
import { assertEquals, assertRejects } from "../../assert.ts";

/** Returns a reader whose bytes come in pieces of these sizes, over and over. */
function readerOf(text: string, sizes: readonly number[] = [1 << 16]): ByteReader {
  const bytes = new TextEncoder().encode(text);
  let at = 0, turn = 0;
  return new ByteReader((buffer) => {
    if (at >= bytes.length) return Promise.resolve(null);
    const size = Math.min(sizes[turn++ % sizes.length]!, buffer.length, bytes.length - at);
    buffer.set(bytes.subarray(at, at += size));
    return Promise.resolve(size);
  });
}

async function answerOf(text: string, sizes?: readonly number[]) {
  const reader = readerOf(text, sizes);
  const head = await readHead(reader);
  let body = "";
  for await (const chunk of readBody(reader, head)) body += new TextDecoder().decode(chunk);
  return {
    status: head.status,
    body,
    keep_alive: head.keep_alive,
    ends: bodyEnds(head),
    headers: head.headers,
  };
}

const CHUNKED =
  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n6\r\n world\r\n0\r\nTrailer: 1\r\n\r\n";

Deno.test("readBody() reads by chunks, by length and to the end", async () => {
  const chunked = await answerOf(CHUNKED);
  assertEquals([chunked.body, chunked.keep_alive, chunked.ends], ["hello world", true, true]);
  const sized = await answerOf("HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nhello-next");
  assertEquals([sized.body, sized.ends], ["hello", true]);
  const open = await answerOf("HTTP/1.0 200 OK\r\n\r\nall of it");
  assertEquals([open.body, open.keep_alive, open.ends], ["all of it", false, false]);
  assertEquals((await answerOf("HTTP/1.1 204 No Content\r\n\r\n")).body, "");
});

Deno.test("readHead() skips interim answers, joins repeated headers, knows Connection: close", async () => {
  const { status, headers, keep_alive } = await answerOf(
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" +
      "HTTP/1.1 200 OK\nVary: a\r\nVARY:  b \r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
  );
  assertEquals([status, headers.get("vary"), keep_alive], [200, "a, b", false]);
});

const BROKEN: Readonly<Record<string, string>> = {
  "no HTTP": "SSH-2.0-OpenSSH\r\n\r\n",
  "HTTP/2": "HTTP/2 200\r\n\r\n",
  "a status of two digits": "HTTP/1.1 20 OK\r\n\r\n",
  "an end in the head": "HTTP/1.1 200 OK\r\nA: b\r\n",
  "a header without a colon": "HTTP/1.1 200 OK\r\nabc\r\n\r\n",
  "a folded header": "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n",
  "a space in a header's name": "HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\nhello",
  "two lengths": "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
  "length and chunks": "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
  "another transfer coding": "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
  "a negative length": "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
  "a chunk that is no number": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
  "a chunk that lies": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhello\r\n0\r\n\r\n",
  "a body that is cut": "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello",
  "interim answers for ever": "HTTP/1.1 100 Continue\r\n\r\n".repeat(20),
  "a switch of protocols": "HTTP/1.1 101 Switching\r\n\r\n",
  "a head without end": `HTTP/1.1 200 OK\r\n${"A: b\r\n".repeat(20_000)}\r\n`,
  "a line without end": `HTTP/1.1 200 OK\r\nA: ${"b".repeat(200_000)}\r\n\r\n`,
};

for (const [what, text] of Object.entries(BROKEN)) {
  Deno.test(`readHead() and readBody() refuse ${what}`, async () => {
    await assertRejects(() => answerOf(text), HttpError);
  });
}

Deno.test("readBody() gives the same however the bytes are cut", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1, maxLength: 6 }),
      async (sizes) => {
        assertEquals((await answerOf(CHUNKED, sizes)).body, "hello world");
      },
    ),
  );
});
