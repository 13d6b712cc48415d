/** Plans and modules as resources. */
import type { PlanInput } from "../app/types.ts";
import { readDocument } from "./documents.ts";
import { answer, answerList, type Handler } from "./exchange.ts";
import { pathId } from "./runs.ts";
import { checkBody } from "./validation.ts";

/** `POST /v1/plans/check`: 200 for a bad plan too. */
export const checkPlan: Handler = async (call, caller) => {
  const { body, server: { runtime, clock } } = call.env;
  const document = await readDocument(call.req.raw, body, clock);
  // The schema has made sure that exactly one of the two is there.
  const input = document.kind === "plan"
    ? { plan: document.text }
    : await checkBody("PlanCheckRequest", document.data) as PlanInput;
  return answer(await runtime.plans.check(input, caller));
};

/** `GET /v1/plans`. */
export const listPlans: Handler = async (call) => answerList(await call.env.server.runtime.plans.list());

/** `GET /v1/modules`: the built-in ones. */
export const listModules: Handler = async (call) => answerList(await call.env.server.runtime.modules.list());

/** `GET /v1/modules/{id}`. */
export const getModule: Handler = async (call) =>
  answer(await call.env.server.runtime.modules.get(pathId(call)));
