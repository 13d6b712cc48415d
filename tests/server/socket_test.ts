import fc from "fast-check";
import { assert, assertEquals, assertMatch } from "../assert.ts";
import type { Answer } from "../../src/server/answer.ts";
import { systemClock } from "../../src/server/clock.ts";
import type { IncomingRequest } from "../../src/server/request.ts";
import { CONNECTION_LIMITS, listen } from "../../src/server/socket/listener.ts";

type Answerer = (request: IncomingRequest) => Promise<Answer>;

/** Tells what came: method, path and body. */
async function echo(request: IncomingRequest): Promise<Answer> {
  const text = new TextDecoder().decode(await request.bytes());
  const { pathname, search } = new URL(request.url);
  return { status: 200, headers: {}, body: `${request.method} ${pathname}${search} ${text}` };
}

/** Opens a listener for one test. */
async function withListener(
  answer: Answerer,
  test: (port: number, stop: () => Promise<void>) => Promise<void>,
  limits: Partial<typeof CONNECTION_LIMITS> = {},
): Promise<void> {
  const listener = listen({ hostname: "127.0.0.1", port: 0 }, {
    answer,
    clock: systemClock,
    limits: { ...CONNECTION_LIMITS, ...limits },
  });
  try {
    await test(listener.addr.port, () => listener.stop());
  } finally {
    await listener.stop();
  }
}

/** Sends texts, each as a write of its own, and resolves to all that comes until the server ends the connection. */
async function exchange(port: number, ...texts: (string | Uint8Array)[]): Promise<string> {
  using connection = await Deno.connect({ hostname: "127.0.0.1", port });
  connection.setNoDelay();
  const sending = (async () => {
    for (const text of texts) {
      const bytes = typeof text === "string" ? new TextEncoder().encode(text) : text;
      for (let sent = 0; sent < bytes.length;) sent += await connection.write(bytes.subarray(sent));
    }
  })().catch(() => {}); // it was not waited for
  let answer = "";
  const decoder = new TextDecoder();
  const buffer = new Uint8Array(64 * 1024);
  for (let length; (length = await connection.read(buffer)) !== null;) {
    answer += decoder.decode(buffer.subarray(0, length), { stream: true });
  }
  await sending;
  return answer;
}

const LAST = "GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

/** Returns the bodies of answers that all have a length. */
function bodiesOf(text: string): string[] {
  const bodies: string[] = [];
  for (let rest = text; rest !== "";) {
    const end = rest.indexOf("\r\n\r\n") + 4;
    const length = Number(/^content-length: (\d+)$/m.exec(rest.slice(0, end))?.[1]);
    bodies.push(rest.slice(end, end + length));
    rest = rest.slice(end + length);
  }
  return bodies;
}

function post(path: string, body: string): string {
  return `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}

function chunked(path: string, chunks: readonly string[]): string {
  const parts = chunks.map((chunk) => `${chunk.length.toString(16)};x="y"\r\n${chunk}\r\n`);
  return `POST ${path} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${
    parts.join("")
  }0\r\nX-Sum: 1\r\n\r\n`;
}

Deno.test("listen() answers pipelined requests in their order, bodies by length and in chunks", async () => {
  await withListener(echo, async (port) => {
    const sent = `${post("/a", "one")}\r\n${chunked("/b", ["tw", "o"])}${post("/c", "")}${LAST}`;
    assertEquals(bodiesOf(await exchange(port, sent)), [
      "POST /a one",
      "POST /b two",
      "POST /c ",
      "GET /last ",
    ]);
  });
});

Deno.test("listen() reads the same requests however their bytes are cut", async () => {
  const text = fc.string({ unit: fc.constantFrom("a", "\r", "\n", "0", " "), maxLength: 9_000 });
  const request = fc.record({ body: text, chunks: fc.array(fc.nat(300), { maxLength: 5 }) });
  await withListener(echo, async (port) => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(request, { maxLength: 6 }),
        fc.array(fc.nat(6_000)),
        async (requests, cuts) => {
          const parts = requests.map(({ body, chunks }, index) => {
            if (chunks.length === 0) return post(`/${index}`, body);
            const sizes = chunks.map((size) => size + 1);
            const pieces: string[] = [];
            for (let at = 0, turn = 0; at < body.length; turn++) {
              const size = sizes[turn % sizes.length]!;
              pieces.push(body.slice(at, at += size));
            }
            return chunked(`/${index}`, pieces);
          });
          const bytes = new TextEncoder().encode(parts.join("") + LAST);
          const pieces: Uint8Array[] = [];
          let at = 0;
          for (const cut of cuts) pieces.push(bytes.subarray(at, at += cut));
          pieces.push(bytes.subarray(at));
          const expected = requests.map(({ body }, index) => `POST /${index} ${body}`);
          assertEquals(bodiesOf(await exchange(port, ...pieces)), [...expected, "GET /last "]);
        },
      ),
      { numRuns: 60 },
    );
  });
});

Deno.test("listen() reads a body of a megabyte and sends one", async () => {
  await withListener(echo, async (port) => {
    const body = "x".repeat(1_000_000);
    assertEquals(bodiesOf(await exchange(port, post("/a", body), LAST)), [`POST /a ${body}`, "GET /last "]);
  });
});

Deno.test("listen() asks for a body that waits to be asked for, once", async () => {
  await withListener(echo, async (port) => {
    const head =
      "POST /a HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\nConnection: close\r\n\r\n";
    using connection = await Deno.connect({ hostname: "127.0.0.1", port });
    await connection.write(new TextEncoder().encode(head));
    const buffer = new Uint8Array(1024);
    const length = await connection.read(buffer);
    assertEquals(new TextDecoder().decode(buffer.subarray(0, length ?? 0)), "HTTP/1.1 100 Continue\r\n\r\n");
    await connection.write(new TextEncoder().encode("hi"));
    const end = await connection.read(buffer);
    assertMatch(
      new TextDecoder().decode(buffer.subarray(0, end ?? 0)),
      /^HTTP\/1\.1 200 OK\r\n[^]*POST \/a hi$/,
    );
  });
});

Deno.test("listen() goes on behind a small body that nobody read, and ends behind a large or an unasked one", async () => {
  const refuse: Answerer = ({ method }) => Promise.resolve({ status: 401, headers: {}, body: method });
  await withListener(refuse, async (port) => {
    assertEquals(bodiesOf(await exchange(port, post("/a", "x".repeat(10_000)), LAST)), ["POST", "GET"]);
    const head = "POST /a HTTP/1.1\r\nHost: a\r\n";
    for (
      const more of [
        "Content-Length: 100000",
        "Transfer-Encoding: chunked",
        "Content-Length: 1\r\nExpect: 100-continue",
      ]
    ) {
      assertMatch(await exchange(port, `${head}${more}\r\n\r\n`), /^[^]*\r\nconnection: close\r\n\r\nPOST$/);
    }
  }, { linger_ms: 100 });
});

const BROKEN = {
  "a chunk without a size": "zz\r\n{}\r\n0\r\n\r\n",
  "a chunk longer than it says": "1\r\n{}\r\n0\r\n\r\n",
  "a negative chunk": "-1\r\n{}\r\n0\r\n\r\n",
  "a line without a carriage return": "2\n{}\r\n0\r\n\r\n",
  "an endless extension": `2;${"x".repeat(1000)}`,
  "endless trailers": `0\r\n${"x: y\r\n".repeat(100)}\r\n`,
};
for (const [what, chunks] of Object.entries(BROKEN)) {
  Deno.test(`listen() gives up a body with ${what}, and its connection (T41)`, async () => {
    const failed: Answerer = (request) =>
      request.bytes().then(
        () => ({ status: 200, headers: {}, body: "" }),
        ({ message }) => ({ status: 400, headers: {}, body: message }),
      );
    const head = "POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    await withListener(failed, async (port) => {
      const answer = await exchange(port, `${head}${chunks}${LAST}`);
      assertMatch(answer, /^HTTP\/1\.1 400 Bad Request\r\n[^]*connection: close\r\n\r\n[a-z][a-z ]+$/);
    }, { linger_ms: 100 });
  });
}

Deno.test("listen() answers what is no request with 400, and ends", async () => {
  await withListener(echo, async (port) => {
    const refused =
      /^HTTP\/1\.1 400 Bad Request\r\ncontent-length: 0\r\ndate: [^\r]+ GMT\r\nconnection: close\r\n\r\n$/;
    assertMatch(await exchange(port, "\x16\x03\x01hello\r\n\r\n"), refused);
    assertMatch(await exchange(port, `GET / HTTP/1.1\r\nX: ${"a".repeat(70_000)}`), refused);
  }, { linger_ms: 100 });
});

Deno.test("listen() answers a client that has said that nothing follows", async () => {
  await withListener(echo, async (port) => {
    using connection = await Deno.connect({ hostname: "127.0.0.1", port });
    await connection.write(new TextEncoder().encode(post("/a", "x")));
    await connection.closeWrite();
    const buffer = new Uint8Array(1024);
    const length = await connection.read(buffer);
    assertMatch(
      new TextDecoder().decode(buffer.subarray(0, length ?? 0)),
      /^HTTP\/1\.1 200 OK[^]*POST \/a x$/,
    );
    assertEquals(await connection.read(buffer), null);
  });
});

/** Answers a stream of two texts, the second one when it is told; says when it was left. */
function streaming(): { answer: Answerer; go: () => void; left: Promise<void> } {
  const more = Promise.withResolvers<void>();
  const left = Promise.withResolvers<void>();
  const encoder = new TextEncoder();
  const answer: Answerer = () => {
    let turn = 0;
    const body = new ReadableStream<Uint8Array>({
      async pull(controller) {
        if (turn++ === 0) return controller.enqueue(encoder.encode("one\n"));
        await more.promise;
        controller.enqueue(encoder.encode("two\n"));
        controller.close();
      },
      cancel: () => left.resolve(),
    }, { highWaterMark: 0 });
    return Promise.resolve({ status: 200, headers: {}, body });
  };
  return { answer, go: more.resolve, left: left.promise };
}

Deno.test("listen() streams in chunks, each when it is there; to HTTP/1.0 until the connection's end", async () => {
  for (const version of ["1.1", "1.0"]) {
    const { answer, go } = streaming();
    await withListener(answer, async (port) => {
      using connection = await Deno.connect({ hostname: "127.0.0.1", port });
      await connection.write(
        new TextEncoder().encode(`GET / HTTP/${version}\r\nHost: a\r\nConnection: close\r\n\r\n`),
      );
      const decoder = new TextDecoder();
      const buffer = new Uint8Array(1024);
      let text = "";
      for (let length; (length = await connection.read(buffer)) !== null;) {
        text += decoder.decode(buffer.subarray(0, length));
        if (text.includes("one")) go();
      }
      const body = text.slice(text.indexOf("\r\n\r\n") + 4);
      assertEquals(body, version === "1.1" ? "4\r\none\n\r\n4\r\ntwo\n\r\n0\r\n\r\n" : "one\ntwo\n");
      assertEquals(text.includes("transfer-encoding: chunked"), version === "1.1");
    });
  }
});

Deno.test("listen() ends a stream whose client leaves while nothing is sent (T26)", async () => {
  const { answer, left } = streaming();
  await withListener(answer, async (port) => {
    const connection = await Deno.connect({ hostname: "127.0.0.1", port });
    await connection.write(new TextEncoder().encode("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    await connection.read(new Uint8Array(1024));
    connection.close();
    await left;
  });
});

Deno.test("listen() ends a stream whose client leaves without having read it (T26, T27)", async () => {
  const left = Promise.withResolvers<void>();
  const chunk = new Uint8Array(1024 * 1024);
  let pulled = 0;
  const answer: Answerer = () =>
    Promise.resolve({
      status: 200,
      headers: {},
      body: new ReadableStream<Uint8Array>({
        pull: (controller) => {
          pulled++;
          controller.enqueue(chunk);
        },
        cancel: () => left.resolve(),
      }, { highWaterMark: 0 }),
    });
  await withListener(answer, async (port) => {
    const connection = await Deno.connect({ hostname: "127.0.0.1", port });
    await connection.write(new TextEncoder().encode("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    const buffer = new Uint8Array(1024);
    for (let read = 0; read < 1024 * 1024;) read += await connection.read(buffer) ?? Infinity;
    assert(pulled < 64); // the rest is not made before it is taken
    connection.close();
    await left;
  });
});

Deno.test("listen() breaks a connection off when the body of an answer fails", async () => {
  const answer: Answerer = () =>
    Promise.resolve({
      status: 200,
      headers: {},
      body: new ReadableStream<Uint8Array>({ pull: () => Promise.reject(new Error("no more")) }),
    });
  await withListener(answer, async (port) => {
    const text = await exchange(port, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assertMatch(text, /^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\n$/); // without a last chunk
  });
});

Deno.test("listen() sends neither body nor length to a HEAD, and no header that is not printable", async () => {
  await withListener((request) => {
    const forged: Record<string, string> = request.url.endsWith("/forge")
      ? { "x-y": "a\r\nSet-Cookie: b" }
      : {};
    return Promise.resolve({ status: 200, headers: forged, body: null });
  }, async (port) => {
    const head = await exchange(port, "HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assertMatch(head, /^HTTP\/1\.1 200 OK\r\ndate: [^\r]+\r\nconnection: close\r\n\r\n$/);
    assertEquals(await exchange(port, "GET /forge HTTP/1.1\r\nHost: a\r\n\r\n"), "");
  });
});

Deno.test("listen() stops when its requests are answered, each told that it was the last", async () => {
  const begun = Promise.withResolvers<void>();
  const go = Promise.withResolvers<void>();
  const answer: Answerer = async () => {
    begun.resolve();
    await go.promise;
    return { status: 200, headers: {}, body: "done" };
  };
  await withListener(answer, async (port, stop) => {
    const idle = exchange(port);
    const busy = exchange(port, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    await begun.promise;
    const stopped = stop();
    assertEquals(await idle, "");
    go.resolve();
    assertMatch(await busy, /\r\nconnection: close\r\n\r\ndone$/);
    await stopped;
  });
});
