/** Data models of approvals, for modules that ask for approval themselves. */
import { fieldError, requireOneOf, requireText } from "./checks.ts";
import type { JsonObject } from "./json.ts";
import type { RiskLevel } from "./tools.ts";

/** Request for an approval. */
export interface ApprovalRequest {
  /** Name of the tool. */
  tool_name: string;
  /** Action of the tool, such as `execute`. */
  action: string;
  /** Facts for the person who decides. */
  details: JsonObject;
  /** Possible harm. */
  risk_level: RiskLevel;
  /** Timeout in seconds, above 0; null for no limit. */
  timeout: number | null;
}

/** Decision of a person. */
export interface ApprovalResponse {
  /** Whether the action is allowed. */
  approved: boolean;
  /** Reason in the person's words. */
  reason: string | null;
  /** Whether the answer also holds for the same question later. */
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
 * @throws {TypeError} when `approved` is not a boolean.
 */
export function ApprovalResponse(
  fields: { approved: boolean } & Partial<ApprovalResponse>,
): ApprovalResponse {
  if (typeof fields.approved !== "boolean") {
    throw fieldError("ApprovalResponse", "approved", "must be a boolean", fields.approved);
  }
  return { reason: null, remember: false, ...fields };
}
