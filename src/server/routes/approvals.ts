/** Approvals as resources. */
import { readJsonBody } from "../body/parse_body.ts";
import { type Handler, jsonResponse, listResponse } from "../context.ts";
import { pathId } from "./runs.ts";
import { checkBody } from "../body/validation.ts";

/** `GET /v1/runs/{id}/approvals`: pending and decided. */
export const listApprovals: Handler = async (call, caller) =>
  listResponse(await call.env.server.runtime.runs.approvals(caller, pathId(call)));

/** `POST /v1/runs/{id}/approvals/{approval_id}`: the first answer counts. */
export const decideApproval: Handler = async (call, caller) => {
  const { body, server: { runtime, clock } } = call.env;
  const decision = await checkBody("ApprovalAnswer", await readJsonBody(call.req.raw, body, clock));
  const approval_id = call.req.param("approval_id") ?? "";
  return jsonResponse(await runtime.runs.decide(caller, pathId(call), approval_id, decision));
};
