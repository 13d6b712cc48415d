/** Errors about a plan, with the places in its text. */
import type { ResolvedPlan } from "./plan_finder.ts";
import type { PlanCheck } from "./types.ts";
import { documentError, toDetail } from "../plan/check/findings.ts";
import { type ErrorCode, errorCode, type ErrorDetail, PreampError } from "../sdk/errors.ts";
import type { Findings } from "../sdk/findings.ts";

/** Throws the errors in the configs of a plan's modules. @throws {PreampError} `plan_invalid`. */
export function acceptConfigs({ errors }: Findings, { name }: ResolvedPlan): void {
  if (errors.length === 0) return;
  const label = name === undefined ? "the plan" : `the plan "${name}"`;
  throw documentError("plan_invalid", label, errors.map((finding) => toDetail(finding)));
}

/** Adds the places of findings in the plan's text, if it has one. */
export async function withPlacesIn<T extends ErrorDetail>(
  { input, limits }: ResolvedPlan,
  details: readonly T[],
): Promise<T[]> {
  if (typeof input !== "string") return [...details];
  const { withPlaces } = await import("../plan/parse/parse.ts");
  return await withPlaces(details, input, limits);
}

/** Adds the places of findings in the plan's text to an error about the plan. */
export async function located(error: unknown, found: ResolvedPlan): Promise<unknown> {
  if (typeof found.input !== "string" || errorCode(error) === undefined) return error;
  const { code, message, details, facts, cause } = error as PreampError; // an error with one of our codes
  if (!Array.isArray(details) || details.length === 0) return error;
  return new PreampError(code, message, { details: await withPlacesIn(found, details), facts, cause });
}

/** Returns the details of a refused plan; rethrows an error without one of our codes. */
export function detailsOf(error: unknown): ErrorDetail[] {
  if (errorCode(error) === undefined) throw error;
  const { details, message } = error as PreampError;
  return details.length > 0 ? [...details] : [{ path: "", message }];
}

/** Returns the code of an error that {@link detailsOf} accepts. */
export function codeOf(error: unknown): Pick<PlanCheck, "code"> {
  return { code: errorCode(error) as ErrorCode };
}
