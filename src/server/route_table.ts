/** Every route in one place: what serves it, what it takes, what it answers, how it can fail. OpenAPI is made of this table. */
import type { ErrorCode } from "../sdk/errors.ts";
import { decideApproval, listApprovals } from "./routes/approvals.ts";
import { createRun } from "./routes/create_run.ts";
import { runEvents } from "./routes/events.ts";
import { docsIndex, docsPage, llmsText } from "./routes/docs.ts";
import type { Handler } from "./context.ts";
import { health, HEALTH_PATH } from "./http_app.ts";
import {
  checkPlan,
  diffPlans,
  explainPlan,
  getModule,
  listModules,
  listPlans,
  lockPlan,
} from "./routes/plans.ts";
import { cancelRun, getRun, listRuns, removeRun, replayRun, steerRun } from "./routes/runs.ts";
import {
  forkSession,
  getSession,
  listMessages,
  listSessionRuns,
  listSessions,
  removeSession,
} from "./routes/sessions.ts";
import { eventsSchema, landing, openApi, readiness } from "./routes/meta.ts";
import type { AnswerName, BodyName, QueryName } from "./body/validation.ts";

/** One answer of a route. */
export interface RouteAnswer {
  description: string;
  /** Media type → name of its schema (names: one of them), or null for text. Absent: no body. */
  content?: Readonly<Record<string, AnswerName | readonly AnswerName[] | null>>;
}

/** One route. */
export interface Route {
  method: "GET" | "POST" | "DELETE";
  /** With parameters in braces, as OpenAPI and http.md write them. */
  path: string;
  /** OpenAPI's operationId. */
  id: string;
  summary: string;
  /** Served without a key. */
  open?: true;
  /** Starts a run, and counts against `runs_per_minute`. */
  starts_run?: true;
  body?: BodyName;
  /** The body may be left out. */
  body_optional?: true;
  /** The body may also be YAML, a form, or itself a plan. */
  takes_plans?: true;
  query?: QueryName;
  /** Request headers that change the answer, with what they do. */
  headers?: Readonly<Record<string, string>>;
  answers: Readonly<Record<number, RouteAnswer>>;
  /** Codes beside {@link COMMON_CODES} and those that follow from the fields above. */
  codes?: readonly ErrorCode[];
  handle: Handler;
}

/** What any request may be answered. */
export const COMMON_CODES: readonly ErrorCode[] = [
  "request_invalid",
  "forbidden",
  "method_not_allowed",
  "internal",
];
/** What any request that needs a key may be answered. */
export const KEY_CODES: readonly ErrorCode[] = ["unauthorized", "rate_limited", "not_found", "overloaded"];
/** What any request with a body may be answered. */
export const BODY_CODES: readonly ErrorCode[] = [
  "body_too_large",
  "unsupported_media_type",
  "request_timeout",
];

/** What may go wrong until a plan's modules are there. */
const LOAD_CODES: readonly ErrorCode[] = [
  "plan_invalid",
  "plan_limit_exceeded",
  "policy_refused",
  "module_source_denied",
  "isolation_unavailable",
  "module_integrity_mismatch",
  "module_pin_required",
  "lock_invalid",
  "module_too_large",
  "module_invalid",
  "module_load_failed",
  "module_fetch_failed",
  "module_fetch_timeout",
];

/** What may go wrong before a run exists. */
const RUN_CODES: readonly ErrorCode[] = [
  ...LOAD_CODES,
  "session_busy",
  "session_conflict",
  "idempotency_conflict",
  "too_many_runs",
  "draining",
  "storage_full",
];

const run: RouteAnswer = { description: "the run", content: { "application/json": "Run" } };

function ok(description: string, schema: AnswerName): Readonly<Record<number, RouteAnswer>> {
  return { 200: { description, content: { "application/json": schema } } };
}

/** Every route. A HEAD is served wherever a GET is. */
export const ROUTES: readonly Route[] = [
  {
    method: "POST",
    path: "/v1/runs",
    id: "createRun",
    summary: "Start a run and answer it in the form that Accept and Prefer ask for",
    starts_run: true,
    body: "RunRequest",
    takes_plans: true,
    query: "CreateRunQuery",
    headers: {
      "Idempotency-Key": "the same key and the same body give the same run",
      "Prefer":
        "respond-async: answer 202 at once; wait: wait for the end also while a person is asked; wait=N: no longer than N seconds",
    },
    answers: {
      200: {
        description:
          "the run when it has ended or needs a person; its answer alone; its events until run:end",
        content: { "application/json": "Run", "text/plain": null, "text/event-stream": "Event" },
      },
      202: {
        description: "the run, which goes on; Location says where",
        content: { "application/json": "Run" },
      },
      502: {
        description: "text/plain only: the run did not complete; Preamp-Run-Status says how it ended",
        content: { "text/plain": null },
      },
    },
    codes: RUN_CODES,
    handle: createRun,
  },
  {
    method: "GET",
    path: "/v1/runs",
    id: "listRuns",
    summary: "List runs, newest first",
    query: "ListRunsQuery",
    answers: ok("a page of runs", "RunList"),
    handle: listRuns,
  },
  {
    method: "GET",
    path: "/v1/runs/{id}",
    id: "getRun",
    summary: "Read a run",
    answers: { 200: run },
    handle: getRun,
  },
  {
    method: "DELETE",
    path: "/v1/runs/{id}",
    id: "deleteRun",
    summary: "Remove a run and its log; its messages stay with the session",
    answers: { 204: { description: "removed" } },
    codes: ["session_busy", "storage_full"],
    handle: removeRun,
  },
  {
    method: "GET",
    path: "/v1/runs/{id}/events",
    id: "listRunEvents",
    summary: "Read the log of a run: what is there, or a stream until run:end",
    query: "EventsQuery",
    headers: { "Last-Event-ID": "resume a stream behind this seq; wins over after" },
    answers: {
      200: {
        description: "a list, or a stream of entries",
        content: {
          "application/json": "EventList",
          "text/event-stream": "Event",
          "application/x-ndjson": "Event",
        },
      },
      204: { description: "text/event-stream only: the run has ended and nothing is left to read" },
    },
    codes: ["log_expired"],
    handle: runEvents,
  },
  {
    method: "POST",
    path: "/v1/runs/{id}/cancel",
    id: "cancelRun",
    summary: "Cancel a run; an ended one is answered unchanged",
    body: "CancelRequest",
    body_optional: true,
    answers: { 200: run },
    handle: cancelRun,
  },
  {
    method: "POST",
    path: "/v1/runs/{id}/steer",
    id: "steerRun",
    summary: "Say something to a run; it joins at the next provider request",
    body: "SteerRequest",
    answers: { 200: run },
    codes: ["run_ended", "not_steerable"],
    handle: steerRun,
  },
  {
    method: "POST",
    path: "/v1/runs/{id}/replay",
    id: "replayRun",
    summary: "Replay a run and say where it parts from its log; with from_event, execute it anew from there",
    starts_run: true,
    body: "ReplayRequest",
    body_optional: true,
    headers: { "Prefer": "with from_event: as for POST /v1/runs" },
    answers: {
      200: {
        description:
          "whether it is equal, and the first difference; with from_event the new run, as POST /v1/runs",
        content: {
          "application/json": ["ReplayReport", "Run"],
          "text/plain": null,
          "text/event-stream": "Event",
        },
      },
      202: {
        description: "with from_event: the run, which goes on",
        content: { "application/json": "Run" },
      },
      502: {
        description: "with from_event, text/plain only: the run did not complete",
        content: { "text/plain": null },
      },
    },
    codes: ["not_replayable", "log_expired", ...RUN_CODES],
    handle: replayRun,
  },
  {
    method: "GET",
    path: "/v1/runs/{id}/approvals",
    id: "listApprovals",
    summary: "List the approvals of a run, pending and decided",
    answers: ok("all approvals", "ApprovalList"),
    handle: listApprovals,
  },
  {
    method: "POST",
    path: "/v1/runs/{id}/approvals/{approval_id}",
    id: "decideApproval",
    summary: "Answer an approval; the first answer counts",
    body: "ApprovalAnswer",
    answers: ok("the approval", "Approval"),
    codes: ["approval_already_resolved", "approval_expired", "approval_args_mismatch", "storage_full"],
    handle: decideApproval,
  },
  {
    method: "GET",
    path: "/v1/sessions",
    id: "listSessions",
    summary: "List sessions",
    query: "PageQuery",
    answers: ok("a page of sessions", "SessionList"),
    handle: listSessions,
  },
  {
    method: "GET",
    path: "/v1/sessions/{id}",
    id: "getSession",
    summary: "Read a session",
    answers: ok("the session", "Session"),
    handle: getSession,
  },
  {
    method: "DELETE",
    path: "/v1/sessions/{id}",
    id: "deleteSession",
    summary: "Remove a session with its runs",
    answers: { 204: { description: "removed" } },
    codes: ["session_busy", "storage_full"],
    handle: removeSession,
  },
  {
    method: "POST",
    path: "/v1/sessions/{id}/fork",
    id: "forkSession",
    summary: "Make a new session with the history of this one up to the end of a turn",
    body: "ForkRequest",
    body_optional: true,
    answers: {
      201: {
        description: "the new session; Location says where",
        content: { "application/json": "Session" },
      },
    },
    codes: ["storage_full"],
    handle: forkSession,
  },
  {
    method: "GET",
    path: "/v1/sessions/{id}/runs",
    id: "listSessionRuns",
    summary: "List the runs of a session, newest first",
    query: "PageQuery",
    answers: ok("a page of runs", "RunList"),
    handle: listSessionRuns,
  },
  {
    method: "GET",
    path: "/v1/sessions/{id}/messages",
    id: "listSessionMessages",
    summary: "Read the full history of a session, never compacted",
    query: "MessagesQuery",
    answers: ok("the messages", "MessageList"),
    handle: listMessages,
  },
  {
    method: "GET",
    path: "/v1/events/schema",
    id: "eventsSchema",
    summary: "The JSON Schema of every event of a log",
    answers: {
      200: {
        description: "JSON Schema 2020-12 of an entry; $defs has each canonical event by its name",
        content: { "application/schema+json": "JsonSchema" },
      },
    },
    handle: eventsSchema,
  },
  {
    method: "POST",
    path: "/v1/plans/check",
    id: "checkPlan",
    summary: "Check a plan without running anything",
    body: "PlanRequest",
    takes_plans: true,
    answers: ok("what was found, also for a bad plan", "PlanCheck"),
    codes: ["plan_invalid", "plan_limit_exceeded"],
    handle: checkPlan,
  },
  {
    method: "POST",
    path: "/v1/plans/explain",
    id: "explainPlan",
    summary: "Show what a plan may touch: its modules are fetched, none is run",
    body: "PlanRequest",
    takes_plans: true,
    answers: ok("what the plan may touch", "Explanation"),
    codes: LOAD_CODES,
    handle: explainPlan,
  },
  {
    method: "POST",
    path: "/v1/plans/lock",
    id: "lockPlan",
    summary: "Make the lock of a plan: its modules are fetched, none is run",
    body: "PlanRequest",
    takes_plans: true,
    answers: ok("plan.lock.json", "Lock"),
    codes: LOAD_CODES,
    handle: lockPlan,
  },
  {
    method: "POST",
    path: "/v1/plans/diff",
    id: "diffPlans",
    summary: "Compare two plans: what the second widens, what it narrows",
    body: "PlanDiffRequest",
    answers: ok("the changes", "PlanDiff"),
    codes: ["plan_invalid", "plan_limit_exceeded"],
    handle: diffPlans,
  },
  {
    method: "GET",
    path: "/v1/plans",
    id: "listPlans",
    summary: "List the named plans of this server",
    answers: ok("all plans", "PlanList"),
    handle: listPlans,
  },
  {
    method: "GET",
    path: "/v1/modules",
    id: "listModules",
    summary: "List the modules that a plan may name by their id alone",
    answers: ok("all modules", "ModuleList"),
    handle: listModules,
  },
  {
    method: "GET",
    path: "/v1/modules/{id}",
    id: "getModule",
    summary: "Read a module that a plan may name by its id alone",
    answers: ok("the module", "Module"),
    handle: getModule,
  },
  {
    method: "GET",
    path: HEALTH_PATH,
    id: "health",
    summary: "Whether the process is up",
    open: true,
    answers: ok("it is", "Health"),
    handle: health,
  },
  {
    method: "GET",
    path: "/readyz",
    id: "readiness",
    summary: "Whether the store answers and the server is not stopping",
    open: true,
    answers: {
      ...ok("ready", "Readiness"),
      503: { description: "not ready", content: { "application/json": "Readiness" } },
    },
    handle: readiness,
  },
  {
    method: "GET",
    path: "/openapi.json",
    id: "openApi",
    summary: "This document",
    open: true,
    answers: { 200: { description: "OpenAPI 3.1" } },
    handle: openApi,
  },
  {
    method: "GET",
    path: "/docs",
    id: "docsIndex",
    summary: "The index of the documentation",
    open: true,
    answers: { 200: { description: "the index", content: { "text/markdown": null, "text/html": null } } },
    handle: docsIndex,
  },
  {
    method: "GET",
    path: "/docs/{page}",
    id: "docsPage",
    summary: "A page of the documentation",
    open: true,
    answers: { 200: { description: "the page", content: { "text/markdown": null, "text/html": null } } },
    codes: ["not_found"],
    handle: docsPage,
  },
  {
    method: "GET",
    path: "/llms.txt",
    id: "llmsText",
    summary: "The index of the documentation for language models (llmstxt.org)",
    open: true,
    answers: { 200: { description: "the index", content: { "text/plain": null } } },
    handle: llmsText,
  },
  {
    method: "GET",
    path: "/",
    id: "landing",
    summary: "What this is",
    open: true,
    answers: { 200: { description: "a few lines", content: { "text/plain": null, "text/html": null } } },
    handle: landing,
  },
];

/** Returns the codes a route may answer, each once. */
export function codesOf(route: Route): ErrorCode[] {
  return [
    ...new Set([
      ...COMMON_CODES,
      ...(route.open ? [] : KEY_CODES),
      ...(route.body ? BODY_CODES : []),
      ...(route.codes ?? []),
    ]),
  ];
}
