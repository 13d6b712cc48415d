/** Creates an app over a runtime, and sends requests to it without a socket. */
import type { App } from "../../src/server/app.ts";
import { type AppOptions, createApp } from "../../src/server/app.ts";
import type { LogRecord } from "../../src/server/middleware/access_log.ts";
import { type AnswerName, loadSchemas } from "../../src/server/body/validation.ts";
import { FakeClock } from "./fake_clock.ts";
import { FakeRuntime } from "./fake_runtime.ts";

/** The app of a test, and access to its parts. */
export interface TestApp {
  app: App;
  runtime: FakeRuntime;
  clock: FakeClock;
  logged: LogRecord[];
  /**
   * Sends a request with the key `k1`; a body that is not text, bytes, a form or a stream is sent as JSON.
   */
  send(route: string, options?: SendOptions): Promise<Response>;
}

/** Options of {@link TestApp.send}. */
export interface SendOptions {
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/** Creates an app with two callers: `k1` and `k2`. */
export function testApp(options: Partial<AppOptions> = {}): TestApp {
  const runtime = new FakeRuntime();
  const clock = new FakeClock();
  const logged: LogRecord[] = [];
  const app = createApp({
    runtime,
    clock,
    authenticate: (key) =>
      key === "k1" || key === "k2" ? { name: `key:${key}`, namespace: key, origin: "caller" } : null,
    log: (record) => logged.push(record),
    ...options,
  });
  const send: TestApp["send"] = (route, { body, headers = {}, signal } = {}) => {
    const [method = "", path = ""] = route.split(" ");
    const raw = body === undefined || typeof body === "string" || body instanceof FormData ||
      body instanceof Uint8Array || body instanceof ReadableStream;
    const all = new Headers({ authorization: "Bearer k1", ...headers });
    if (body !== undefined && !(body instanceof FormData) && !all.has("content-type")) {
      all.set("content-type", "application/json");
    }
    return app.fetch(
      new Request(`http://localhost${path}`, {
        method,
        headers: all,
        ...(body === undefined ? {} : { body: raw ? body as BodyInit : JSON.stringify(body) }),
        ...(signal ? { signal } : {}),
      }),
    );
  };
  return { app, runtime, clock, logged, send };
}

/** Returns the body of a response after validation against its documented schema. */
// deno-lint-ignore no-explicit-any -- tests read fields of many shapes
export async function bodyOf(response: Response, schema: AnswerName): Promise<any> {
  const body = await response.json();
  const { ANSWERS } = await loadSchemas();
  ANSWERS[schema].parse(body);
  return body;
}

/** Returns `status code` of a problem response after validation. */
export async function problemOf(response: Response): Promise<string> {
  const body = await bodyOf(response, "Problem");
  if (
    response.headers.get("content-type") !== "application/problem+json" || body.status !== response.status
  ) {
    throw new Error(`Not a problem: ${JSON.stringify(body)}`);
  }
  return `${response.status} ${body.error.code}`;
}

/** Parses SSE bytes as specified by WHATWG HTML §9.2.6, for events of one data line. */
export async function readEvents(
  body: ReadableStream<Uint8Array>,
): Promise<{ id: string; event: string; data: string }[]> {
  const text = await new Response(body).text();
  return text.split("\n\n").filter((block) => block.includes("data: ")).map((block) => {
    const fields = Object.fromEntries(block.split("\n").map((line) => line.split(/: (.*)/s).slice(0, 2)));
    return { id: fields.id, event: fields.event, data: fields.data };
  });
}
