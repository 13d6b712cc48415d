/** Routes of plans and modules. */
import type { LockedInput, PlanInput } from "../../app/types.ts";
import { documentError } from "../../plan/check/findings.ts";
import { workspaceRefused } from "../../plan/model_choice.ts";
import { type Caller, mayOperate } from "../../runs/types.ts";
import type { JsonObject } from "../../sdk/json.ts";
import { describe } from "../../sdk/value_path.ts";
import { readDocument, readJsonBody } from "../body/parse_body.ts";
import type { RequestContext } from "../context.ts";
import { jsonAnswer, listAnswer, textAnswer } from "../answers.ts";
import { checkBody } from "../body/validation.ts";
import { LOAD_CODES, ok, type Route } from "./route.ts";

/** Returns the input for a plan or `{plan_ref}`; a plan has no key of that name. */
function comparedInput(value: JsonObject | string): PlanInput {
  return typeof value === "object" && typeof value.plan_ref === "string"
    ? { plan_ref: value.plan_ref }
    : { plan: value };
}

async function readInput(context: RequestContext, caller: Caller): Promise<LockedInput> {
  const document = await readDocument(context);
  if (document.kind === "plan") return { plan: document.text };
  // The schema requires exactly one of plan and plan_ref.
  const input = await checkBody("PlanRequest", document.data) as LockedInput;
  await checkWorkspace(input, caller);
  return input;
}

/**
 * Checks the workspace of a request, if it has one. @throws {PreampError} `policy_refused` for a caller that
 * may not choose it; `request_invalid` if it is not a folder of this machine.
 */
export async function checkWorkspace({ workspace }: { workspace?: string }, caller: Caller): Promise<void> {
  if (workspace === undefined) return;
  if (!mayOperate(caller)) throw workspaceRefused();
  const is_absolute = /^(\/|[A-Za-z]:[\\/])/.test(workspace);
  const info = is_absolute ? await Deno.stat(workspace).catch(() => null) : null;
  if (info?.isDirectory) return;
  const fact = is_absolute ? "there is no such folder on the server's machine" : "must be an absolute path";
  const message = `Cannot use workspace: ${fact}: received ${describe(workspace)}`;
  throw documentError("request_invalid", "the request", [{ path: "workspace", message }]);
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
      jsonAnswer(await context.server.runtime.plans.check(await readInput(context, caller), caller)),
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
      jsonAnswer(await context.server.runtime.plans.explain(await readInput(context, caller), caller)),
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
      jsonAnswer(await context.server.runtime.plans.lock(await readInput(context, caller), caller)),
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
    path: "/v1/plan/schema",
    id: "planSchema",
    summary: "The JSON Schema of plans, with the modules of this server",
    answers: {
      200: {
        description: "JSON Schema 2020-12 of a plan",
        content: { "application/schema+json": "JsonSchema" },
      },
    },
    async handle({ server }) {
      const { planJsonSchema } = await import("../../plan/plan_schema.ts");
      return textAnswer(JSON.stringify(planJsonSchema(await server.runtime.modules.list())), 200, {
        "content-type": "application/schema+json",
        "x-content-type-options": "nosniff",
      });
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
    method: "PUT",
    path: "/v1/plans/{name}",
    id: "savePlan",
    summary:
      "Save a plan under a name, with the operator's rights; for the person who has started the server",
    body: "SavePlanRequest",
    accepts_plans: true,
    answers: ok("the plan, as data and as text", "PlanDocument"),
    codes: ["plan_invalid", "plan_limit_exceeded"],
    async handle(context, caller) {
      const document = await readDocument(context);
      const plan = document.kind === "plan"
        ? document.text
        : (await checkBody("SavePlanRequest", document.data)).plan;
      return jsonAnswer(await context.server.runtime.plans.save(context.param("name"), plan, caller));
    },
  },
  {
    method: "GET",
    path: "/v1/models",
    id: "listUsableModels",
    summary:
      "List the models that can run here, with their prices; for the person who has started the server",
    answers: ok("the models of providers with a key, and of local servers", "UsableModelList"),
    codes: ["forbidden"],
    async handle({ server }, caller) {
      const { data, errors } = await server.runtime.models(caller);
      const shown = data.map((
        { model, provider, display_name, context_window, max_output_tokens, pricing },
      ) => ({ model, provider, display_name, context_window, max_output_tokens, pricing }));
      return jsonAnswer({ data: shown, next_cursor: null, errors });
    },
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
