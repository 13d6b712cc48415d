/** What a route states about itself; the OpenAPI document is generated from it. */
import type { ErrorCode } from "../../sdk/errors.ts";
import type { BodyName, QueryName } from "../body/validation.ts";
import type { Handler } from "../context.ts";

/** Name of a response body. */
export type AnswerName = keyof typeof import("../schemas/responses.ts")["ANSWERS"];

/** A response of a route. */
export interface RouteAnswer {
  description: string;
  /** Media type → name of its schema (a list: any of them), or null for text. Absent: no body. */
  content?: Readonly<Record<string, AnswerName | readonly AnswerName[] | null>>;
}

/** One route. */
export interface Route {
  method: "GET" | "POST" | "PUT" | "DELETE";
  /** Path with parameters in braces, as in OpenAPI. */
  path: string;
  /** OpenAPI's operationId. */
  id: string;
  summary: string;
  /** Answered without a key. */
  open?: true;
  /** Starts or replays a run, which counts against `runs_per_minute`. */
  starts_run?: true;
  body?: BodyName;
  /** The body is optional. */
  body_optional?: true;
  /** The body may also be YAML, a form, or a plan. */
  accepts_plans?: true;
  query?: QueryName;
  /** Request headers with their effect on the response. */
  headers?: Readonly<Record<string, string>>;
  answers: Readonly<Record<number, RouteAnswer>>;
  /** Error codes in addition to {@link COMMON_CODES}, {@link KEY_CODES} and {@link BODY_CODES}. */
  codes?: readonly ErrorCode[];
  handle: Handler;
}

/** Error codes of all routes. */
const COMMON_CODES: readonly ErrorCode[] = [
  "request_invalid",
  "forbidden",
  "method_not_allowed",
  "internal",
];
/** Error codes of routes that need a key. */
const KEY_CODES: readonly ErrorCode[] = ["unauthorized", "rate_limited", "not_found", "overloaded"];
/** Error codes of routes with a body. */
const BODY_CODES: readonly ErrorCode[] = [
  "body_too_large",
  "unsupported_media_type",
  "request_timeout",
];

/** Error codes of loading the modules of a plan. */
export const LOAD_CODES: readonly ErrorCode[] = [
  "plan_invalid",
  "plan_limit_exceeded",
  "policy_refused",
  "module_source_denied",
  "isolation_unavailable",
  "module_integrity_mismatch",
  "module_pin_required",
  "lock_invalid",
  "module_too_large",
  "module_invalid",
  "module_load_failed",
  "module_fetch_failed",
  "module_fetch_timeout",
];

/** Error codes of starting a run. */
export const RUN_CODES: readonly ErrorCode[] = [
  ...LOAD_CODES,
  "session_busy",
  "session_conflict",
  "idempotency_conflict",
  "too_many_runs",
  "too_many_streams",
  "overloaded",
  "draining",
  "storage_full",
];

/** A response with the run object. */
export const RUN: RouteAnswer = { description: "the run", content: { "application/json": "Run" } };

/** Returns the responses of a route that answers 200 with JSON. */
export function ok(description: string, schema: AnswerName): Readonly<Record<number, RouteAnswer>> {
  return { 200: { description, content: { "application/json": schema } } };
}

/** Returns the error codes of a route without duplicates. */
export function codesOf(route: Route): ErrorCode[] {
  return [
    ...new Set([
      ...COMMON_CODES,
      ...(route.open ? [] : KEY_CODES),
      ...(route.body ? BODY_CODES : []),
      ...(route.codes ?? []),
    ]),
  ];
}
