/** The report of `preamp module validate`, as data and as text. Does no I/O. */
import { beyondChecklist, type ChecklistItem, checklistOf } from "../app/validation/checklist.ts";
import { countFindings } from "../app/validation/report.ts";
import type { Check } from "../kernel/mounting/module_checks.ts";
import type { ModuleType } from "../sdk/types.ts";
import { escapeUnprintable } from "../text/escape.ts";
import type { Output } from "./terminal/io.ts";
import { styleOf } from "./terminal/format.ts";

/** The findings about a module, as `--output-format json` prints them. */
export interface Report {
  module: string;
  id: string;
  type: ModuleType;
  integrity: string | null;
  strict: boolean;
  ok: boolean;
  errors: number;
  warnings: number;
  checklist: ChecklistItem[];
  checks: Check[];
  suite: Check[];
}

/** Returns the report of checks, with counts and the checklist. */
export function reportOf(findings: Omit<Report, "ok" | "errors" | "warnings" | "checklist">): Report {
  const { errors, warnings } = countFindings([...findings.checks, ...findings.suite], findings.strict);
  const { checks, suite, ...rest } = findings;
  const checklist = checklistOf(findings.type, checks);
  return { ...rest, ok: errors === 0, errors, warnings, checklist, checks, suite };
}

/** Returns the report as text. */
export function reportText(report: Report, output: Output): string {
  const { bold, dim, green, red, yellow } = styleOf(output);
  const paint = { ok: green, warning: yellow, error: red, unknown: dim };
  const line = (state: keyof typeof paint, text: string) =>
    `  ${paint[state === "warning" && report.strict ? "error" : state](wordOf(state, report).padEnd(7))}  ${
      clean(text)
    }\n`;
  const findings = (item: ChecklistItem) =>
    item.findings.map((text) => `           ${clean(text)}\n`).join("");
  const checklist = report.checklist.map((item) => line(item.state, item.item) + findings(item));
  const stopped = report.checks.every(({ name }) => name !== "protocol_compliance");
  const rest = beyondChecklist(report.type, report.checks).map((check) =>
    line(stateOf(check), `${check.name}: ${check.message}`)
  );
  const notable = report.suite.filter((check) => !check.passed || check.message !== "ok");
  const cases = report.suite.filter(({ passed }) => passed).length;
  const suite = report.suite.length === 0 ? [] : [
    line(
      worst(report.suite),
      `${cases} of ${report.suite.length} cases of the contract`,
    ),
    ...notable.map((check) => line(stateOf(check), `${check.name}: ${check.message}`)),
  ];
  const title = `${bold(clean(report.id))}  ${report.type}  ${clean(report.module)}`;
  const sections = [stopped ? [] : checklist, rest, suite].filter((lines) => lines.length > 0);
  const verdict = report.ok ? green("ok") : red(counted(report.errors, "error"));
  const warned = report.warnings > 0 ? `, ${counted(report.warnings, "warning")}` : "";
  const hash = report.integrity === null ? "" : `  ${dim(report.integrity)}`;
  return `${title}\n\n${sections.map((lines) => `${lines.join("")}\n`).join("")}${
    clean(report.id)
  }: ${verdict}${warned}${hash}\n`;
}

function stateOf({ passed, severity }: Check): "ok" | "warning" | "error" {
  return passed ? "ok" : severity === "error" ? "error" : "warning";
}

function worst(checks: readonly Check[]): "ok" | "warning" | "error" {
  const states = checks.map(stateOf);
  return states.includes("error") ? "error" : states.includes("warning") ? "warning" : "ok";
}

function wordOf(state: ChecklistItem["state"], { strict }: Report): string {
  if (state === "unknown") return "-";
  return state === "warning" && strict ? "error" : state;
}

/** Returns a module's console output with each line marked. */
export function consoleText(text: string): string {
  const lines = text.trimEnd().split("\n").map((line) => `  | ${clean(line)}\n`);
  return `Console output of the module:\n${lines.join("")}`;
}

function clean(text: string): string {
  return escapeUnprintable(text.replaceAll(/\s+/g, " "));
}

/** Returns `1 file`, `2 files`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
