/** Converts findings to {@link ErrorDetail}s with line and column, or to one error that lists them all. */
import { type ErrorCode, type ErrorDetail, PreampError } from "../../sdk/errors.ts";
import type { Position } from "../parse/document.ts";
import type { Finding } from "../../sdk/findings.ts";
import { formatPath, type Path } from "../../sdk/value_path.ts";

/** A warning as runs and `check` report it. */
export type WarningDetail = ErrorDetail & { code: string };

/** Returns the line and column of a path in the document's text. */
export type Locate = (path: Path) => Position;

/** Maximum number of findings in one error, to keep responses small. */
const MAX_DETAILS = 200;

/** Converts a finding to an error detail, with line and column if `locate` is given. */
export function toDetail(finding: Omit<Finding, "code">, locate?: Locate): ErrorDetail {
  const detail: ErrorDetail = { path: formatPath(finding.path), message: finding.message };
  if (locate) Object.assign(detail, locate(finding.path));
  if (finding.hint !== undefined) detail.hint = finding.hint;
  return detail;
}

/** Converts a warning like {@link toDetail}, with its code. */
export function toWarning(finding: Finding, locate?: Locate): WarningDetail {
  return { code: finding.code, ...toDetail(finding, locate) };
}

/**
 * Returns the error for an invalid document. Its message has the only finding, or the number of findings
 * and the first. `details` has at most 200.
 */
export function documentError(
  code: ErrorCode,
  label: string,
  details: readonly ErrorDetail[],
  cause?: unknown,
): PreampError {
  const [first] = details;
  const summary = first ? `${first.path && `${first.path}: `}${first.message}` : "the reason is unknown";
  const message = details.length === 1
    ? `Cannot accept ${label}: ${summary}`
    : `Cannot accept ${label}: ${details.length} problems, the first: ${summary}`;
  const facts = details.length > MAX_DETAILS ? { details_total: details.length } : {};
  return new PreampError(code, message, { details: details.slice(0, MAX_DETAILS), facts, cause });
}

/**
 * Formats a detail as one line for a terminal: `plans/support.yaml:14:5  tools[0].integrity  Cannot read
 * …`.
 */
export function formatDetail(detail: ErrorDetail, name: string): string {
  const { file = name, line, column = 1 } = detail;
  const place = line === undefined ? file : `${file}:${line}:${column}`;
  const path = detail.file === undefined ? detail.path : "";
  const text = [place, path, detail.message].filter((part) => part !== "").join("  ");
  return detail.hint === undefined ? text : `${text} (${detail.hint})`;
}
