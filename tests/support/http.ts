/**
 * Creates the HTTP API over the real runtime with a memory store, and sends requests to it without a socket.
 * The first word of a prompt selects what the run does: see {@link answerOf}. Nothing here uses a timer, so a
 * test may leave runs open.
 */
import type { HostClock } from "../../src/kernel/host.ts";
import { createRuntime } from "../../src/app/runtime.ts";
import type { Runtime } from "../../src/app/types.ts";
import { defaultPolicy } from "../../src/policy/settings.ts";
import type { Caller, CreateOptions, RunRequest } from "../../src/runs/types.ts";
import type { ChatRequest, Module } from "../../src/sdk/types.ts";
import { textOf } from "../../src/sdk/mod.ts";
import { FakeClock } from "../../src/testing/clocks.ts";
import { MockProvider, type ScriptedResponse } from "../../src/testing/mock_provider.ts";
import { type App, type AppOptions, createApp } from "../../src/server/app.ts";
import type { AnswerName } from "../../src/server/routes/route.ts";
import { ANSWERS } from "../../src/server/schemas/responses.ts";
import type { LogRecord } from "../../src/server/middleware/access_log.ts";
import { readSse } from "./sse.ts";

/** The plan of a run without tools. */
export const PLAN = {
  session: { orchestrator: "loop-basic", context: "context-simple" },
  providers: ["provider-prompted"],
};

/** The text of one delta of a `long` run. */
export const DELTA = "é漢😀";

/** Maximum bytes of a body in tests. */
const MAX_BODY_BYTES = 64 * 1024;
const HANG_MS = 1e9;

/**
 * Returns the model's answer to the first word of the prompt: `answer TEXT`; `long N`, a text of N deltas;
 * `ask`, a tool call that needs an approval; `hang`, an answer that {@link TestRuntime.answerHanging} gives;
 * `fail`.
 */
function answerOf({ messages }: ChatRequest): string | ScriptedResponse {
  const last = messages.at(-1)!; // a request has messages
  if (last.role === "tool") return "allowed";
  const [word, ...rest] = textOf(last.content).split(" ");
  if (word === "long") return DELTA.repeat(Number(rest[0]));
  if (word === "ask") return { tool_calls: [{ name: "calculator", arguments: { expression: "6*7" } }] };
  if (word === "hang") return { text: "at last", delay_ms: HANG_MS };
  if (word === "fail") return { error: { type: "AuthenticationError", message: "the key was refused" } };
  return rest.join(" ") || "done";
}

/** A real runtime, and what a test sees of it. */
export interface TestRuntime {
  runtime: Runtime;
  /** Arguments of `runs.create`, in order. */
  created: { request: RunRequest; caller: Caller; options: CreateOptions | undefined }[];
  /** Number of open readers of logs, and of pages that they have received. */
  readers: { open: number; pages: number };
  /** Answers the model calls of all `hang` runs. */
  answerHanging(): Promise<void>;
}

/** Creates a runtime with the plan `default`; the clock of its runs is fake by default. */
export function testRuntime(clock: HostClock = new FakeClock()): TestRuntime {
  const model_clock = new FakeClock();
  const prompted: Module = {
    module: { id: "provider-prompted", type: "provider" },
    async mount(coordinator) {
      const responses = [answerOf];
      await coordinator.mount(
        "providers",
        new MockProvider({ name: "prompted", responses, chunk_chars: [...DELTA].length, clock: model_clock }),
      );
    },
  };
  const policy = defaultPolicy();
  policy.limits.max_body_bytes = MAX_BODY_BYTES;
  const real = createRuntime({
    policy,
    clock,
    plans: new URL("../fixtures/http/plans/", import.meta.url),
    modules: { "provider-prompted": prompted },
  });
  const created: TestRuntime["created"] = [];
  const readers = { open: 0, pages: 0 };
  const runs: Runtime["runs"] = {
    ...real.runs,
    create(request, caller, options) {
      created.push({ request, caller, options });
      return real.runs.create(request, caller, options);
    },
    async *follow(...args) {
      readers.open++;
      try {
        for await (const page of real.runs.follow(...args)) {
          readers.pages++;
          yield page;
        }
      } finally {
        readers.open--;
      }
    },
  };
  return { runtime: { ...real, runs }, created, readers, answerHanging: () => model_clock.advance(HANG_MS) };
}

/** The app of a test, and access to its parts. */
export interface TestApp extends TestRuntime {
  app: App;
  /** Clock of the server, not of runs. */
  clock: FakeClock;
  logged: LogRecord[];
  /**
   * Sends a request with the key `k1`; a body that is not text, bytes, a form or a stream is sent as JSON.
   */
  send(route: string, options?: SendOptions): Promise<Response>;
  /** Starts a run in the background, and resolves to its object. */
  start(prompt: string, fields?: Record<string, unknown>): Promise<StartedRun>;
}

/** Fields of a run object that tests use. */
interface StartedRun {
  id: string;
  session_id: string;
}

/** Options of {@link TestApp.send}. */
export interface SendOptions {
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/**
 * Creates an app with two callers, `k1` and `k2`. `change` returns parts of the runtime to replace, such as a
 * method that fails.
 */
export function testApp(
  options: Partial<Omit<AppOptions, "runtime">> = {},
  change: (runtime: Runtime) => Partial<Runtime> = () => ({}),
): TestApp {
  const test = testRuntime();
  const clock = new FakeClock();
  const logged: LogRecord[] = [];
  const app = createApp({
    runtime: { ...test.runtime, ...change(test.runtime) },
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
  const start: TestApp["start"] = async (prompt, fields = {}) =>
    await (await send("POST /v1/runs", { body: { prompt, background: true, ...fields } })).json();
  return { ...test, app, clock, logged, send, start };
}

/** Returns the body of a response after validation against its documented schema. */
// deno-lint-ignore no-explicit-any -- tests read fields of many shapes
export async function bodyOf(response: Response, schema: AnswerName): Promise<any> {
  const body = await response.json();
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

/** Resolves to the events of a stream, when it has ended. */
export async function readEvents(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
): Promise<{ id: string | null; event: string; data: string }[]> {
  return await Array.fromAsync(readSse(new Response(body)));
}
