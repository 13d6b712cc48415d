import { setImmediate } from "node:timers";
import { assert, assertEquals, assertMatch, assertRejects } from "../../assert.ts";
import type { RunHandle } from "../../../src/runs/types.ts";
import { type App, type AppOptions, createApp } from "../../../src/server/app.ts";

import { serve, type ServeOptions } from "../../../src/server/net/listen.ts";
import { type SystemClock, systemClock } from "../../../src/process/system_clock.ts";
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

Deno.test("serve() reads no second request out of an ambiguous one", async () => {
  const { port, stop } = await start({ api: { hosts: "any" } });
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

/** Returns whether a run has called its model. */
async function hasAsked({ runtime }: TestRuntime, { id }: RunHandle): Promise<boolean> {
  const entries = await runtime.runs.events(ANONYMOUS, id, {});
  return entries.some(({ event }) => event === "provider:request");
}

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

Deno.test("serve() answers 503 and closes while it hands over its streams", async () => {
  const server = await start({ run_clock: systemClock() });
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
