/** Handlers of runs and their approvals. */
import type { Handler, HandlerContext } from "../context.ts";
import { jsonResponse, listResponse, noContent } from "../responses.ts";
import { answerNewRun } from "./create_run.ts";
import { readJsonBody } from "../body/parse_body.ts";
import { checkBody, checkListQuery } from "../body/validation.ts";

/** Handles `GET /v1/runs`: newest first. */
export const listRuns: Handler = async (context, caller) => {
  const filter = await checkListQuery("ListRunsQuery", context);
  return jsonResponse(await context.env.server.runtime.runs.list(caller, filter));
};

/** Handles `GET /v1/runs/{id}`. */
export const getRun: Handler = async (context, caller) => {
  const run_id = pathId(context);
  return jsonResponse(await context.env.server.runtime.runs.get(caller, run_id), 200, {
    "preamp-run-id": run_id,
  });
};

/** Handles `DELETE /v1/runs/{id}`: removes the run and its log. */
export const removeRun: Handler = async (context, caller) => {
  const run_id = pathId(context);
  await context.env.server.runtime.runs.remove(caller, run_id);
  return noContent({ "preamp-run-id": run_id });
};

/** Handles `POST /v1/runs/{id}/cancel`; without a body the mode is `graceful`. */
export const cancelRun: Handler = async (context, caller) => {
  const { body, server: { runtime, clock } } = context.env;
  const run_id = pathId(context);
  const input = await readJsonBody(context.req.raw, body, clock);
  const { mode = "graceful" } = await checkBody("CancelRequest", input === undefined ? {} : input);
  return jsonResponse(await runtime.runs.cancel(caller, run_id, mode), 200, { "preamp-run-id": run_id });
};

/** Handles `POST /v1/runs/{id}/steer`. */
export const steerRun: Handler = async (context, caller) => {
  const { body, server: { runtime, clock } } = context.env;
  const run_id = pathId(context);
  const { text } = await checkBody("SteerRequest", await readJsonBody(context.req.raw, body, clock));
  return jsonResponse(await runtime.runs.steer(caller, run_id, text), 200, { "preamp-run-id": run_id });
};

/**
 * Handles `POST /v1/runs/{id}/replay`: reports the first difference between the replay and the log. With
 * `from_event`, starts a new run after that entry and answers like `POST /v1/runs`.
 */
export const replayRun: Handler = async (context, caller) => {
  const { body, server: { runtime: { runs }, clock } } = context.env;
  const run_id = pathId(context);
  const input = await readJsonBody(context.req.raw, body, clock);
  const { from_event, plan } = await checkBody("ReplayRequest", input === undefined ? {} : input);
  if (from_event === undefined) {
    return jsonResponse(await runs.replay(caller, run_id), 200, { "preamp-run-id": run_id });
  }
  const options = plan === undefined ? { from_event } : { from_event, plan };
  return await answerNewRun(context, caller, () => runs.rerun(caller, run_id, options));
};

/** Handles `GET /v1/runs/{id}/approvals`: pending and decided approvals. */
export const listApprovals: Handler = async (context, caller) =>
  listResponse(await context.env.server.runtime.runs.approvals(caller, pathId(context)));

/** Handles `POST /v1/runs/{id}/approvals/{approval_id}`. The first decision counts. */
export const decideApproval: Handler = async (context, caller) => {
  const { body, server: { runtime, clock } } = context.env;
  const decision = await checkBody("ApprovalAnswer", await readJsonBody(context.req.raw, body, clock));
  const approval_id = context.req.param("approval_id") ?? "";
  return jsonResponse(await runtime.runs.decide(caller, pathId(context), approval_id, decision));
};

/** Returns the `{id}` of the path. */
export function pathId(context: HandlerContext): string {
  return context.req.param("id") ?? "";
}
