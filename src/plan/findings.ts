/**
 * What is found while a document is checked: named checks in upstream's style (behaviour.md §2.5), told as
 * {@link ErrorDetail}s with a place in the text when there is one, and thrown as one error that lists them all.
 */
import { type ErrorCode, type ErrorDetail, PreampError } from "../sdk/errors.ts";
import type { Position } from "./lines.ts";
import { formatPath, type Path } from "./path.ts";

/** How bad a finding is. */
export type Severity = "error" | "warning" | "info";

/** One check and how it went. */
export interface Check {
  /** Upstream's name of it, such as `tools[0]_module_required`. */
  name: string;
  passed: boolean;
  message: string;
  severity: Severity;
}

/** A check that did not pass, with its place. */
export interface Finding {
  /** The check's name without its path, such as `module_required`. */
  code: string;
  name: string;
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
  /** Every check, passed or not. */
  readonly checks: Check[] = [];
  /** What must be mended. */
  readonly errors: Finding[] = [];
  /** What may be wrong. */
  readonly warnings: Finding[] = [];

  /** Notes a failed check that makes the document invalid. `name` defaults to `<path>_<code>`. */
  error(path: Path, code: string, message: string, hint?: string, name?: string): void {
    this.errors.push(this.#failed("error", path, code, message, hint, name));
  }

  /** Notes a failed check that leaves the document valid. */
  warn(path: Path, code: string, message: string, hint?: string, name?: string): void {
    this.warnings.push(this.#failed("warning", path, code, message, hint, name));
  }

  /** Notes a check that passed. */
  pass(name: string, message: string): void {
    this.checks.push({ name, passed: true, message, severity: "info" });
  }

  #failed(
    severity: Severity,
    path: Path,
    code: string,
    message: string,
    hint: string | undefined,
    name: string | undefined,
  ): Finding {
    const place = formatPath(path);
    const finding: Finding = { code, name: name ?? (place ? `${place}_${code}` : code), path, message };
    if (hint !== undefined) finding.hint = hint;
    this.checks.push({ name: finding.name, passed: false, message, severity });
    return finding;
  }
}

/** Returns a finding as an error detail; with `locate`, line and column too. */
export function toDetail(finding: Omit<Finding, "code" | "name">, locate?: Locate): ErrorDetail {
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
