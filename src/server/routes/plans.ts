/** Plans and modules as resources. */
import type { LockedInput, PlanInput } from "../../app/types.ts";
import type { JsonObject } from "../../sdk/json.ts";
import { readDocument, readJsonBody } from "../body/parse_body.ts";
import { type Handler, type HandlerContext, jsonResponse, listResponse } from "../context.ts";
import { pathId } from "./runs.ts";
import { checkBody } from "../body/validation.ts";

/** `POST /v1/plans/check`: 200 for a bad plan too. */
export const checkPlan: Handler = async (call, caller) =>
  jsonResponse(await call.env.server.runtime.plans.check(await readInput(call), caller));

/** `POST /v1/plans/explain`: fetches the plan's modules, runs nothing. */
export const explainPlan: Handler = async (call, caller) =>
  jsonResponse(await call.env.server.runtime.plans.explain(await readInput(call), caller));

/** `POST /v1/plans/lock`: the same, for `plan.lock.json`. */
export const lockPlan: Handler = async (call, caller) =>
  jsonResponse(await call.env.server.runtime.plans.lock(await readInput(call), caller));

/** `POST /v1/plans/diff`. */
export const diffPlans: Handler = async (call, caller) => {
  const { body, server: { runtime, clock } } = call.env;
  const { from, to } = await checkBody("PlanDiffRequest", await readJsonBody(call.req.raw, body, clock));
  return jsonResponse(await runtime.plans.diff(comparedInput(from), comparedInput(to), caller));
};

/** A plan has no key `plan_ref`: whatever has one names a plan. */
function comparedInput(given: JsonObject | string): PlanInput {
  return typeof given === "object" && typeof given.plan_ref === "string"
    ? { plan_ref: given.plan_ref }
    : { plan: given };
}

async function readInput(call: HandlerContext): Promise<LockedInput> {
  const { body, server: { clock } } = call.env;
  const document = await readDocument(call.req.raw, body, clock);
  // The schema has made sure that exactly one of plan and plan_ref is there.
  return document.kind === "plan"
    ? { plan: document.text }
    : await checkBody("PlanRequest", document.data) as LockedInput;
}

/** `GET /v1/plans`. */
export const listPlans: Handler = async (call) => listResponse(await call.env.server.runtime.plans.list());

/** `GET /v1/modules`: the built-in ones. */
export const listModules: Handler = async (call) =>
  listResponse(await call.env.server.runtime.modules.list());

/** `GET /v1/modules/{id}`. */
export const getModule: Handler = async (call) =>
  jsonResponse(await call.env.server.runtime.modules.get(pathId(call)));
