/** Routes of runs and their approvals. */
import { jsonAnswer, listAnswer, noContent } from "../answers.ts";
import { readJsonBody } from "../body/parse_body.ts";
import { checkBody, checkListQuery } from "../body/validation.ts";
import { answerNewRun, createRun } from "./create_run.ts";
import { runEvents } from "./events.ts";
import { LOAD_CODES, ok, type Route, RUN, RUN_CODES } from "./route.ts";

/**
 * Routes of runs and their approvals; the answers of `/v1/runs/{id}` get the header `Preamp-Run-Id` in
 * `app.ts`.
 */
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
        "respond-async: answer 202 at once; wait: wait for the end, including approvals; wait=N: wait at most N seconds; status: 502 for a run that did not complete",
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
        description:
          "for text/plain or Prefer: status: the run did not complete; Preamp-Run-Status has its status",
        content: { "text/plain": null, "application/json": "Run" },
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
    async handle(context, caller) {
      const filter = await checkListQuery("ListRunsQuery", context);
      return jsonAnswer(await context.server.runtime.runs.list(caller, filter));
    },
  },
  {
    method: "GET",
    path: "/v1/runs/{id}",
    id: "getRun",
    summary: "Read a run",
    answers: { 200: RUN },
    handle: async (context, caller) =>
      jsonAnswer(await context.server.runtime.runs.get(caller, context.param("id"))),
  },
  {
    method: "DELETE",
    path: "/v1/runs/{id}",
    id: "deleteRun",
    summary: "Delete a run and its log; its messages remain in the session",
    answers: { 204: { description: "deleted" } },
    codes: ["session_busy", "storage_full"],
    async handle(context, caller) {
      await context.server.runtime.runs.remove(caller, context.param("id"));
      return noContent();
    },
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
    codes: ["storage_full"],
    async handle(context, caller) {
      const { mode = "graceful" } = await checkBody("CancelRequest", await readJsonBody(context, {}));
      return jsonAnswer(await context.server.runtime.runs.cancel(caller, context.param("id"), mode));
    },
  },
  {
    method: "POST",
    path: "/v1/runs/{id}/steer",
    id: "steerRun",
    summary: "Send a steering message to a run; delivered with the next provider request",
    body: "SteerRequest",
    answers: { 200: RUN },
    codes: ["run_ended", "not_steerable", "storage_full"],
    async handle(context, caller) {
      const { text } = await checkBody("SteerRequest", await readJsonBody(context));
      return jsonAnswer(await context.server.runtime.runs.steer(caller, context.param("id"), text));
    },
  },
  {
    method: "POST",
    path: "/v1/runs/{id}/limits",
    id: "raiseLimits",
    summary: "Raise limits of a run that has not ended; one that waits at such a limit continues",
    body: "LimitsRequest",
    answers: { 200: RUN },
    codes: ["run_ended", "policy_refused", "storage_full"],
    async handle(context, caller) {
      const limits = await checkBody("LimitsRequest", await readJsonBody(context));
      return jsonAnswer(await context.server.runtime.runs.raiseLimits(caller, context.param("id"), limits));
    },
  },
  {
    method: "POST",
    path: "/v1/runs/{id}/undo",
    id: "undoRun",
    summary: "Put back the files that an ended run has changed; a file that was changed since stays as it is",
    answers: ok("what was put back, and what was not", "UndoReport"),
    codes: ["session_busy", "storage_full"],
    handle: async (context, caller) =>
      jsonAnswer(await context.server.runtime.runs.undo(caller, context.param("id"))),
  },
  {
    method: "POST",
    path: "/v1/runs/{id}/replay",
    id: "replayRun",
    summary: "Replay a run and say what the agent does differently; with from_event, execute from there",
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
        description: "with from_event, for text/plain or Prefer: status: the run did not complete",
        content: { "text/plain": null, "application/json": "Run" },
      },
    },
    codes: ["not_replayable", "log_expired", ...RUN_CODES],
    async handle(context, caller) {
      const { runs } = context.server.runtime;
      const run_id = context.param("id");
      const { from_event, plan } = await checkBody("ReplayRequest", await readJsonBody(context, {}));
      if (from_event === undefined) return jsonAnswer(await runs.replay(caller, run_id));
      const options = plan === undefined ? { from_event } : { from_event, plan };
      return await answerNewRun(context, caller, () => runs.rerun(caller, run_id, options));
    },
  },
  {
    method: "GET",
    path: "/v1/runs/{id}/plan",
    id: "getRunPlan",
    summary: "Read the plan of a run without its secrets",
    answers: ok("the plan, as data and as text", "RunPlan"),
    handle: async (context, caller) =>
      jsonAnswer(await context.server.runtime.runs.plan(caller, context.param("id"))),
  },
  {
    method: "GET",
    path: "/v1/runs/{id}/requests",
    id: "listRequests",
    summary: "Read what models were sent in each call of a run, up to now; the run is replayed for it",
    starts_run: true,
    query: "RequestsQuery",
    answers: ok("a page of requests, in the order of the calls", "ModelRequestList"),
    codes: ["not_replayable", "log_expired", ...LOAD_CODES],
    async handle(context, caller) {
      const query = await checkListQuery("RequestsQuery", context);
      return jsonAnswer(await context.server.runtime.runs.requests(caller, context.param("id"), query));
    },
  },
  {
    method: "GET",
    path: "/v1/runs/{id}/approvals",
    id: "listApprovals",
    summary: "List the approvals of a run, pending and decided",
    answers: ok("all approvals", "ApprovalList"),
    codes: ["log_expired"],
    handle: async (context, caller) =>
      listAnswer(await context.server.runtime.runs.approvals(caller, context.param("id"))),
  },
  {
    method: "POST",
    path: "/v1/runs/{id}/approvals/{approval_id}",
    id: "decideApproval",
    summary: "Decide an approval; the first decision counts",
    body: "ApprovalAnswer",
    answers: ok("the approval", "Approval"),
    codes: [
      "approval_already_resolved",
      "approval_expired",
      "approval_args_mismatch",
      "log_expired",
      "storage_full",
    ],
    async handle(context, caller) {
      const decision = await checkBody("ApprovalAnswer", await readJsonBody(context));
      const [run_id, approval_id] = [context.param("id"), context.param("approval_id")];
      return jsonAnswer(await context.server.runtime.runs.decide(caller, run_id, approval_id, decision));
    },
  },
];
