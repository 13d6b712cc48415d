/** `POST /v1/runs`: every form of the request, every form of the answer (http.md, Runs). */
import type { Caller, CreateOptions, Run, RunHandle, RunRequest } from "../../runs/types.ts";
import { documentError } from "../../plan/check/findings.ts";
import { canonicalHash } from "../../sdk/digest.ts";
import { PreampError } from "../../sdk/errors.ts";
import { isObject } from "../../sdk/json.ts";
import { readDocument } from "../body/parse_body.ts";
import { eventStream } from "../streaming/run_events.ts";
import { type Handler, type HandlerContext, jsonResponse, type ServerState } from "../context.ts";
import { lastEventId } from "../streaming/last_event_id.ts";
import { parsePrefer, type Preferences, preferredType } from "../negotiation.ts";
import { validateCommonRequest } from "../body/common_request.ts";
import { textResponse } from "../text_response.ts";
import { checkBody, checkQuery } from "../body/validation.ts";

const FORMS = ["application/json", "text/plain", "text/event-stream"] as const;

/** Starts a run and answers it in the form that was asked for. */
export const createRun: Handler = async (call, caller) => {
  const { server } = call.env;
  const { headers } = call.req.raw;
  const form = preferredType(headers.get("accept"), FORMS);
  const prefer = parsePrefer(headers.get("prefer"));
  const key = idempotencyKey(headers.get("idempotency-key"));
  const { request, background } = await readRunRequest(call);
  const departure = request.on_disconnect === "cancel" ? new ClientDisconnect() : null;
  const options: CreateOptions = {};
  if (key !== null) options.idempotency = { key, body_hash: canonicalHash({ request, background }) };
  if (departure) options.signal = departure.signal;

  const stopListening = form === "text/event-stream" ? undefined : departure?.listenTo(call.req.raw.signal);
  try {
    const handle = await server.runtime.runs.create(request, caller, options);
    // A retried POST goes on where it was; without a key the id would be one of another run's log.
    const after = key === null ? 0 : lastEventId(headers) ?? 0;
    return await answerStarted(call, caller, handle, { form, prefer, background, departure, after });
  } finally {
    stopListening?.();
  }
};

/** How a run that was started is answered. */
interface AnswerOptions {
  form: typeof FORMS[number];
  prefer: Preferences;
  background: boolean;
  departure: ClientDisconnect | null;
  /** Last entry that the client has. */
  after: number;
}

async function answerStarted(
  call: HandlerContext,
  caller: Caller,
  handle: RunHandle,
  { form, prefer, background, departure, after }: AnswerOptions,
): Promise<Response> {
  const { server } = call.env;
  if (form === "text/event-stream") {
    const onLeave = () => departure?.leave();
    return eventStream(call.env, caller, {
      run_id: handle.id,
      type: form,
      after,
      onLeave,
      headers: runHeaders(handle),
    });
  }
  const wait = { server, departure };
  if (form === "text/plain" && !background && !prefer.respond_async) return await answerText(handle, wait);
  return await answerRun(handle, { ...prefer, respond_async: background || prefer.respond_async }, wait);
}

/** Answers a run that a request has started, in the form that its Accept and Prefer ask for. */
export async function answerNewRun(
  call: HandlerContext,
  caller: Caller,
  start: () => Promise<RunHandle>,
): Promise<Response> {
  const { headers } = call.req.raw;
  const form = preferredType(headers.get("accept"), FORMS);
  const prefer = parsePrefer(headers.get("prefer"));
  return await answerStarted(call, caller, await start(), {
    form,
    prefer,
    background: false,
    departure: null,
    after: 0,
  });
}

/** What an answer waits with. */
interface Wait {
  server: ServerState;
  departure: ClientDisconnect | null;
}

async function answerRun(handle: RunHandle, prefer: Preferences, wait: Wait): Promise<Response> {
  const { respond_async, wait: patience } = prefer;
  if (respond_async && patience === false) return accepted(handle, "respond-async", wait);
  const until = patience === false ? "attention" : "end";
  const run = await settledRun(handle, until, wait, typeof patience === "number" ? patience : null);
  if (run === "left") return clientLeft();
  if (run === null) return accepted(handle, respond_async ? "respond-async" : null, wait);
  const headers: Record<string, string> = runHeaders(handle);
  if (run.status === "awaiting_approval") headers.location = locationOf(wait.server, handle);
  if (patience !== false) headers["preference-applied"] = "wait";
  return jsonResponse(run, 200, headers);
}

/** The run goes on, and the answer says where. */
function accepted(handle: RunHandle, applied: string | null, { server }: Wait): Response {
  const headers: Record<string, string> = { ...runHeaders(handle), location: locationOf(server, handle) };
  if (applied !== null) headers["preference-applied"] = applied;
  return jsonResponse(handle.current(), 202, headers);
}

async function answerText(handle: RunHandle, wait: Wait): Promise<Response> {
  const settled = await settledRun(handle, "end", wait, null);
  if (settled === "left") return clientLeft();
  const run = settled ?? handle.current();
  const completed = run.status === "completed";
  return textResponse(
    completed ? run.output_text : reasonOf(run, locationOf(wait.server, handle)),
    completed ? 200 : 502,
    {
      ...runHeaders(handle),
      "content-type": "text/plain; charset=utf-8",
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
      "preamp-run-status": run.status,
    },
  );
}

function reasonOf(run: Run, location: string): string {
  if (run.ended_at === null) return `Run ${run.id} continues while this server stops: GET ${location}`;
  return `Run ${run.id} ended ${run.status}: ${
    run.error?.message ?? run.stop_reason ?? "nothing is known about why"
  }`;
}

/**
 * Resolves to the run when it has settled; to null when `patience_s` seconds have passed or the server stops before; to
 * `left` when the client went away.
 */
function settledRun(
  handle: RunHandle,
  until: "end" | "attention",
  { server, departure }: Wait,
  patience_s: number | null,
): Promise<Run | null | "left"> {
  return new Promise((resolve, reject) => {
    const stops = [server.waiting.add(() => finish(null))];
    if (patience_s !== null) stops.push(server.clock.timer(patience_s * 1000, () => finish(null)));
    const leave = () => finish("left"); // named: see `runs/README.md`, "A run dies with its end"
    if (departure) departure.onLeave = leave;
    if (departure?.signal.aborted) finish("left");
    function finish(outcome: Run | null | "left"): void {
      for (const stop of stops) stop();
      resolve(outcome);
    }
    handle.settled(until).then(finish, (error) => {
      for (const stop of stops) stop();
      reject(error);
    });
  });
}

function runHeaders(handle: RunHandle): Record<string, string> {
  return { "preamp-run-id": handle.id };
}

function locationOf({ basePath }: ServerState, handle: RunHandle): string {
  return `${basePath}/v1/runs/${encodeURIComponent(handle.id)}`;
}

/** Seen by nobody but the log. 499 is what nginx calls it. */
function clientLeft(): Response {
  return new Response(null, { status: 499 });
}

/** The client's going away, as a signal. `request.signal` also fires after a normal answer, so it is listened to no longer than that. */
class ClientDisconnect {
  readonly #controller = new AbortController();
  /** Told once. */
  onLeave: (() => void) | undefined;

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  leave(): void {
    this.#controller.abort(new DOMException("the client left", "AbortError"));
    this.onLeave?.();
  }

  listenTo(signal: AbortSignal): () => void {
    const leave = () => this.leave();
    signal.addEventListener("abort", leave, { once: true });
    if (signal.aborted) leave();
    return () => signal.removeEventListener("abort", leave);
  }
}

async function readRunRequest(call: HandlerContext): Promise<{ request: RunRequest; background: boolean }> {
  const { body, server } = call.env;
  const query = await checkQuery("CreateRunQuery", call.req.raw.url);
  const document = await readDocument(call.req.raw, body, server.clock);
  const fields = fieldsOf(document, query.prompt);
  const { background = false, ...request } = validateCommonRequest(fields) ??
    await checkBody("RunRequest", fields);
  return { request, background };
}

/** Returns the fields of a request, the prompt of the query among them when the body has none. */
function fieldsOf(document: Awaited<ReturnType<typeof readDocument>>, prompt: string | undefined): unknown {
  if (document.kind === "plan") {
    if (prompt === undefined) {
      const message = "Cannot start a run: a plan as the body takes its prompt from ?prompt=: received none";
      throw documentError("request_invalid", "the request", [{ path: "prompt", message }]);
    }
    return { prompt, plan: document.text };
  }
  const { data } = document;
  if (prompt === undefined || !isObject(data)) return data;
  if (!Object.hasOwn(data, "prompt")) return { ...data, prompt };
  const message = "Cannot read prompt: it may be in the body or in the query: received both";
  throw documentError("request_invalid", "the request", [{ path: "prompt", message }]);
}

/** Printable ASCII (the header is a structured string or a bare token); longer keys only cost memory. Our choice: 255. */
function idempotencyKey(header: string | null): string | null {
  if (header === null) return null;
  if (/^[\x21-\x7e]{1,255}$/.test(header)) return header;
  throw new PreampError(
    "request_invalid",
    `Cannot read Idempotency-Key: it must be 1 to 255 printable characters without blanks: received ${header.length} characters`,
  );
}
