/** Handlers of plans and modules. */
import type { LockedInput, PlanInput } from "../../app/types.ts";
import type { JsonObject } from "../../sdk/json.ts";
import { readDocument, readJsonBody } from "../body/parse_body.ts";
import type { Handler, HandlerContext } from "../context.ts";
import { jsonResponse, listResponse } from "../responses.ts";
import { pathId } from "./runs.ts";
import { checkBody } from "../body/validation.ts";

/** Handles `POST /v1/plans/check`: answers 200 for an invalid plan too. */
export const checkPlan: Handler = async (context, caller) =>
  jsonResponse(await context.env.server.runtime.plans.check(await readInput(context), caller));

/** Handles `POST /v1/plans/explain`: fetches the plan's modules and executes none. */
export const explainPlan: Handler = async (context, caller) =>
  jsonResponse(await context.env.server.runtime.plans.explain(await readInput(context), caller));

/** Handles `POST /v1/plans/lock`: fetches the plan's modules and returns `plan.lock.json`. */
export const lockPlan: Handler = async (context, caller) =>
  jsonResponse(await context.env.server.runtime.plans.lock(await readInput(context), caller));

/** Handles `POST /v1/plans/diff`. */
export const diffPlans: Handler = async (context, caller) => {
  const { body, server: { runtime, clock } } = context.env;
  const { from, to } = await checkBody("PlanDiffRequest", await readJsonBody(context.req.raw, body, clock));
  return jsonResponse(await runtime.plans.diff(comparedInput(from), comparedInput(to), caller));
};

/** Returns the input for a plan or `{plan_ref}`; a plan has no key of that name. */
function comparedInput(value: JsonObject | string): PlanInput {
  return typeof value === "object" && typeof value.plan_ref === "string"
    ? { plan_ref: value.plan_ref }
    : { plan: value };
}

async function readInput(context: HandlerContext): Promise<LockedInput> {
  const { body, server: { clock } } = context.env;
  const document = await readDocument(context.req.raw, body, clock);
  // The schema requires exactly one of plan and plan_ref.
  return document.kind === "plan"
    ? { plan: document.text }
    : await checkBody("PlanRequest", document.data) as LockedInput;
}

/** Handles `GET /v1/plans`. */
export const listPlans: Handler = async (context) =>
  listResponse(await context.env.server.runtime.plans.list());

/** Handles `GET /v1/modules`: the built-in modules. */
export const listModules: Handler = async (context) =>
  listResponse(await context.env.server.runtime.modules.list());

/** Handles `GET /v1/modules/{id}`. */
export const getModule: Handler = async (context) =>
  jsonResponse(await context.env.server.runtime.modules.get(pathId(context)));
