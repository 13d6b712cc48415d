import { assert, assertEquals, assertRejects } from "../../assert.ts";
import { readBody } from "../../../src/server/body/read_bytes.ts";
import { problemOf, testApp } from "../../support/http.ts";
import { until } from "../../support/clock.ts";
import { FakeClock, turn } from "../../../src/testing/clocks.ts";

const LIMITS = { max_bytes: 20_000, deadline_ms: 10_000 };

/** Creates a request whose body is sent by the test. */
function fedBody() {
  let controller!: ReadableStreamDefaultController<Uint8Array>;
  let cancelled = false;
  const stream = new ReadableStream<Uint8Array>({
    start(bodyController) {
      controller = bodyController;
    },
    cancel() {
      cancelled = true;
    },
  });
  const request = new Request("http://localhost/", { method: "POST", body: stream });
  return {
    request,
    send: (bytes: number) => controller.enqueue(new Uint8Array(bytes)),
    close: () => controller.close(),
    break: () => controller.error(new TypeError("connection reset")),
    cancelled: () => cancelled,
  };
}

async function codeOf(promise: Promise<unknown>): Promise<unknown> {
  const error = await assertRejects(() => promise);
  return (error as { code?: unknown }).code; // a PreampError, or undefined fails the comparison
}

Deno.test("readBody() joins chunks and removes its deadlines", async () => {
  const clock = new FakeClock();
  const body = fedBody();
  const read = readBody(body.request, LIMITS, clock);
  body.send(10);
  body.send(5);
  body.close();
  assertEquals([(await read).byteLength, clock.pending], [15, 0]);
});

Deno.test("readBody() is empty when there is no body", async () => {
  const request = new Request("http://localhost/", { method: "POST" });
  assertEquals(
    (await readBody(request, LIMITS, new FakeClock())).byteLength,
    0,
  );
});

Deno.test("readBody() accepts a body of exactly the limit and no more", async () => {
  for (const [bytes, expected] of [[20_000, "ok"], [20_001, "body_too_large"]] as const) {
    const request = new Request("http://localhost/", { method: "POST", body: new Uint8Array(bytes) });
    const read = readBody(request, LIMITS, new FakeClock()).then(
      () => "ok",
      (error) => error.code,
    );
    assertEquals(await read, expected);
  }
});

Deno.test("readBody() cancels an endless body after the limit and one chunk", async () => {
  let pulled = 0;
  let cancelled = false;
  const stream = new ReadableStream<Uint8Array>({
    pull(controller) {
      pulled += 1000;
      controller.enqueue(new Uint8Array(1000));
    },
    cancel() {
      cancelled = true;
    },
  }, { highWaterMark: 0 });
  const request = new Request("http://localhost/", { method: "POST", body: stream });
  assertEquals(
    await codeOf(readBody(request, LIMITS, new FakeClock())),
    "body_too_large",
  );
  assertEquals([pulled, cancelled], [21_000, true]);
});

Deno.test("readBody() refuses a declared length above the limit without reading", async () => {
  let pulled = false;
  const stream = new ReadableStream<Uint8Array>({
    pull() {
      pulled = true;
    },
  }, { highWaterMark: 0 });
  const headers = { "content-length": "20001" };
  const request = new Request("http://localhost/", { method: "POST", body: stream, headers });
  assertEquals(
    await codeOf(readBody(request, LIMITS, new FakeClock())),
    "body_too_large",
  );
  assert(!pulled);
});

Deno.test("readBody() times out below 1 KiB/s over five seconds", async () => {
  const clock = new FakeClock();
  const body = fedBody();
  const read = codeOf(readBody(body.request, LIMITS, clock));
  for (let second = 0; second < 5; second++) {
    body.send(1000);
    await clock.advance(1000);
  }
  assertEquals(await read, "request_timeout");
  assert(body.cancelled());
  assertEquals(clock.pending, 0);
});

Deno.test("readBody() times out at the deadline for a fast body", async () => {
  const clock = new FakeClock();
  const body = fedBody();
  const read = codeOf(readBody(body.request, LIMITS, clock));
  let ended = false;
  read.then(() => ended = true);
  for (let second = 0; second < 10; second++) {
    assert(!ended, `ended at ${second} s`);
    body.send(1500);
    await clock.advance(1000);
  }
  assertEquals(await read, "request_timeout");
});

Deno.test("readBody() times out at the deadline for a small declared body", async () => {
  const clock = new FakeClock();
  const body = fedBody();
  const request = new Request(body.request, { headers: { "content-length": "100" } });
  const read = codeOf(readBody(request, LIMITS, clock));
  await clock.advance(9999);
  assertEquals(clock.pending, 1);
  await clock.advance(1);
  assertEquals(await read, "request_timeout");
});

Deno.test("readBody() fails with request_invalid when the client closes the connection", async () => {
  const body = fedBody();
  const read = codeOf(readBody(body.request, LIMITS, new FakeClock()));
  body.send(10);
  await turn();
  body.break();
  assertEquals(await read, "request_invalid");
});

Deno.test("a body above the limit is 413 and closes the connection, for every content type", async () => {
  const { send } = testApp();
  const big = "x".repeat(70_000);
  const form = new FormData();
  form.set("prompt", big);
  for (const body of [JSON.stringify({ prompt: big }), form]) {
    const response = await send("POST /v1/runs", { body });
    assertEquals(response.headers.get("connection"), "close");
    assertEquals(await problemOf(response), "413 body_too_large");
  }
});

Deno.test("a slow body is 408 and does not delay other requests", async () => {
  const { send, clock } = testApp();
  const body = new ReadableStream({ pull() {} });
  const slow = send("POST /v1/runs", { body });
  await until(() => clock.pending === 1);
  assertEquals((await send("GET /healthz")).status, 200);
  await clock.advance(5000);
  assertEquals(await problemOf(await slow), "408 request_timeout");
});
