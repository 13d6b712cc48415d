/** Runs as resources: list, read, delete, cancel, steer. */
import { type Handler, type HandlerContext, jsonResponse, noContent } from "../context.ts";
import { answerNewRun } from "./create_run.ts";
import { readJsonBody } from "../body/parse_body.ts";
import { checkListQuery } from "../paging.ts";
import { checkBody } from "../body/validation.ts";

/** `GET /v1/runs`, newest first. */
export const listRuns: Handler = async (call, caller) => {
  const filter = await checkListQuery("ListRunsQuery", call);
  return jsonResponse(await call.env.server.runtime.runs.list(caller, filter));
};

/** `GET /v1/runs/{id}`. */
export const getRun: Handler = async (call, caller) => {
  const run_id = pathId(call);
  return jsonResponse(await call.env.server.runtime.runs.get(caller, run_id), 200, {
    "preamp-run-id": run_id,
  });
};

/** `DELETE /v1/runs/{id}`: the run and its log. */
export const removeRun: Handler = async (call, caller) => {
  const run_id = pathId(call);
  await call.env.server.runtime.runs.remove(caller, run_id);
  return noContent({ "preamp-run-id": run_id });
};

/** `POST /v1/runs/{id}/cancel`; an empty body is a graceful one. */
export const cancelRun: Handler = async (call, caller) => {
  const { body, server: { runtime, clock } } = call.env;
  const run_id = pathId(call);
  const given = await readJsonBody(call.req.raw, body, clock);
  const { mode = "graceful" } = await checkBody("CancelRequest", given === undefined ? {} : given);
  return jsonResponse(await runtime.runs.cancel(caller, run_id, mode), 200, { "preamp-run-id": run_id });
};

/** `POST /v1/runs/{id}/steer`. */
export const steerRun: Handler = async (call, caller) => {
  const { body, server: { runtime, clock } } = call.env;
  const run_id = pathId(call);
  const { text } = await checkBody("SteerRequest", await readJsonBody(call.req.raw, body, clock));
  return jsonResponse(await runtime.runs.steer(caller, run_id, text), 200, { "preamp-run-id": run_id });
};

/**
 * `POST /v1/runs/{id}/replay`: where the replayed run parts from its log; with `from_event` a new run that goes on behind that
 * entry, answered like `POST /v1/runs`.
 */
export const replayRun: Handler = async (call, caller) => {
  const { body, server: { runtime: { runs }, clock } } = call.env;
  const run_id = pathId(call);
  const given = await readJsonBody(call.req.raw, body, clock);
  const { from_event, plan } = await checkBody("ReplayRequest", given === undefined ? {} : given);
  if (from_event === undefined) {
    return jsonResponse(await runs.replay(caller, run_id), 200, { "preamp-run-id": run_id });
  }
  const from = plan === undefined ? { from_event } : { from_event, plan };
  return await answerNewRun(call, caller, () => runs.rerun(caller, run_id, from));
};

/** Returns the `{id}` of the path; there is one in every route that asks. */
export function pathId(call: HandlerContext): string {
  return call.req.param("id") ?? "";
}
