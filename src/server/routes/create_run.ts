/** Handler of `POST /v1/runs`: see src/docs/http.md#start-a-run. */
import { AWAITING } from "../../runs/types.ts";
import type { Caller, CreateOptions, Run, RunHandle, RunRequest } from "../../runs/types.ts";
import { documentError } from "../../plan/check/findings.ts";
import { onAbort } from "../../sdk/abortable.ts";
import { canonicalHash } from "../../sdk/digest.ts";
import { PreampError } from "../../sdk/errors.ts";
import { isObject } from "../../sdk/json.ts";
import { readDocument } from "../body/parse_body.ts";
import { eventStream } from "../streaming/run_event_stream.ts";
import type { Handler, RequestContext, ServerState } from "../context.ts";
import { type Answer, API_HEADERS, jsonAnswer, textAnswer } from "../answers.ts";
import { lastEventId } from "../streaming/sse_format.ts";
import { checkWorkspace } from "./plans.ts";
import { withHeartbeat } from "../streaming/waiting_json.ts";
import { parsePrefer, type Preferences, preferredType } from "../negotiation.ts";
import { checkBody, checkQuery, type Query, validateCommonRequest } from "../body/validation.ts";

const FORMS = ["application/json", "text/plain", "text/event-stream"] as const;

/** Handles `POST /v1/runs`: starts a run and answers as `Accept` and `Prefer` request. */
export const createRun: Handler = async (context, caller) => {
  const { server, request: { headers } } = context;
  const key = idempotencyKey(headers.get("idempotency-key"));
  const { request, background } = await readRunRequest(context);
  await checkWorkspace(request, caller);
  const disconnect = request.on_disconnect === "cancel" ? new AbortController() : null;
  const options: CreateOptions = { headers: (name) => headers.get(name) ?? undefined };
  if (key !== null) options.idempotency = { key, body_hash: canonicalHash({ request, background }) };
  if (disconnect) options.signal = disconnect.signal;
  return await answerNewRun(context, caller, () => server.runtime.runs.create(request, caller, options), {
    background,
    queued: request.if_busy === "queue",
    disconnect,
    // A retried POST resumes its stream. Without an idempotency key it starts another run, with another log.
    after: key === null ? 0 : lastEventId(headers) ?? 0,
  });
};

/** Options of {@link answerNewRun}. */
interface NewRunOptions {
  /** Whether to answer 202 at once, as `Prefer: respond-async` requests too. Default false. */
  background?: boolean;
  /** Whether the run may wait for another one of its session. Default false. */
  queued?: boolean;
  /** Aborted when the client disconnects. Default: that is ignored. */
  disconnect?: AbortController | null;
  /** Seq of the last entry that the client has received. Default 0. */
  after?: number;
}

/** Starts a run and answers as `Accept` and `Prefer` request. */
export async function answerNewRun(
  context: RequestContext,
  caller: Caller,
  start: () => Promise<RunHandle>,
  { background = false, queued = false, disconnect = null, after = 0 }: NewRunOptions = {},
): Promise<Answer> {
  const { server, request } = context;
  const { headers } = request;
  const form = preferredType(headers.get("accept"), FORMS);
  const prefer = parsePrefer(headers.get("prefer"));
  prefer.respond_async ||= background;
  checkBackground(server, prefer.respond_async || queued);
  const is_stream = form === "text/event-stream";
  if (is_stream) server.open_streams.check(caller.name, context.streams);
  const report = () => disconnect?.abort(new DOMException("the client disconnected", "AbortError"));
  // It also fires after a normal response, and Deno makes it when it is read.
  const signal = disconnect && !is_stream ? request.signal : undefined;
  signal?.addEventListener("abort", report, { once: true });
  try {
    if (signal?.aborted) report();
    const handle = await start();
    context.begun();
    const run_id = handle.id;
    if (is_stream) {
      return eventStream(context, caller, {
        run_id,
        type: form,
        after,
        onDisconnect: report,
        headers: runHeaders(handle),
      });
    }
    const wait = { server, disconnect };
    if (form === "text/plain" && !prefer.respond_async) return await answerText(handle, wait);
    const answer = answerRun(handle, prefer, wait);
    const { heartbeat_ms, clock } = server;
    if (heartbeat_ms === null) return await answer;
    return await withHeartbeat(answer, { heartbeat_ms, clock, headers: { "preamp-run-id": run_id } });
  } finally {
    signal?.removeEventListener("abort", report);
  }
}

/**
 * Refuses a run that would continue without an open request, where the host stops idle processes and nothing
 * outlives them.
 *
 * @throws {PreampError} `forbidden`.
 */
function checkBackground({ background }: ServerState, asked: boolean): void {
  if (background || !asked) return;
  throw new PreampError(
    "forbidden",
    "Cannot start a run in the background: this host may stop the server between requests, and its runs are kept in memory; " +
      "wait for the answer or read the stream, or have the operator attach a database (preamp docs deploy)",
  );
}

/** Collaborators of a response that waits for a run. */
interface WaitDeps {
  server: ServerState;
  disconnect: AbortController | null;
}

async function answerRun(handle: RunHandle, prefer: Preferences, wait: WaitDeps): Promise<Answer> {
  const { respond_async, wait: max_wait } = prefer;
  if (respond_async && max_wait === false) return accepted(handle, "respond-async", wait);
  const until = max_wait === false ? "attention" : "end";
  const run = await settledRun(handle, until, wait, typeof max_wait === "number" ? max_wait : null);
  if (run === "disconnected") return clientDisconnected();
  if (run === null) return accepted(handle, respond_async ? "respond-async" : null, wait);
  const headers: Record<string, string> = runHeaders(handle);
  if (AWAITING.has(run.status)) headers.location = locationOf(wait.server, handle);
  const applied = [...max_wait === false ? [] : ["wait"], ...prefer.status ? ["status"] : []];
  if (applied.length > 0) headers["preference-applied"] = applied.join(", ");
  const failed = prefer.status && run.ended_at !== null && run.status !== "completed";
  return jsonAnswer(run, failed ? 502 : 200, headers);
}

/** Creates the 202 response of a run that continues. */
function accepted(handle: RunHandle, applied: string | null, { server }: WaitDeps): Answer {
  const headers: Record<string, string> = { ...runHeaders(handle), location: locationOf(server, handle) };
  if (applied !== null) headers["preference-applied"] = applied;
  return jsonAnswer(handle.current(), 202, headers);
}

async function answerText(handle: RunHandle, wait: WaitDeps): Promise<Answer> {
  const settled = await settledRun(handle, "end", wait, null);
  if (settled === "disconnected") return clientDisconnected();
  const run = settled ?? handle.current();
  const completed = run.status === "completed";
  return textAnswer(
    completed ? run.output_text : reasonOf(run, locationOf(wait.server, handle)),
    completed ? 200 : 502,
    { ...API_HEADERS, ...runHeaders(handle), "content-type": "text/plain; charset=utf-8" },
  );
}

function reasonOf(run: Run, location: string): string {
  return run.ended_at === null
    ? `Run ${run.id} continues while this server stops: GET ${location}`
    : endReason(run);
}

/** Returns in a sentence how a run ended. */
export function endReason(run: Run): string {
  return `Run ${run.id} ended as ${run.status}: ${
    run.error?.message ?? run.stop_reason ?? "no reason was recorded"
  }`;
}

/**
 * Resolves to the run when it has settled; to null after `max_wait_s` seconds or when the server stops; to
 * `disconnected` when the client disconnects.
 */
function settledRun(
  handle: RunHandle,
  until: "end" | "attention",
  { server, disconnect }: WaitDeps,
  max_wait_s: number | null,
): Promise<Run | null | "disconnected"> {
  return new Promise((resolve, reject) => {
    const cleanups = [server.waiting.add(() => finish(null))];
    if (max_wait_s !== null) cleanups.push(server.clock.later(max_wait_s * 1000, () => finish(null)));
    if (disconnect) {
      cleanups.push(onAbort(disconnect.signal, () => finish("disconnected")));
    }
    function finish(outcome: Run | null | "disconnected"): void {
      for (const cleanup of cleanups) cleanup();
      resolve(outcome);
    }
    handle.settled(until).then(finish, (error) => {
      for (const cleanup of cleanups) cleanup();
      reject(error);
    });
  });
}

function runHeaders(handle: RunHandle): Record<string, string> {
  return { "preamp-run-id": handle.id, "preamp-run-status": handle.current().status };
}

function locationOf({ basePath }: ServerState, handle: RunHandle): string {
  return `${basePath}/v1/runs/${encodeURIComponent(handle.id)}`;
}

/** Creates the response for the access log after the client disconnected; nginx uses the same status. */
function clientDisconnected(): Answer {
  return { status: 499, headers: {}, body: null };
}

async function readRunRequest(
  context: RequestContext,
): Promise<{ request: RunRequest; background: boolean }> {
  const query = await checkQuery("CreateRunQuery", context.request.url);
  const document = await readDocument(context);
  if (document.kind === "plan" && query.prompt === undefined) {
    throw await missingPrompt(context, document.text);
  }
  const fields = fieldsOf(document, query);
  const { background = false, ...request } = validateCommonRequest(fields) ??
    await checkBody("RunRequest", fields);
  return { request, background };
}

/**
 * Returns the error for a plan without a prompt.
 *
 * @throws {PreampError} as `parsePlanText`, for text that is no plan but cannot be read.
 */
async function missingPrompt({ body }: RequestContext, text: string): Promise<PreampError> {
  const { parseDocument } = await import("../../plan/parse/parse.ts");
  await parseDocument(text, { label: "the request body", limits: body.plan });
  const message = "Cannot start a run: the body is a plan; put the prompt into the URL, as ?prompt=…";
  return documentError("request_invalid", "the request", [{ path: "prompt", message }]);
}

/** Returns the fields of a request: those of the query, and those of the body. */
function fieldsOf(
  document: Awaited<ReturnType<typeof readDocument>>,
  query: Query<"CreateRunQuery">,
): unknown {
  if (document.kind === "plan") return { ...query, plan: document.text };
  const { data } = document;
  if (!isObject(data)) return data;
  const twice = Object.keys(query).filter((key) => Object.hasOwn(data, key));
  if (twice.length === 0) return Object.keys(query).length === 0 ? data : { ...data, ...query };
  const details = twice.map((path) => ({
    path,
    message: `Cannot read ${path}: it must be in the body or in the query: received both`,
  }));
  throw documentError("request_invalid", "the request", details);
}

/** Reads the `Idempotency-Key` header: printable ASCII. The maximum of 255 characters bounds memory. */
function idempotencyKey(header: string | null): string | null {
  if (header === null) return null;
  if (/^[\x21-\x7e]{1,255}$/.test(header)) return header;
  throw new PreampError(
    "request_invalid",
    `Cannot read Idempotency-Key: it must be 1 to 255 printable ASCII characters without spaces: received ${header.length} characters`,
  );
}
