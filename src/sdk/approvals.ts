/** The approval models of behaviour.md §4.7: what a module that asks by itself sends and gets. */
import { fieldError, requireOneOf, requireText } from "./checks.ts";
import type { JsonObject } from "./json.ts";
import type { RiskLevel } from "./tools.ts";

/** What a person is asked about. */
export interface ApprovalRequest {
  /** Tool that wants to act. */
  tool_name: string;
  /** What it wants to do, such as `execute`. */
  action: string;
  /** Facts for the person who decides. */
  details: JsonObject;
  /** How much harm it can do. */
  risk_level: RiskLevel;
  /** Seconds to wait; above 0, or null for no limit. */
  timeout: number | null;
}

/** What the person decided. */
export interface ApprovalResponse {
  /** Whether it may act. */
  approved: boolean;
  /** Why, in the person's words. */
  reason: string | null;
  /** Whether the same question need not be asked again. */
  remember: boolean;
}

const RISKS: readonly RiskLevel[] = ["low", "medium", "high", "critical"];

/**
 * Returns an approval request with every default filled in: no details, risk `low`, no limit.
 *
 * @throws {TypeError} when a name is empty, the risk unknown, or the timeout not above 0.
 */
export function ApprovalRequest(
  fields: { tool_name: string; action: string } & Partial<ApprovalRequest>,
): ApprovalRequest {
  const request: ApprovalRequest = { details: {}, risk_level: "low", timeout: null, ...fields };
  requireText("ApprovalRequest", "tool_name", request.tool_name);
  requireText("ApprovalRequest", "action", request.action);
  requireOneOf("ApprovalRequest", "risk_level", request.risk_level, RISKS);
  const { timeout } = request;
  if (timeout !== null && !(typeof timeout === "number" && timeout > 0)) {
    throw fieldError("ApprovalRequest", "timeout", "must be a number of seconds above 0, or null", timeout);
  }
  return request;
}

/**
 * Returns an approval response with every default filled in: no reason, not remembered.
 *
 * @throws {TypeError} when `approved` is no boolean.
 */
export function ApprovalResponse(
  fields: { approved: boolean } & Partial<ApprovalResponse>,
): ApprovalResponse {
  if (typeof fields.approved !== "boolean") {
    throw fieldError("ApprovalResponse", "approved", "must be a boolean", fields.approved);
  }
  return { reason: null, remember: false, ...fields };
}
