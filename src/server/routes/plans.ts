/** Routes of plans and modules. */
import type { LockedInput, PlanInput } from "../../app/types.ts";
import type { JsonObject } from "../../sdk/json.ts";
import { readDocument, readJsonBody } from "../body/parse_body.ts";
import type { RequestContext } from "../context.ts";
import { jsonAnswer, listAnswer } from "../answers.ts";
import { checkBody } from "../body/validation.ts";
import { LOAD_CODES, ok, type Route } from "./route.ts";

/** Returns the input for a plan or `{plan_ref}`; a plan has no key of that name. */
function comparedInput(value: JsonObject | string): PlanInput {
  return typeof value === "object" && typeof value.plan_ref === "string"
    ? { plan_ref: value.plan_ref }
    : { plan: value };
}

async function readInput(context: RequestContext): Promise<LockedInput> {
  const document = await readDocument(context);
  // The schema requires exactly one of plan and plan_ref.
  return document.kind === "plan"
    ? { plan: document.text }
    : await checkBody("PlanRequest", document.data) as LockedInput;
}

/** The routes. */
export const PLAN_ROUTES: readonly Route[] = [
  {
    method: "POST",
    path: "/v1/plans/check",
    id: "checkPlan",
    summary: "Check a plan without executing anything",
    body: "PlanRequest",
    accepts_plans: true,
    answers: ok("the findings, also for an invalid plan", "PlanCheck"),
    codes: ["plan_invalid", "plan_limit_exceeded"],
    handle: async (context, caller) =>
      jsonAnswer(await context.server.runtime.plans.check(await readInput(context), caller)),
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
    handle: async (context, caller) =>
      jsonAnswer(await context.server.runtime.plans.explain(await readInput(context), caller)),
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
    handle: async (context, caller) =>
      jsonAnswer(await context.server.runtime.plans.lock(await readInput(context), caller)),
  },
  {
    method: "POST",
    path: "/v1/plans/diff",
    id: "diffPlans",
    summary: "Compare two plans: what the second one widens and narrows",
    body: "PlanDiffRequest",
    answers: ok("the changes", "PlanDiff"),
    codes: ["plan_invalid", "plan_limit_exceeded"],
    async handle(context, caller) {
      const { from, to } = await checkBody("PlanDiffRequest", await readJsonBody(context));
      const { plans } = context.server.runtime;
      return jsonAnswer(await plans.diff(comparedInput(from), comparedInput(to), caller));
    },
  },
  {
    method: "GET",
    path: "/v1/plans",
    id: "listPlans",
    summary: "List the named plans of this server",
    answers: ok("all plans", "PlanList"),
    handle: async ({ server }) => listAnswer(await server.runtime.plans.list()),
  },
  {
    method: "GET",
    path: "/v1/plans/{name}",
    id: "getPlan",
    summary: "Read a named plan without its secrets; default is the plan of requests without one",
    answers: ok("the plan, as data and as text", "PlanDocument"),
    codes: ["plan_invalid", "plan_limit_exceeded"],
    handle: async (context) => jsonAnswer(await context.server.runtime.plans.get(context.param("name"))),
  },
  {
    method: "GET",
    path: "/v1/modules",
    id: "listModules",
    summary: "List the built-in modules",
    answers: ok("all modules", "ModuleList"),
    handle: async ({ server }) => listAnswer(await server.runtime.modules.list()),
  },
  {
    method: "GET",
    path: "/v1/modules/{id}",
    id: "getModule",
    summary: "Read a built-in module",
    answers: ok("the module", "Module"),
    handle: async (context) => jsonAnswer(await context.server.runtime.modules.get(context.param("id"))),
  },
];
