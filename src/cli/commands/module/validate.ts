/**
 * `preamp module validate`: runs the checklist and the contract suite of a module's type in a separate
 * process.
 */
import {
  beyondChecklist,
  type ChecklistItem,
  checklistOf,
  countFindings,
} from "../../../app/validation/checklist.ts";
import { validateInProcess } from "../../../app/validation/process.ts";
import { MODULE_TYPES, typeOfId } from "../../../app/validation/export_checks.ts";
import { type Check, failed, passed } from "../../../kernel/module_checks.ts";
import { canMount, MUST_EXPORT } from "../../../loader/module_errors.ts";
import type { ModuleBundle } from "../../../loader/types.ts";
import { commaSeparated } from "../../../policy/settings.ts";
import { errorCode, errorMessage } from "../../../sdk/errors.ts";
import { isObject, type JsonObject } from "../../../sdk/json.ts";
import { PERMISSION_KINDS, type PermissionKind } from "../../../sdk/plan.ts";
import type { ModuleType } from "../../../sdk/types.ts";
import { decodePercent, escapeUnprintable } from "../../../text/escape.ts";
import { type Arguments, formatFlags, UsageError } from "../../arguments.ts";
import type { Command } from "../../commands.ts";
import { EXIT } from "../../errors.ts";
import { displayPath, ENTRY_NAMES, type ModuleTarget, readTarget, withLoader } from "../../module_target.ts";
import { reportedSettings, withSettings } from "../../settings.ts";
import { counted, styleOf } from "../../terminal/format.ts";
import type { Io, Output } from "../../terminal/io.ts";

export const command: Command = {
  usage: "module validate [-t TYPE] [--strict] [-o text|json] <path|url>",
  summary: "Checks a module against the contract of its type and runs it.",
  flags: withSettings([
    { name: "type", short: "t", choices: MODULE_TYPES, help: "type of the module" },
    { name: "strict", help: "treat warnings as errors" },
    ...formatFlags({ short: "o", help: "text (default), or the whole report as JSON" }),
    { name: "module-config", value: "JSON", help: "config for mount(), default {}" },
    {
      name: "allow",
      value: "KINDS",
      help: "permissions of the test process, such as net,env; default none",
    },
    { name: "structure-only", help: "call mount() once and skip the contract suite" },
  ]),
  details: () =>
    `Without --type, the type is the one that the module declares, else the prefix of its id (tool-, provider-, hooks-,
loop-, context-), else what it mounts. The module runs in a separate process without permissions and variables. The
process is stopped when a step takes more than 10 s. The contract suite mounts the module again for each case.
With warnings the exit code is 0, with --strict 1. In test files the same suites are testTool(), testProvider(),
testHook(), testOrchestrator() and testContext() of preamp/testing.
`,
  async run(args, io) {
    const options: ValidationOptions = {
      type: args.value("type") as ModuleType | undefined, // one of the flag's choices
      config: configOf(args),
      allow: commaSeparated(args.value("allow") ?? "").map(kindOf),
      structure_only: args.has("structure-only"),
    };
    const { policy } = await reportedSettings(args, io);
    const target = await readTarget(args, io, policy, "validate");
    const report = reportOf(await validate(target, options, io), args.has("strict"));
    return { data: report, text: reportText(report, io.out), exit: report.ok ? EXIT.done : EXIT.failed };
  },
};

interface ValidationOptions {
  type: ModuleType | undefined;
  config: JsonObject;
  allow: PermissionKind[];
  structure_only: boolean;
}

function configOf(args: Arguments): JsonObject {
  let config: unknown;
  try {
    config = JSON.parse(args.value("module-config") ?? "{}");
  } catch (error) {
    throw new UsageError(`Cannot use --module-config: it is not JSON: ${errorMessage(error)}`, {
      cause: error,
    });
  }
  if (isObject(config)) return config;
  const received = JSON.stringify(config);
  throw new UsageError(`Cannot use --module-config: it must be an object, but is ${received}`);
}

function kindOf(written: string): PermissionKind {
  const kind = PERMISSION_KINDS.find((name) => name === written);
  if (kind) return kind;
  const list = PERMISSION_KINDS.join(", ");
  throw new UsageError(
    `Cannot use --allow: the kinds are ${list}, and ${JSON.stringify(written)} is not one of them`,
  );
}

/** What is known about a module. */
interface Findings {
  module: string;
  id: string;
  type: ModuleType;
  integrity: string | null;
  checks: Check[];
  suite: Check[];
}

async function validate(target: ModuleTarget, options: ValidationOptions, io: Io): Promise<Findings> {
  const type = options.type ?? typeOfId(target.id) ?? "tool";
  const known = { module: displayPath(target.url, io), id: target.id, type, integrity: null, suite: [] };
  let bundle: ModuleBundle;
  try {
    bundle = await withLoader((loader) => loader.bundle(target.spec, target.context));
  } catch (error) {
    if (errorCode(error) === undefined) throw error;
    return { ...known, checks: [failed("module_importable", errorMessage(error))] };
  }
  const { integrity, exports } = bundle;
  const importable = [
    passed("module_importable", counted(bundle.files.length, "file")),
    ...refusals(bundle, io),
  ];
  if (!canMount(bundle)) {
    const has = exports.length === 0 ? "nothing" : exports.slice(0, 10).join(", ");
    const fact = `the module must ${MUST_EXPORT}; it exports ${has}`;
    return { ...known, integrity, checks: [...importable, failed("mount_exists", fact)] };
  }
  const outcome = await validateInProcess(bundle, {
    name: target.name,
    base_url: io.cwd.href,
    allow: options.allow,
    load_timeout_s: target.context.policy.isolation.load_timeout_s,
    options: { ...options, id: target.id },
  });
  if (outcome.console !== "") io.err.write(consoleText(outcome.console));
  if (outcome.kind === "failed") {
    const before = outcome.check.name === "module_importable" ? importable.slice(1) : importable;
    return { ...known, integrity, checks: [...before, outcome.check] };
  }
  const { validation } = outcome;
  const tests = await checkTests(target.url, validation.type);
  return {
    ...known,
    integrity,
    id: validation.id ?? target.id,
    type: validation.type,
    checks: [...importable, ...validation.checks, ...tests ? [tests] : []],
    suite: validation.suite,
  };
}

/** Returns a check for each import that could not be bundled and throws when it is executed. */
function refusals({ imports_refused }: ModuleBundle, io: Io): Check[] {
  return imports_refused.map(({ specifier, url, line, column }) => {
    const label = specifier === null ? "a computed import" : `the import of ${JSON.stringify(specifier)}`;
    const fact = `${label} at ${displayPath(url, io)}:${line}:${column} throws when it is executed`;
    // a computed import may be an unused fallback; a literal one is a mistake
    return specifier === null ? passed("module_imports", fact) : failed("module_imports", fact, "warning");
  });
}

const TEST_FILE = /[._]test\.[jt]sx?$/;

/**
 * Resolves to the check `module_tests`: the module has tests, and they mount it. Reads files and runs
 * nothing. The tests of an entry file are in its folder or in `tests/`, those of a single file `clock.ts` in
 * `clock_test.ts`. Resolves to null for a URL, and for a single file without tests.
 */
async function checkTests(entry: string, type: ModuleType): Promise<Check | null> {
  if (!entry.startsWith("file:")) return null;
  const name = "module_tests";
  const suite = `test${type[0]!.toUpperCase()}${type.slice(1)}`; // of preamp/testing, such as testTool
  const folder = new URL(".", entry);
  const own = nameOf(new URL(entry)).replace(/\.[a-z]+$/i, "");
  const whole = ENTRY_NAMES.has(own);
  const all = [...await testFiles(folder), ...whole ? await testFiles(new URL("tests/", folder)) : []];
  const files = whole ? all : all.filter((file) => nameOf(file).replace(TEST_FILE, "") === own);
  const advice = `write ${own}_test.ts with ${suite}("…", () => module) from "preamp/testing"`;
  if (files.length === 0) {
    return whole ? failed(name, `there is no test beside the module; ${advice}`, "warning") : null;
  }
  for (const file of files) {
    const text = await Deno.readTextFile(file);
    if (text.includes(`${suite}(`) || text.includes("mount(")) return passed(name, nameOf(file));
  }
  return failed(name, `no test calls mount() or ${suite}(); ${advice}`, "warning");
}

function nameOf(file: URL): string {
  return decodePercent(file.pathname.split("/").at(-1)!); // split() returns at least one part
}

async function testFiles(folder: URL): Promise<URL[]> {
  const files: URL[] = [];
  try {
    for await (const { name, isFile } of Deno.readDir(folder)) {
      if (isFile && TEST_FILE.test(name)) files.push(new URL(encodeURIComponent(name), folder));
    }
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
  return files.sort((a, b) => a.href < b.href ? -1 : 1);
}

/** The findings about a module, as `--output-format json` prints them. */
interface Report extends Findings {
  strict: boolean;
  ok: boolean;
  errors: number;
  warnings: number;
  checklist: ChecklistItem[];
}

/** Returns the report of checks, with counts and the checklist. */
function reportOf({ checks, suite, ...module }: Findings, strict: boolean): Report {
  const { errors, warnings } = countFindings([...checks, ...suite], strict);
  const checklist = checklistOf(module.type, checks);
  return { ...module, strict, ok: errors === 0, errors, warnings, checklist, checks, suite };
}

function reportText(report: Report, output: Output): string {
  const { bold, dim, green, red, yellow } = styleOf(output);
  const paint = { ok: green, warning: yellow, error: red, unknown: dim };
  const line = (state: keyof typeof paint, text: string) => {
    const shown = state === "warning" && report.strict ? "error" : state;
    const word = shown === "unknown" ? "-" : shown;
    return `  ${paint[shown](word.padEnd(7))}  ${clean(text)}\n`;
  };
  const checkLine = (check: Check) => line(stateOf(check), `${check.name}: ${check.message}`);
  const findings = (item: ChecklistItem) =>
    item.findings.map((text) => `           ${clean(text)}\n`).join("");
  const checklist = report.checklist.map((item) => line(item.state, item.item) + findings(item));
  const stopped = report.checks.every(({ name }) => name !== "protocol_compliance");
  const rest = beyondChecklist(report.type, report.checks).map(checkLine);
  const notable = report.suite.filter((check) => !check.passed || check.message !== "ok");
  const cases = report.suite.filter(({ passed }) => passed).length;
  const suite = report.suite.length === 0 ? [] : [
    line(worst(report.suite), `${cases} of ${report.suite.length} cases of the contract`),
    ...notable.map(checkLine),
  ];
  const title = `${bold(clean(report.id))}  ${report.type}  ${clean(report.module)}`;
  const sections = [stopped ? [] : checklist, rest, suite].filter((lines) => lines.length > 0);
  const verdict = report.ok ? green("ok") : red(counted(report.errors, "error"));
  const warned = report.warnings > 0 ? `, ${counted(report.warnings, "warning")}` : "";
  const hash = report.integrity === null ? "" : `  ${dim(report.integrity)}`;
  const text = sections.map((lines) => `${lines.join("")}\n`).join("");
  return `${title}\n\n${text}${clean(report.id)}: ${verdict}${warned}${hash}\n`;
}

function stateOf({ passed, severity }: Check): "ok" | "warning" | "error" {
  return passed ? "ok" : severity === "error" ? "error" : "warning";
}

function worst(checks: readonly Check[]): "ok" | "warning" | "error" {
  const states = checks.map(stateOf);
  return states.includes("error") ? "error" : states.includes("warning") ? "warning" : "ok";
}

/** Returns a module's console output with each line marked. */
function consoleText(text: string): string {
  const lines = text.trimEnd().split("\n").map((line) => `  | ${clean(line)}\n`);
  return `Console output of the module:\n${lines.join("")}`;
}

function clean(text: string): string {
  return escapeUnprintable(text.replaceAll(/\s+/g, " "));
}
