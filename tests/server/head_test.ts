import { assert, assertEquals, assertThrows } from "../assert.ts";
import { BadRequest, endOfHead, MAX_HEAD_BYTES, readHead } from "../../src/server/socket/head.ts";

function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/** Reads a header that is given as its lines. */
function read(...lines: string[]): ReturnType<typeof readHead> {
  const bytes = bytesOf([...lines, "", ""].join("\r\n"));
  assertEquals(endOfHead(bytes, 0), bytes.length);
  return readHead(bytes);
}

Deno.test("readHead() tells method, target, fields and framing", () => {
  const head = read(
    "POST /v1/runs?prompt=grüße HTTP/1.1",
    "Host: a",
    "CONTENT-LENGTH:  12 ",
    "x-y: 1",
    "X-Y:2",
  );
  const { method, target, headers, framing, minor, keep, expects_continue } = head;
  assertEquals([method, target, framing, minor, keep, expects_continue], [
    "POST",
    "/v1/runs?prompt=grüße",
    12,
    1,
    true,
    false,
  ]);
  assertEquals(["host", "content-length", "x-y", "none"].map((name) => headers.get(name)), [
    "a",
    "12",
    "1, 2",
    null,
  ]);
});

const KEPT: [string[], boolean][] = [
  [["GET / HTTP/1.1"], true],
  [["GET / HTTP/1.1", "Connection: x, Close"], false],
  [["GET / HTTP/1.0"], false],
  [["GET / HTTP/1.0", "Connection: Keep-Alive"], true],
];
for (const [lines, keep] of KEPT) {
  Deno.test(`readHead() ${keep ? "keeps" : "ends"} the connection of ${lines.join(", ")}`, () => {
    assertEquals(read(...lines).keep, keep);
  });
}

const TARGETS: [string, string][] = [
  ["/", "/"],
  ["/a#b", "/a"],
  ["http://localhost/a?b", "/a?b"],
  ["HTTPS://localhost", "/"],
  ["http://localhost?b", "/?b"],
];
for (const [target, path] of TARGETS) {
  Deno.test(`readHead() reads the target ${target} as ${path}`, () => {
    assertEquals(read(`GET ${target} HTTP/1.1`).target, path);
  });
}

Deno.test("readHead() tells chunks, and who waits before it sends them", () => {
  const { framing, expects_continue } = read(
    "POST / HTTP/1.1",
    "Transfer-Encoding: Chunked",
    "Expect: 100-Continue",
  );
  assertEquals([framing, expects_continue], ["chunked", true]);
});

const REFUSED: Record<string, string[]> = {
  "a length and chunks": ["POST / HTTP/1.1", "Content-Length: 5", "Transfer-Encoding: chunked"],
  "two lengths": ["POST / HTTP/1.1", "Content-Length: 5", "Content-Length: 6"],
  "a list of lengths": ["POST / HTTP/1.1", "Content-Length: 5, 5"],
  "a negative length": ["POST / HTTP/1.1", "Content-Length: -1"],
  "a signed length": ["POST / HTTP/1.1", "Content-Length: +1"],
  "a length in hexadecimal": ["POST / HTTP/1.1", "Content-Length: 0x1"],
  "an empty length": ["POST / HTTP/1.1", "Content-Length:"],
  "a coding that is not chunked": ["POST / HTTP/1.1", "Transfer-Encoding: gzip"],
  "chunks within another coding": ["POST / HTTP/1.1", "Transfer-Encoding: gzip, chunked"],
  "chunks twice": ["POST / HTTP/1.1", "Transfer-Encoding: chunked", "Transfer-Encoding: chunked"],
  "chunks in HTTP/1.0": ["POST / HTTP/1.0", "Transfer-Encoding: chunked"],
  "two hosts": ["GET / HTTP/1.1", "Host: a", "Host: a"],
  "a folded line": ["GET / HTTP/1.1", "X: a", " b"],
  "a blank behind a name": ["GET / HTTP/1.1", "X : a"],
  "a field without a name": ["GET / HTTP/1.1", ": a"],
  "a field without a colon": ["GET / HTTP/1.1", "X"],
  "a control character": ["GET / HTTP/1.1", "X: a\u0001"],
  "a null": ["GET / HTTP/1.1", "X: a\0"],
  "a carriage return inside a line": ["GET / HTTP/1.1", "X: a\rY: b"],
  "a blank in the target": ["GET /a b HTTP/1.1"],
  "no target": ["GET HTTP/1.1"],
  "an authority as target": ["CONNECT localhost:80 HTTP/1.1"],
  "a star as target": ["OPTIONS * HTTP/1.1"],
  "another version": ["GET / HTTP/2.0"],
  "a method that is no token": ["G(T / HTTP/1.1"],
  "no request line": [""],
  "too many fields": ["GET / HTTP/1.1", ...Array.from({ length: 129 }, (_, index) => `X${index}: a`)],
};
for (const [what, lines] of Object.entries(REFUSED)) {
  Deno.test(`readHead() refuses ${what} (T41)`, () => {
    assertThrows(() => readHead(bytesOf([...lines, "", ""].join("\r\n"))), BadRequest);
  });
}

Deno.test("endOfHead() finds the end wherever it was cut before", () => {
  const bytes = bytesOf("GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\n");
  const end = bytes.indexOf(10, bytes.indexOf(10, 16) + 1) + 1;
  for (let cut = 0; cut < end; cut++) {
    assertEquals(endOfHead(bytes.subarray(0, cut), 0), -1);
    assertEquals(endOfHead(bytes, cut), end);
  }
});

Deno.test("endOfHead() refuses a line without a carriage return, and a header without an end (T10, T41)", () => {
  assertThrows(() => endOfHead(bytesOf("GET / HTTP/1.1\nHost: a\n\n"), 0), BadRequest);
  assertThrows(() => endOfHead(bytesOf("\n"), 0), BadRequest);
  const line = bytesOf(`GET / HTTP/1.1\r\nX: ${"a".repeat(MAX_HEAD_BYTES)}`);
  assert(endOfHead(line.subarray(0, MAX_HEAD_BYTES - 1), 0) === -1);
  assertThrows(() => endOfHead(line, 0), BadRequest);
});
