import { setImmediate } from "node:timers";
import { assert, assertEquals, assertMatch } from "../../assert.ts";
import type { App } from "../../../src/server/app.ts";
import { createApp } from "../../../src/server/app.ts";
import { serve, type ServeOptions } from "../../../src/server/net/listen.ts";
import { FakeRuntime } from "../fake_runtime.ts";

interface Running {
  url: string;
  port: number;
  runtime: FakeRuntime;
  /** Stops the server and resolves when it has stopped. */
  stop(): Promise<void>;
}

async function start(options: Partial<ServeOptions> & { app?: App } = {}): Promise<Running> {
  const runtime = new FakeRuntime();
  const app = options.app ?? createApp({ runtime, authenticate: null });
  const stopping = new AbortController();
  const listening = Promise.withResolvers<{ url: string; port: number }>();
  const stopped = serve({
    host: "127.0.0.1",
    port: 0,
    signal: stopping.signal,
    onListen: listening.resolve,
    ...options,
    app,
  });
  stopped.catch(listening.reject);
  const { url, port } = await listening.promise;
  return {
    url,
    port,
    runtime,
    stop() {
      stopping.abort();
      return stopped;
    },
  };
}

/** Sends bytes over a new connection; resolves to the response even if the connection stays open. */
async function raw(port: number, text: string): Promise<string> {
  using connection = await Deno.connect({ hostname: "127.0.0.1", port });
  await connection.write(new TextEncoder().encode(text));
  const buffer = new Uint8Array(16 * 1024);
  let answer = "";
  for (let whole = false; !whole;) {
    const length = await connection.read(buffer);
    if (length === null) break;
    answer += new TextDecoder().decode(buffer.subarray(0, length));
    const [head = "", body] = answer.split("\r\n\r\n");
    const declared = head.split("\r\n").find((line) => line.toLowerCase().startsWith("content-length: "));
    whole = body !== undefined && body.length >= Number(declared?.slice("content-length: ".length) ?? 0);
  }
  return answer;
}

function immediate(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}

Deno.test("serve() answers over a socket, reports its URL and stops", async () => {
  const { url, stop } = await start();
  assertMatch(url, /^http:\/\/127\.0\.0\.1:\d+$/);
  const response = await fetch(`${url}/v1/runs`, {
    method: "POST",
    body: JSON.stringify({ prompt: "answer 42" }),
    headers: { "content-type": "application/json" },
  });
  assertEquals((await response.json()).output_text, "42");
  await stop();
});

Deno.test("serve() streams the first event of a running run, and cancels when the client disconnects", async () => {
  const { url, runtime, stop } = await start();
  const client = new AbortController();
  const response = await fetch(`${url}/v1/runs`, {
    method: "POST",
    body: JSON.stringify({ prompt: "hang", on_disconnect: "cancel" }),
    headers: { "content-type": "application/json", accept: "text/event-stream" },
    signal: client.signal,
  });
  let text = "";
  for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    if (text.includes("run:start")) break;
  }
  const ended = runtime.runs.handle({ name: "", namespace: "local", origin: "caller" }, "run_1")
    .then((handle) => handle.settled("end"));
  client.abort();
  assertEquals((await ended).status, "cancelled");
  await stop();
});

Deno.test("serve() cancels a run when the waiting client disconnects", async () => {
  const { url, runtime, stop } = await start();
  const client = new AbortController();
  const answer = fetch(`${url}/v1/runs`, {
    method: "POST",
    body: JSON.stringify({ prompt: "hang", on_disconnect: "cancel" }),
    headers: { "content-type": "application/json" },
    signal: client.signal,
  });
  while (runtime.runs.created.length === 0) await immediate();
  const handle = await runtime.runs.handle({ name: "", namespace: "local", origin: "caller" }, "run_1");
  client.abort();
  assertEquals([await answer.catch(() => "left"), (await handle.settled("end")).status], [
    "left",
    "cancelled",
  ]);
  await stop();
});

Deno.test("serve() refuses a request without Host when hosts is any", async () => {
  const app = createApp({ runtime: new FakeRuntime(), authenticate: null, hosts: "any" });
  const { port, stop } = await start({ app });
  const answer = await raw(port, "GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n");
  assertMatch(answer, /^HTTP\/1\.1 400 [^]*"code":"request_invalid"/);
  await stop();
});

Deno.test("serve() refuses a request without Host and one for a foreign host", async () => {
  const { port, stop } = await start();
  assertMatch(await raw(port, "GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n"), /^HTTP\/1\.1 400 /);
  const foreign = "GET /healthz HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n";
  assertMatch(await raw(port, foreign), /^HTTP\/1\.1 403 [^]*"code":"forbidden"/);
  await stop();
});

Deno.test("serve() answers 408 when a body does not arrive", async () => {
  const runtime = new FakeRuntime();
  const app = createApp({ runtime, authenticate: null, body_deadline_ms: 50 });
  const { port, stop } = await start({ app });
  for (const head of ["Content-Length: 100", "Content-Length: 50000", "Transfer-Encoding: chunked"]) {
    const request =
      `POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n${head}\r\n\r\n`;
    assertMatch(await raw(port, request), /^HTTP\/1\.1 408 [^]*"code":"request_timeout"/);
  }
  await stop();
});

Deno.test("serve() refuses a large body without reading all of it, declared or chunked", async () => {
  const { port, stop } = await start();
  const head = "POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
  assertMatch(await raw(port, `${head}Content-Length: 1000000000\r\n\r\n`), /^HTTP\/1\.1 413 /);
  const chunk = `10000\r\n${"x".repeat(0x10000)}\r\n`;
  assertMatch(
    await raw(port, `${head}Transfer-Encoding: chunked\r\n\r\n${chunk}1\r\nx\r\n`),
    /^HTTP\/1\.1 413 /,
  );
  await stop();
});

/** Sends bytes; resolves to all received bytes when the server closes the connection. */
async function rawToEnd(
  port: number,
  text: string,
  more?: (connection: Deno.Conn) => Promise<void>,
): Promise<string> {
  using connection = await Deno.connect({ hostname: "127.0.0.1", port });
  const sending = connection.write(new TextEncoder().encode(text)).then(() => more?.(connection)).catch(
    () => {},
  );
  let answer = "";
  const decoder = new TextDecoder();
  const buffer = new Uint8Array(16 * 1024);
  for (let length; (length = await connection.read(buffer)) !== null;) {
    answer += decoder.decode(buffer.subarray(0, length), { stream: true });
  }
  await sending;
  return answer;
}

const POST = "POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";

for (const head of ["Content-Length: 100", "Content-Length: 50000", "Transfer-Encoding: chunked"]) {
  Deno.test(`serve() closes the connection of a client whose body does not arrive, with ${head}`, async () => {
    const app = createApp({ runtime: new FakeRuntime(), authenticate: null, body_deadline_ms: 50 });
    const { port, stop } = await start({ app });
    const answer = await rawToEnd(port, `${POST}${head}\r\n\r\n`);
    assertMatch(answer, /^HTTP\/1\.1 408 [^]*\r\nconnection: close\r\n[^]*"code":"request_timeout"[^]*}\n$/i);
    await stop();
  });
}

for (const head of ["Content-Length: 1000000000", "Transfer-Encoding: chunked"]) {
  Deno.test(`serve() closes the connection of a client that keeps sending a body above the limit, with ${head}`, async () => {
    const { port, stop } = await start({ connections: { linger_ms: 200 } });
    const chunk = new TextEncoder().encode(`10000\r\n${"x".repeat(0x10000)}\r\n`);
    const answer = await rawToEnd(port, `${POST}${head}\r\n\r\n`, async (connection) => {
      for (let sent = 0; sent < 200; sent++) await connection.write(chunk); // until the connection is closed
    });
    assertMatch(answer, /^HTTP\/1\.1 413 [^]*"code":"body_too_large"[^]*}\n$/);
    await stop();
  });
}

Deno.test("serve() closes a connection whose header is incomplete, even if bytes keep arriving", async () => {
  const { port, url, stop } = await start({ connections: { header_ms: 200 } });
  let gone = false;
  const answer = rawToEnd(port, "POST /v1/runs HTTP/1.1\r\n", async (connection) => {
    while (!gone) {
      await connection.write(new TextEncoder().encode("a"));
      await (await fetch(`${url}/healthz`)).body?.cancel(); // other clients are answered
    }
  });
  assertEquals(await answer.finally(() => gone = true).catch(() => ""), "");
  await stop();
});

Deno.test("serve() closes an idle connection, also one that never sent a byte", async () => {
  const { port, stop } = await start({ connections: { idle_ms: 400 } });
  assertEquals(await rawToEnd(port, ""), "");
  const get = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
  const answers = await rawToEnd(port, get + get); // both are answered before it is idle
  assertEquals(answers.match(/HTTP\/1\.1 200 /g)?.length, 2);
  await stop();
});

Deno.test("serve() does not close a connection during a request", async () => {
  const { port, runtime, stop } = await start({ connections: { idle_ms: 300, header_ms: 300 } });
  const body = JSON.stringify({ prompt: "hang" });
  const answer = rawToEnd(port, `${POST}Connection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
  while (runtime.runs.created.length === 0) await immediate();
  for (const start = performance.now(); performance.now() - start < 450;) await immediate();
  runtime.runs.end("run_1", { status: "completed" });
  assertMatch(await answer, /^HTTP\/1\.1 200 [^]*"completed"/);
  await stop();
});

Deno.test("serve() refuses requests that did not come through its proxy", async () => {
  const ports: number[] = [];
  const listen = Deno.serve;
  Object.assign(Deno, {
    serve: (options: Deno.ServeTcpOptions, handler: Deno.ServeHandler<Deno.NetAddr>) => {
      const server = listen(options, handler);
      ports.push(server.addr.port);
      return server;
    },
  });
  const { stop } = await start().finally(() => Object.assign(Deno, { serve: listen }));
  const response = await fetch(`http://127.0.0.1:${ports[0]}/healthz`);
  assertEquals([ports.length, response.status, await response.text()], [1, 403, ""]);
  await stop();
});

Deno.test("serve() with behind_proxy listens directly, keeps the limits of bodies and stops", async () => {
  const listen = Deno.listen;
  Object.assign(Deno, { listen: () => assert(false, "a second listener") });
  const app = createApp({ runtime: new FakeRuntime(), authenticate: null, body_deadline_ms: 50 });
  const { url, port, stop } = await start({
    app,
    behind_proxy: true,
    connections: { idle_ms: 1, header_ms: 1 },
  })
    .finally(() => Object.assign(Deno, { listen }));
  assertEquals(await (await fetch(`${url}/healthz`)).json(), { status: "ok" });
  assertMatch(await raw(port, `${POST}Content-Length: 100\r\n\r\n`), /^HTTP\/1\.1 408 /);
  assertMatch(await raw(port, `${POST}Content-Length: 1000000000\r\n\r\n`), /^HTTP\/1\.1 413 /);
  await stop();
});

Deno.test("serve() delivers every response that the app returned before it stops", async () => {
  // the stop should hit each stage of a response: returned, written, forwarded
  for (let rounds = 0; rounds < 32; rounds++) {
    const answered = Promise.withResolvers<void>();
    const app: App = {
      async fetch() {
        await Promise.resolve();
        answered.resolve();
        return new Response("here");
      },
      drain: () => Promise.resolve(),
    };
    const { port, stop } = await start({ app });
    const answer = raw(port, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    await answered.promise;
    for (let turns = 0; turns < rounds % 8; turns++) await immediate();
    await Promise.all([stop(), answer.then((text) => assertMatch(text, /\r\n\r\nhere$/))]);
  }
});

Deno.test("serve() ends streams with a retry hint and answers waiting requests when it stops", async () => {
  const { url, runtime, stop } = await start();
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify({ prompt: "hang" });
  const stream = await fetch(`${url}/v1/runs`, {
    method: "POST",
    body,
    headers: { ...headers, accept: "text/event-stream" },
  });
  const waiting = fetch(`${url}/v1/runs`, { method: "POST", body, headers });
  const { promise: created, resolve } = Promise.withResolvers<void>();
  const create = runtime.runs.create.bind(runtime.runs);
  runtime.runs.create = (...parameters) => {
    queueMicrotask(resolve);
    return create(...parameters);
  };
  await created;
  const text = stream.text();
  await stop();
  assertMatch(await text, /retry: 1000\n\n$/);
  const answer = await waiting;
  assertEquals(answer.status, 202);
  await answer.body?.cancel();
  assertEquals(runtime.drained, [3000]);
});

Deno.test("serve() resolves at the deadline even with open connections", async () => {
  const runtime = new FakeRuntime();
  runtime.drain = () => new Promise(() => {});
  const { url, stop } = await start({ app: createApp({ runtime, authenticate: null }), deadline_ms: 50 });
  const answer = fetch(`${url}/v1/runs`, {
    method: "POST",
    body: JSON.stringify({ prompt: "hang" }),
    headers: { "content-type": "application/json" },
  });
  while (runtime.runs.created.length === 0) await fetch(`${url}/healthz`).then((response) => response.text());
  await stop();
  runtime.runs.end("run_1", { status: "completed" }); // a pending response is still sent
  assertEquals((await (await answer).json()).status, "completed");
});

Deno.test("serve() rejects when the address is in use", async () => {
  const { port, stop } = await start();
  let failed = false;
  await start({ port }).catch(() => failed = true);
  assert(failed);
  await stop();
});
