/** Handlers of runs and their approvals. */
import type { Handler } from "../context.ts";
import { jsonAnswer, listAnswer, noContent } from "../answers.ts";
import { answerNewRun } from "./create_run.ts";
import { readJsonBody } from "../body/parse_body.ts";
import { checkBody, checkListQuery } from "../body/validation.ts";
import { createRun } from "./create_run.ts";
import { runEvents } from "./events.ts";
import { ok, type Route, RUN, RUN_CODES } from "./route.ts";

/** Handles `GET /v1/runs`: newest first. */
export const listRuns: Handler = async (context, caller) => {
  const filter = await checkListQuery("ListRunsQuery", context);
  return jsonAnswer(await context.server.runtime.runs.list(caller, filter));
};

/** Handles `GET /v1/runs/{id}`. */
export const getRun: Handler = async (context, caller) => {
  const run_id = context.param("id");
  return jsonAnswer(await context.server.runtime.runs.get(caller, run_id), 200, {
    "preamp-run-id": run_id,
  });
};

/** Handles `DELETE /v1/runs/{id}`: removes the run and its log. */
export const removeRun: Handler = async (context, caller) => {
  const run_id = context.param("id");
  await context.server.runtime.runs.remove(caller, run_id);
  return noContent({ "preamp-run-id": run_id });
};

/** Handles `POST /v1/runs/{id}/cancel`; without a body the mode is `graceful`. */
export const cancelRun: Handler = async (context, caller) => {
  const { runtime } = context.server;
  const run_id = context.param("id");
  const input = await readJsonBody(context);
  const { mode = "graceful" } = await checkBody("CancelRequest", input === undefined ? {} : input);
  return jsonAnswer(await runtime.runs.cancel(caller, run_id, mode), 200, { "preamp-run-id": run_id });
};

/** Handles `POST /v1/runs/{id}/steer`. */
export const steerRun: Handler = async (context, caller) => {
  const { runtime } = context.server;
  const run_id = context.param("id");
  const { text } = await checkBody("SteerRequest", await readJsonBody(context));
  return jsonAnswer(await runtime.runs.steer(caller, run_id, text), 200, { "preamp-run-id": run_id });
};

/**
 * Handles `POST /v1/runs/{id}/replay`: reports the first difference between the replay and the log. With
 * `from_event`, starts a new run after that entry and answers like `POST /v1/runs`.
 */
export const replayRun: Handler = async (context, caller) => {
  const { runs } = context.server.runtime;
  const run_id = context.param("id");
  const input = await readJsonBody(context);
  const { from_event, plan } = await checkBody("ReplayRequest", input === undefined ? {} : input);
  if (from_event === undefined) {
    return jsonAnswer(await runs.replay(caller, run_id), 200, { "preamp-run-id": run_id });
  }
  const options = plan === undefined ? { from_event } : { from_event, plan };
  return await answerNewRun(context, caller, () => runs.rerun(caller, run_id, options));
};

/** Handles `GET /v1/runs/{id}/approvals`: pending and decided approvals. */
export const listApprovals: Handler = async (context, caller) => {
  const run_id = context.param("id");
  const approvals = await context.server.runtime.runs.approvals(caller, run_id);
  return listAnswer(approvals, { "preamp-run-id": run_id });
};

/** Handles `POST /v1/runs/{id}/approvals/{approval_id}`. The first decision counts. */
export const decideApproval: Handler = async (context, caller) => {
  const { runtime } = context.server;
  const decision = await checkBody("ApprovalAnswer", await readJsonBody(context));
  const approval_id = context.param("approval_id");
  const run_id = context.param("id");
  const approval = await runtime.runs.decide(caller, run_id, approval_id, decision);
  return jsonAnswer(approval, 200, { "preamp-run-id": run_id });
};

/** Routes of runs and their approvals. */
export const RUN_ROUTES: readonly Route[] = [
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
    answers: { 200: RUN },
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
    answers: { 200: RUN },
    handle: cancelRun,
  },
  {
    method: "POST",
    path: "/v1/runs/{id}/steer",
    id: "steerRun",
    summary: "Send a steering message to a run; delivered with the next provider request",
    body: "SteerRequest",
    answers: { 200: RUN },
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
];
