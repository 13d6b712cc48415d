/**
 * The table of routes: handler, request schemas, responses and error codes. The OpenAPI document is generated
 * from it.
 */
import type { ErrorCode } from "../sdk/errors.ts";
import { createRun } from "./routes/create_run.ts";
import { runEvents } from "./routes/events.ts";
import { docsIndex, docsPage, llmsText } from "./routes/docs.ts";
import type { Handler } from "./context.ts";

import {
  checkPlan,
  diffPlans,
  explainPlan,
  getModule,
  listModules,
  listPlans,
  lockPlan,
} from "./routes/plans.ts";
import {
  cancelRun,
  decideApproval,
  getRun,
  listApprovals,
  listRuns,
  removeRun,
  replayRun,
  steerRun,
} from "./routes/runs.ts";
import {
  forkSession,
  getSession,
  listMessages,
  listSessionRuns,
  listSessions,
  removeSession,
} from "./routes/sessions.ts";
import { eventsSchema, health, landing, openApi, readiness, system } from "./routes/meta.ts";
import type { AnswerName, BodyName, QueryName } from "./body/validation.ts";

/** A response of a route. */
export interface RouteAnswer {
  description: string;
  /** Media type → name of its schema (a list: any of them), or null for text. Absent: no body. */
  content?: Readonly<Record<string, AnswerName | readonly AnswerName[] | null>>;
}

/** One route. */
export interface Route {
  method: "GET" | "POST" | "DELETE";
  /** Path with parameters in braces, as in OpenAPI. */
  path: string;
  /** OpenAPI's operationId. */
  id: string;
  summary: string;
  /** Answered without a key. */
  open?: true;
  /** Starts a run, which counts against `runs_per_minute`. */
  starts_run?: true;
  body?: BodyName;
  /** The body is optional. */
  body_optional?: true;
  /** The body may also be YAML, a form, or a plan. */
  accepts_plans?: true;
  query?: QueryName;
  /** Request headers with their effect on the response. */
  headers?: Readonly<Record<string, string>>;
  answers: Readonly<Record<number, RouteAnswer>>;
  /** Error codes in addition to {@link COMMON_CODES}, {@link KEY_CODES} and {@link BODY_CODES}. */
  codes?: readonly ErrorCode[];
  handle: Handler;
}

/** Error codes of all routes. */
export const COMMON_CODES: readonly ErrorCode[] = [
  "request_invalid",
  "forbidden",
  "method_not_allowed",
  "internal",
];
/** Error codes of routes that need a key. */
export const KEY_CODES: readonly ErrorCode[] = ["unauthorized", "rate_limited", "not_found", "overloaded"];
/** Error codes of routes with a body. */
export const BODY_CODES: readonly ErrorCode[] = [
  "body_too_large",
  "unsupported_media_type",
  "request_timeout",
];

/** Error codes of loading the modules of a plan. */
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

/** Error codes of starting a run. */
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

/** All routes. HEAD is answered wherever GET is. */
export const ROUTES: readonly Route[] = [
  {
    method: "POST",
    path: "/v1/runs",
    id: "createRun",
    summary: "Start a run; Accept and Prefer choose the form of the response",
    starts_run: true,
    body: "RunRequest",
    accepts_plans: true,
    query: "CreateRunQuery",
    headers: {
      "Idempotency-Key": "the same key and the same body give the same run",
      "Prefer":
        "respond-async: answer 202 at once; wait: wait for the end, including approvals; wait=N: wait at most N seconds",
    },
    answers: {
      200: {
        description:
          "the run when it has ended or needs an approval; or only its output text; or its events until run:end",
        content: { "application/json": "Run", "text/plain": null, "text/event-stream": "Event" },
      },
      202: {
        description: "the run, which continues; Location is its URL",
        content: { "application/json": "Run" },
      },
      502: {
        description: "text/plain only: the run did not complete; Preamp-Run-Status has its status",
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
    summary: "Delete a run and its log; its messages remain in the session",
    answers: { 204: { description: "deleted" } },
    codes: ["session_busy", "storage_full"],
    handle: removeRun,
  },
  {
    method: "GET",
    path: "/v1/runs/{id}/events",
    id: "listRunEvents",
    summary: "Read the event log of a run: a list of the existing entries, or a stream until run:end",
    query: "EventsQuery",
    headers: { "Last-Event-ID": "resume a stream after this seq; overrides after" },
    answers: {
      200: {
        description: "a list, or a stream of entries",
        content: {
          "application/json": "EventList",
          "text/event-stream": "Event",
          "application/x-ndjson": "Event",
        },
      },
      204: { description: "text/event-stream only: the run has ended and there are no more entries" },
    },
    codes: ["log_expired"],
    handle: runEvents,
  },
  {
    method: "POST",
    path: "/v1/runs/{id}/cancel",
    id: "cancelRun",
    summary: "Cancel a run; a run that has ended is returned unchanged",
    body: "CancelRequest",
    body_optional: true,
    answers: { 200: run },
    handle: cancelRun,
  },
  {
    method: "POST",
    path: "/v1/runs/{id}/steer",
    id: "steerRun",
    summary: "Send a steering message to a run; delivered with the next provider request",
    body: "SteerRequest",
    answers: { 200: run },
    codes: ["run_ended", "not_steerable"],
    handle: steerRun,
  },
  {
    method: "POST",
    path: "/v1/runs/{id}/replay",
    id: "replayRun",
    summary: "Replay a run and report the first difference; with from_event, re-execute from that event",
    starts_run: true,
    body: "ReplayRequest",
    body_optional: true,
    headers: { "Prefer": "with from_event: as for POST /v1/runs" },
    answers: {
      200: {
        description:
          "if the replay is equal, and the first difference; with from_event, the new run as for POST /v1/runs",
        content: {
          "application/json": ["ReplayReport", "Run"],
          "text/plain": null,
          "text/event-stream": "Event",
        },
      },
      202: {
        description: "with from_event: the run, which continues",
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
    summary: "Decide an approval; the first decision counts",
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
    summary: "Delete a session with its runs",
    answers: { 204: { description: "deleted" } },
    codes: ["session_busy", "storage_full"],
    handle: removeSession,
  },
  {
    method: "POST",
    path: "/v1/sessions/{id}/fork",
    id: "forkSession",
    summary: "Create a new session with the history of this one up to the end of a turn",
    body: "ForkRequest",
    body_optional: true,
    answers: {
      201: {
        description: "the new session; Location is its URL",
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
        description: "JSON Schema 2020-12 of an entry; $defs has each canonical event by name",
        content: { "application/schema+json": "JsonSchema" },
      },
    },
    handle: eventsSchema,
  },
  {
    method: "POST",
    path: "/v1/plans/check",
    id: "checkPlan",
    summary: "Check a plan without executing anything",
    body: "PlanRequest",
    accepts_plans: true,
    answers: ok("the findings, also for an invalid plan", "PlanCheck"),
    codes: ["plan_invalid", "plan_limit_exceeded"],
    handle: checkPlan,
  },
  {
    method: "POST",
    path: "/v1/plans/explain",
    id: "explainPlan",
    summary: "Show what a plan may access; its modules are fetched but not executed",
    body: "PlanRequest",
    accepts_plans: true,
    answers: ok("what the plan may access", "Explanation"),
    codes: LOAD_CODES,
    handle: explainPlan,
  },
  {
    method: "POST",
    path: "/v1/plans/lock",
    id: "lockPlan",
    summary: "Create the lock of a plan; its modules are fetched but not executed",
    body: "PlanRequest",
    accepts_plans: true,
    answers: ok("plan.lock.json", "Lock"),
    codes: LOAD_CODES,
    handle: lockPlan,
  },
  {
    method: "POST",
    path: "/v1/plans/diff",
    id: "diffPlans",
    summary: "Compare two plans: what the second one widens and narrows",
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
    summary: "List the built-in modules",
    answers: ok("all modules", "ModuleList"),
    handle: listModules,
  },
  {
    method: "GET",
    path: "/v1/modules/{id}",
    id: "getModule",
    summary: "Read a built-in module",
    answers: ok("the module", "Module"),
    handle: getModule,
  },
  {
    method: "GET",
    path: "/v1/system",
    id: "system",
    summary: "Describe the server: versions, store, isolation tiers, permissions, memory",
    answers: ok("the server", "System"),
    handle: system,
  },
  {
    method: "GET",
    path: "/healthz",
    id: "health",
    summary: "Check that the process is up",
    open: true,
    answers: ok("the process is up", "Health"),
    handle: health,
  },
  {
    method: "GET",
    path: "/readyz",
    id: "readiness",
    summary: "Check that the store answers and the server is not shutting down",
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
    summary: "The OpenAPI document",
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
    summary: "A short introduction",
    open: true,
    answers: { 200: { description: "the introduction", content: { "text/plain": null, "text/html": null } } },
    handle: landing,
  },
];

/** Returns the error codes of a route without duplicates. */
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
