/**
 * What is found while a document is checked, told as {@link ErrorDetail}s with a place in the text when there is one, and thrown as one error that lists them all.
 */
import { type ErrorCode, type ErrorDetail, PreampError } from "../../sdk/errors.ts";
import type { Position } from "../parse/line_index.ts";
import { formatPath, type Path } from "../value_path.ts";

/** What is wrong, or may be, with its place. */
export interface Finding {
  /** What kind of finding it is, such as `module_required`. */
  code: string;
  path: Path;
  message: string;
  hint?: string;
}

/** A warning as runs and `check` show it. */
export type WarningDetail = ErrorDetail & { code: string };

/** Finds the place of a path in the text a document was read from. */
export type Locate = (path: Path) => Position;

/** At most this many findings travel in one error; our choice: nobody mends more at once, and answers stay small. */
const MAX_DETAILS = 200;

/** Collects findings in the order they are made. */
export class Findings {
  /** What must be mended. */
  readonly errors: Finding[] = [];
  /** What may be wrong. */
  readonly warnings: Finding[] = [];

  /** Notes what makes the document invalid. */
  error(path: Path, code: string, message: string, hint?: string): void {
    this.errors.push({ code, path, message, ...(hint === undefined ? {} : { hint }) });
  }

  /** Notes what leaves the document valid. */
  warn(path: Path, code: string, message: string, hint?: string): void {
    this.warnings.push({ code, path, message, ...(hint === undefined ? {} : { hint }) });
  }
}

/** Returns a finding as an error detail; with `locate`, line and column too. */
export function toDetail(finding: Omit<Finding, "code">, locate?: Locate): ErrorDetail {
  const detail: ErrorDetail = { path: formatPath(finding.path), message: finding.message };
  if (locate) Object.assign(detail, locate(finding.path));
  if (finding.hint !== undefined) detail.hint = finding.hint;
  return detail;
}

/** Returns a warning as {@link toDetail} with its code. */
export function toWarning(finding: Finding, locate?: Locate): WarningDetail {
  return { code: finding.code, ...toDetail(finding, locate) };
}

/**
 * Returns the error for a document with findings: its message is the finding when there is one, else their number and
 * the first; `details` lists all, cut at 200.
 */
export function documentError(
  code: ErrorCode,
  what: string,
  details: readonly ErrorDetail[],
  cause?: unknown,
): PreampError {
  const [first] = details;
  const summary = first ? `${first.path && `${first.path}: `}${first.message}` : "nothing is known about why";
  const message = details.length === 1
    ? `Cannot accept ${what}: ${summary}`
    : `Cannot accept ${what}: ${details.length} problems, the first: ${summary}`;
  const facts = details.length > MAX_DETAILS ? { details_total: details.length } : {};
  return new PreampError(code, message, { details: details.slice(0, MAX_DETAILS), facts, cause });
}

/** Returns a detail as one line for a terminal: `plans/support.yaml:14:5  tools[0].integrity  Cannot read …` (plan.md, Errors). */
export function formatDetail(detail: ErrorDetail, name: string): string {
  const { file = name, line, column = 1 } = detail;
  const place = line === undefined ? file : `${file}:${line}:${column}`;
  const path = detail.file === undefined ? detail.path : "";
  const text = [place, path, detail.message].filter((part) => part !== "").join("  ");
  return detail.hint === undefined ? text : `${text} (${detail.hint})`;
}
