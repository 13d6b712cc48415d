import { setImmediate } from "node:timers";
import { assert, assertEquals, assertMatch, assertRejects } from "../../assert.ts";
import type { RunHandle } from "../../../src/runs/types.ts";
import type { ConnectionInfo } from "../../../src/server/context.ts";
import { type App, type AppOptions, createApp } from "../../../src/server/app.ts";

import { CONNECTION_TIMEOUTS } from "../../../src/server/net/connection_timeouts.ts";
import { serve, type ServeOptions } from "../../../src/server/net/listen.ts";
import { type SystemClock, systemClock } from "../../../src/process/system_clock.ts";
import { FakeClock } from "../../../src/sdk/testing/clocks.ts";
import { ANONYMOUS } from "../../../src/server/middleware/require_key.ts";
import { type TestRuntime, testRuntime } from "../../support/http.ts";

interface Running extends TestRuntime {
  url: string;
  port: number;
  /** Stops the server and resolves when it has stopped. */
  stop(): Promise<void>;
}

type Options = Partial<Omit<ServeOptions, "app">> & {
  app?: App;
  /** Options of the app, unless there is one. */
  api?: Partial<AppOptions>;
  /** Clock of the runs; default a fake one. */
  run_clock?: SystemClock;
};

async function start({ api, run_clock, ...options }: Options = {}): Promise<Running> {
  const test = testRuntime(run_clock);
  const app = options.app ?? createApp({ runtime: test.runtime, authenticate: null, ...api });
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
    ...test,
    url,
    port,
    stop() {
      stopping.abort();
      return stopped;
    },
  };
}

/** Resolves to the first run that a server has started, once it exists. */
async function firstRun({ runtime, created }: TestRuntime): Promise<RunHandle> {
  for (;;) {
    const [run] = created.length > 0 ? (await runtime.runs.list(ANONYMOUS, {})).data : [];
    if (run) return await runtime.runs.handle(ANONYMOUS, run.id);
    await immediate();
  }
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

const get = (path: string) => `GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`;

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
  const server = await start();
  const { url, stop } = server;
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
  const ended = firstRun(server).then((run) => run.settled("end"));
  client.abort();
  assertEquals((await ended).status, "cancelled");
  await stop();
});

Deno.test("serve() cancels a run when the waiting client disconnects", async () => {
  const server = await start();
  const { url, stop } = server;
  const client = new AbortController();
  const answer = fetch(`${url}/v1/runs`, {
    method: "POST",
    body: JSON.stringify({ prompt: "hang", on_disconnect: "cancel" }),
    headers: { "content-type": "application/json" },
    signal: client.signal,
  });
  const run = await firstRun(server);
  client.abort();
  assertEquals([await answer.catch(() => "left"), (await run.settled("end")).status], [
    "left",
    "cancelled",
  ]);
  await stop();
});

Deno.test("serve() refuses a request without Host when hosts is any", async () => {
  const { port, stop } = await start({ api: { hosts: "any" } });
  const answer = await raw(port, "GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n");
  assertMatch(answer, /^HTTP\/1\.1 400 [^]*"code":"request_invalid"/);
  await stop();
});

for (const behind_proxy of [false, true]) {
  Deno.test(`serve() reads no second request out of an ambiguous one, behind_proxy: ${behind_proxy}`, async () => {
    const { port, stop } = await start({ api: { hosts: "any" }, behind_proxy });
    const both = "POST /v1/runs HTTP/1.1\r\nhost: a\r\n";
    const requests = [
      `${both}content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
      `${both}transfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n`,
      `GET /healthz HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n`,
    ];
    for (const request of requests) {
      using connection = await Deno.connect({ hostname: "127.0.0.1", port });
      await connection.write(new TextEncoder().encode(request + get("/healthz")));
      const answer = await new Response(connection.readable).text(); // until the server closes
      assertMatch(answer, /^HTTP\/1\.1 4\d\d /);
      assertEquals(answer.match(/HTTP\/1\.1/g)?.length, 1, answer);
    }
    await stop();
  });
}

Deno.test("serve() refuses a request without Host and one for a foreign host", async () => {
  const { port, stop } = await start();
  assertMatch(await raw(port, "GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n"), /^HTTP\/1\.1 400 /);
  const foreign = "GET /healthz HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n";
  assertMatch(await raw(port, foreign), /^HTTP\/1\.1 403 [^]*"code":"forbidden"/);
  await stop();
});

Deno.test("serve() answers 408 when a body does not arrive", async () => {
  const { port, stop } = await start({ api: { body_deadline_ms: 50 } });
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
    const { port, stop } = await start({ api: { body_deadline_ms: 50 } });
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

/** Advances the clock until the promise settles. */
async function advanceUntil<T>(clock: FakeClock, promise: Promise<T>): Promise<T> {
  let settled = false;
  const result = promise.finally(() => settled = true);
  result.catch(() => {});
  while (!settled) {
    await clock.advance(100);
    await immediate();
  }
  return await result;
}

Deno.test("serve() closes a connection whose header is incomplete, even if bytes keep arriving", async () => {
  const clock = new FakeClock();
  const { port, url, stop } = await start({ clock, connections: { idle_ms: Infinity } });
  let gone = false;
  const answer = rawToEnd(port, "POST /v1/runs HTTP/1.1\r\n", async (connection) => {
    while (!gone) {
      await connection.write(new TextEncoder().encode("a"));
      await (await fetch(`${url}/healthz`)).body?.cancel(); // other clients are answered
    }
  });
  assertEquals(await advanceUntil(clock, answer).finally(() => gone = true).catch(() => ""), "");
  await stop();
});

Deno.test("serve() answers others while 300 headers are incomplete, and closes all of them at the deadline", async () => {
  const clock = new FakeClock();
  const { port, url, stop } = await start({ clock });
  const half = new TextEncoder().encode("GET /healthz HTTP/1.1\r\nHost: loc");
  const connections = await Promise.all(
    Array.from({ length: 300 }, async () => {
      const connection = await Deno.connect({ hostname: "127.0.0.1", port });
      await connection.write(half);
      return connection;
    }),
  );
  assertEquals(await (await fetch(`${url}/healthz`)).json(), { status: "ok" });
  const buffer = new Uint8Array(1);
  const reads = connections.map((connection) => connection.read(buffer).catch(() => null)); // null: closed
  let closed = 0;
  reads.forEach((read) => read.then(() => closed++));
  await clock.advance(CONNECTION_TIMEOUTS.header_ms / 2);
  for (let turns = 0; turns < 5; turns++) await immediate();
  assertEquals(closed, 0);
  const all = await advanceUntil(clock, Promise.all(reads));
  assertEquals(all.filter((read) => read !== null), []);
  for (const connection of connections) connection.close();
  await stop();
});

Deno.test("serve() closes an idle connection, also one that never sent a byte", async () => {
  const clock = new FakeClock();
  const { port, stop } = await start({ clock });
  assertEquals(await advanceUntil(clock, rawToEnd(port, "")), "");
  using connection = await Deno.connect({ hostname: "127.0.0.1", port });
  const get = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
  await connection.write(new TextEncoder().encode(get + get));
  let answers = "";
  const buffer = new Uint8Array(16 * 1024);
  while (answers.split("HTTP/1.1 200 ").length < 3) { // both are answered before it is idle
    const length = await connection.read(buffer);
    answers += new TextDecoder().decode(buffer.subarray(0, length ?? 0));
  }
  assertEquals(await advanceUntil(clock, connection.read(buffer)), null);
  await stop();
});

Deno.test("serve() does not close a connection during a request", async () => {
  const clock = new FakeClock();
  const server = await start({ clock });
  const body = JSON.stringify({ prompt: "hang" });
  const answer = rawToEnd(
    server.port,
    `${POST}Connection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  const run = await firstRun(server);
  while (!await hasAsked(server, run)) await immediate();
  await clock.advance(10 * CONNECTION_TIMEOUTS.idle_ms);
  await server.answerHanging();
  assertMatch(await answer, /^HTTP\/1\.1 200 [^]*"completed"/);
  await server.stop();
});

/** Returns whether a run has called its model. */
async function hasAsked({ runtime }: TestRuntime, { id }: RunHandle): Promise<boolean> {
  const entries = await runtime.runs.events(ANONYMOUS, id, {});
  return entries.some(({ event }) => event === "provider:request");
}

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
  const { url, port, stop } = await start({
    api: { body_deadline_ms: 50 },
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

Deno.test("serve() delivers a response before it stops, however late its bytes are forwarded", async () => {
  for (let rounds = 0; rounds < 8; rounds++) {
    const clock = new FakeClock();
    const answered = Promise.withResolvers<void>();
    const app: App = {
      fetch() {
        answered.resolve();
        return Promise.resolve(new Response("here"));
      },
      drain: () => Promise.resolve(),
    };
    const { port, stop } = await start({ app, clock });
    const answer = raw(port, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    await answered.promise;
    const stopped = stop();
    for (let turns = 0; turns < rounds; turns++) await immediate();
    await clock.advance(1_000); // as when other work takes a second
    await Promise.all([stopped, answer.then((text) => assertMatch(text, /\r\n\r\nhere$/))]);
  }
});

Deno.test("serve() ends streams and answers waiting requests when it stops", async () => {
  const server = await start({ run_clock: systemClock() });
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify({ prompt: "hang" });
  const stream = await fetch(`${server.url}/v1/runs`, {
    method: "POST",
    body,
    headers: { ...headers, accept: "text/event-stream" },
  });
  const waiting = fetch(`${server.url}/v1/runs`, { method: "POST", body, headers });
  while (server.created.length < 2 || !await hasAsked(server, await firstRun(server))) await immediate();
  const text = stream.text();
  await server.stop();
  assertMatch(await text, /\nevent: run:end\ndata: .*"status":"cancelled".*\n\n$/);
  const answer = await waiting;
  assertEquals([answer.status, (await answer.json()).status], [200, "cancelled"]);
});

for (const behind_proxy of [false, true]) {
  Deno.test(`serve() answers 503 and closes while it hands over its streams, behind_proxy: ${behind_proxy}`, async () => {
    const server = await start({ run_clock: systemClock(), behind_proxy });
    const headers = { "content-type": "application/json", accept: "text/event-stream" };
    const init = { method: "POST", headers, body: JSON.stringify({ prompt: "hang" }) };
    const stream = await fetch(`${server.url}/v1/runs`, init);
    while (!await hasAsked(server, await firstRun(server))) await immediate();
    const stopped = server.stop();
    const post =
      'POST /v1/runs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 14\r\n\r\n{"prompt":"x"}';
    const answers = [await raw(server.port, post), await raw(server.port, get("/readyz"))];
    for (const answer of answers) {
      assertMatch(answer, /^HTTP\/1\.1 503 /);
      assertMatch(answer, /\r\nconnection: close\r\n/i);
      assertMatch(answer, /draining/);
    }
    assertMatch(await stream.text(), /\nevent: run:end\n/);
    await stopped;
    await assertRejects(() => raw(server.port, get("/readyz")), Deno.errors.ConnectionRefused);
  });
}

Deno.test("serve() reports to a response that its client does not read", async () => {
  let info: ConnectionInfo | undefined;
  const app: App = {
    fetch(_, given) {
      info = given;
      const pull = (to: ReadableStreamDefaultController<Uint8Array>) => to.enqueue(new Uint8Array(64 * 1024));
      return Promise.resolve(new Response(new ReadableStream<Uint8Array>({ pull })));
    },
    drain: () => Promise.resolve(),
  };
  const { port, stop } = await start({ app, deadline_ms: 50 });
  {
    using connection = await Deno.connect({ hostname: "127.0.0.1", port });
    await connection.write(new TextEncoder().encode(get("/")));
    let last: unknown;
    for (let same = 0; same < 100; last = info?.forwarding) {
      await immediate();
      same = info?.forwarding && info.forwarding === last ? same + 1 : 0;
    }
  }
  await stop();
});

Deno.test("serve() resolves at the deadline even with open connections", async () => {
  const test = testRuntime();
  const graces: number[] = [];
  const drain = (grace_ms: number) => new Promise<void>(() => void graces.push(grace_ms));
  const app = createApp({ runtime: { ...test.runtime, drain }, authenticate: null });
  const { url, stop } = await start({ app, deadline_ms: 50 });
  const answer = fetch(`${url}/v1/runs`, {
    method: "POST",
    body: JSON.stringify({ prompt: "hang" }),
    headers: { "content-type": "application/json" },
  });
  const run = await firstRun(test);
  while (!await hasAsked(test, run)) await immediate();
  await stop();
  assertEquals(graces, [3000]);
  await test.answerHanging(); // a pending response is still sent
  assertEquals((await (await answer).json()).status, "completed");
});

Deno.test("serve() rejects when the address is in use", async () => {
  const { port, stop } = await start();
  let failed = false;
  await start({ port }).catch(() => failed = true);
  assert(failed);
  await stop();
});
