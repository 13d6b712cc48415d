/** `preamp module validate`: runs the checklist and the contract suite of a module's type in a separate process. */
import { validateInProcess } from "../../app/validation/process.ts";
import { type Check, failed, MODULE_TYPES, passed, typeOfId } from "../../kernel/mounting/module_checks.ts";
import type { ModuleBundle } from "../../loader/types.ts";
import { errorCode, errorMessage } from "../../sdk/errors.ts";
import { isObject, type JsonObject } from "../../sdk/json.ts";
import { PERMISSION_KINDS, type PermissionKind } from "../../sdk/plan.ts";
import type { ModuleType } from "../../sdk/types.ts";
import { type Arguments, type Flag, UsageError } from "../arguments.ts";
import type { Command } from "../command.ts";
import { EXIT } from "../errors.ts";
import type { Io } from "../terminal/io.ts";
import { consoleText, counted, type Report, reportOf, reportText } from "../module_report.ts";
import { displayPath, ENTRY_NAMES, type ModuleTarget, readTarget, withLoader } from "../module_target.ts";
import { formatFlags, wantsJson, writeJson } from "../output_format.ts";
import { policyFlags, readSettings, settingFlags } from "../settings.ts";

const OWN_FLAGS: readonly Flag[] = [
  { name: "type", short: "t", value: MODULE_TYPES.join("|"), help: "type of the module" },
  { name: "strict", help: "treat warnings as errors" },
  ...formatFlags({ short: "o", help: "text (default), or the whole report as JSON" }),
  { name: "module-config", value: "JSON", help: "config for mount(), default {}" },
  { name: "allow", value: "KINDS", help: "permissions of the test process, such as net,env; default none" },
  { name: "structure-only", help: "call mount() once and skip the contract suite" },
  ...settingFlags(),
];

/** The command. */
export const command: Command = {
  usage: "module validate [-t TYPE] [--strict] [-o text|json] <path|url>",
  summary: "Checks a module against the contract of its type and runs it.",
  flags: [...OWN_FLAGS, ...policyFlags(OWN_FLAGS)],
  details: () =>
    `Without --type, the type is the one that the module declares, else the prefix of its id (tool-, provider-, hooks-,
loop-, context-), else what it mounts. The module runs in a separate process without permissions and variables. The
process is stopped when a step takes more than 10 s. The contract suite mounts the module again for each case.
With warnings the exit code is 0, with --strict 1. In test files the same suites are testTool(), testProvider(),
testHook(), testOrchestrator() and testContext() of preamp/testing.
`,
  run,
};

interface ValidationOptions {
  type: ModuleType | undefined;
  config: JsonObject;
  allow: PermissionKind[];
  structure_only: boolean;
}

async function run(args: Arguments, io: Io): Promise<number> {
  const json = wantsJson(args);
  const options: ValidationOptions = {
    type: typeOf(args),
    config: configOf(args),
    allow: kindsOf(args),
    structure_only: args.has("structure-only"),
  };
  const { policy } = await readSettings(args, io);
  const target = await readTarget(args, io, policy, "validate");
  const report = await validate(target, options, args.has("strict"), io);
  if (json) writeJson(io, report);
  else io.out.write(reportText(report, io.out));
  return report.ok ? EXIT.done : EXIT.failed;
}

function typeOf(args: Arguments): ModuleType | undefined {
  const written = args.value("type");
  const type = MODULE_TYPES.find((name) => name === written);
  if (written === undefined || type) return type;
  throw new UsageError(
    `Cannot use --type: it must be ${MODULE_TYPES.join(", ")}, but is ${JSON.stringify(written)}`,
  );
}

function configOf(args: Arguments): JsonObject {
  const text = args.value("module-config");
  if (text === undefined) return {};
  let config: unknown;
  try {
    config = JSON.parse(text);
  } catch (error) {
    throw new UsageError(`Cannot use --module-config: it is not JSON: ${errorMessage(error)}`, {
      cause: error,
    });
  }
  if (isObject(config)) return config;
  throw new UsageError(
    `Cannot use --module-config: it must be an object, but is ${JSON.stringify(config)}`,
  );
}

function kindsOf(args: Arguments): PermissionKind[] {
  const written = (args.value("allow") ?? "").split(",").map((kind) => kind.trim()).filter((kind) =>
    kind !== ""
  );
  return written.map((kind) => {
    const known = PERMISSION_KINDS.find((name) => name === kind);
    if (known) return known;
    throw new UsageError(
      `Cannot use --allow: the kinds are ${PERMISSION_KINDS.join(", ")}, and ${
        JSON.stringify(kind)
      } is not one of them`,
    );
  });
}

async function validate(
  target: ModuleTarget,
  options: ValidationOptions,
  strict: boolean,
  io: Io,
): Promise<Report> {
  const report = {
    module: displayPath(target.url, io),
    id: target.id,
    type: options.type ?? typeOfId(target.id) ?? "tool",
    integrity: null,
    strict,
  };
  let bundle: ModuleBundle;
  try {
    bundle = await withLoader((loader) => loader.bundle(target.spec, target.context));
  } catch (error) {
    if (errorCode(error) === undefined) throw error;
    return reportOf({ ...report, checks: [failed("module_importable", errorMessage(error))], suite: [] });
  }
  const importable = [
    passed("module_importable", counted(bundle.files.length, "file")),
    ...refusals(bundle, io),
  ];
  const known = { ...report, integrity: bundle.integrity };
  if (!bundle.exports.includes("mount")) {
    const has = bundle.exports.length === 0 ? "nothing" : bundle.exports.slice(0, 10).join(", ");
    const fact = `the module must export mount(coordinator, config), but it exports ${has}`;
    return reportOf({ ...known, checks: [...importable, failed("mount_exists", fact)], suite: [] });
  }
  const { policy } = target.context;
  const outcome = await validateInProcess(bundle, {
    name: target.name,
    base_url: io.cwd.href,
    allow: options.allow,
    load_timeout_s: policy.isolation.load_timeout_s,
    options: { ...options, id: target.id },
  });
  if (outcome.console !== "") io.err.write(consoleText(outcome.console));
  if (outcome.kind === "failed") {
    const before = outcome.check.name === "module_importable" ? importable.slice(1) : importable;
    return reportOf({ ...known, checks: [...before, outcome.check], suite: [] });
  }
  const { id, type, checks, suite } = outcome.validation;
  const tests = await checkTests(target.url, type);
  return reportOf({
    ...known,
    id: id ?? target.id,
    type,
    checks: [...importable, ...checks, ...tests ? [tests] : []],
    suite,
  });
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

/** The contract suites of `preamp/testing`. Each mounts its module. */
const SUITES: Readonly<Partial<Record<ModuleType, string>>> = {
  tool: "testTool",
  provider: "testProvider",
  hook: "testHook",
  orchestrator: "testOrchestrator",
  context: "testContext",
};

/**
 * Resolves to the check `module_tests`: the module has tests, and they mount it. Reads files and runs nothing. The tests
 * of an entry file are in its folder or in `tests/`, those of a single file `clock.ts` in `clock_test.ts`. Resolves to
 * null for a URL, and for a single file without tests.
 */
export async function checkTests(entry: string, type: ModuleType): Promise<Check | null> {
  if (!entry.startsWith("file:")) return null;
  const name = "module_tests";
  const suite = SUITES[type] ?? "mount";
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
  return decodeURIComponent(file.pathname.split("/").at(-1)!); // split() returns at least one part
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
