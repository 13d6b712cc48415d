/** `preamp module validate`: R2's checklist and the contract suite of a module's type, tried in a process of its own. */
import { validateInProcess } from "../../app/validation/process.ts";
import { failed, MODULE_TYPES, passed, typeOfId } from "../../kernel/mounting/module_checks.ts";
import type { Check } from "../../kernel/mounting/validate_instance.ts";
import type { ModuleBundle } from "../../loader/types.ts";
import { errorCode, errorMessage } from "../../sdk/errors.ts";
import { isObject, type JsonObject } from "../../sdk/json.ts";
import { PERMISSION_KINDS, type PermissionKind } from "../../sdk/permission_kinds.ts";
import type { ModuleType } from "../../sdk/types.ts";
import type { Arguments, Flag } from "../arguments.ts";
import type { Command } from "../command.ts";
import { EXIT } from "../exit.ts";
import type { Io } from "../terminal/io.ts";
import { consoleText, counted, type Report, reportOf, reportText } from "../module_report.ts";
import { displayPath, type ModuleTarget, readTarget, withLoader } from "../module_target.ts";
import { checkTests } from "./module_tests.ts";
import { formatFlags, wantsJson, writeJson } from "../output_format.ts";
import { policyFlags, readSettings, settingFlags } from "../settings.ts";
import { UsageError } from "../usage_error.ts";

const OWN_FLAGS: readonly Flag[] = [
  { name: "type", short: "t", value: MODULE_TYPES.join("|"), help: "what it is" },
  { name: "strict", help: "warnings are errors" },
  ...formatFlags({ short: "o", help: "what a person reads (default), or the whole report" }),
  { name: "module-config", value: "JSON", help: "the config it is mounted with, default {}" },
  { name: "allow", value: "KINDS", help: "permissions it is tried with, such as net,env; default none" },
  { name: "structure-only", help: "leave the contract suite out: mount() is called once" },
  ...settingFlags(),
];

/** The command. */
export const command: Command = {
  usage: "module validate [-t TYPE] [--strict] [-o text|json] <path|url>",
  summary: "Checks a module against the contract of its type, and tries it.",
  flags: [...OWN_FLAGS, ...policyFlags(OWN_FLAGS)],
  details: () =>
    `Without --type a module's own word counts, then the prefix of its id (tool-, provider-, hooks-, loop-,
context-), then what it mounts. It runs in a process of its own without permissions or variables, which is
ended when a step takes more than 10 s; the contract suite mounts it anew for each case. Warnings leave the
exit code 0; --strict makes it 1. In a test file, the same suites are testTool() and its siblings of
preamp/testing.
`,
  run,
};

interface Wishes {
  type: ModuleType | undefined;
  config: JsonObject;
  allow: PermissionKind[];
  structure_only: boolean;
}

async function run(args: Arguments, io: Io): Promise<number> {
  const json = wantsJson(args);
  const wishes: Wishes = {
    type: typeOf(args),
    config: configOf(args),
    allow: kindsOf(args),
    structure_only: args.has("structure-only"),
  };
  const { policy } = await readSettings(args, io);
  const target = await readTarget(args, io, policy, "validate");
  const report = await validate(target, wishes, args.has("strict"), io);
  if (json) writeJson(io, report);
  else io.out.write(reportText(report, io.out));
  return report.ok ? EXIT.done : EXIT.failed;
}

function typeOf(args: Arguments): ModuleType | undefined {
  const written = args.value("type");
  const type = MODULE_TYPES.find((one) => one === written);
  if (written === undefined || type) return type;
  throw new UsageError(
    `Cannot use --type: it is ${MODULE_TYPES.join(", ")}: received ${JSON.stringify(written)}`,
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
    `Cannot use --module-config: it must be an object: received ${JSON.stringify(config)}`,
  );
}

function kindsOf(args: Arguments): PermissionKind[] {
  const written = (args.value("allow") ?? "").split(",").map((kind) => kind.trim()).filter((kind) =>
    kind !== ""
  );
  return written.map((kind) => {
    const known = PERMISSION_KINDS.find((one) => one === kind);
    if (known) return known;
    throw new UsageError(
      `Cannot use --allow: it takes ${PERMISSION_KINDS.join(", ")}: received ${JSON.stringify(kind)}`,
    );
  });
}

async function validate(target: ModuleTarget, wishes: Wishes, strict: boolean, io: Io): Promise<Report> {
  const report = {
    module: displayPath(target.url, io),
    id: target.id,
    type: wishes.type ?? typeOfId(target.id) ?? "tool",
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
    const fact = `the module must export mount(coordinator, config): it exports ${has}`;
    return reportOf({ ...known, checks: [...importable, failed("mount_exists", fact)], suite: [] });
  }
  const { policy } = target.context;
  const outcome = await validateInProcess(bundle, {
    name: target.name,
    base_url: io.cwd.href,
    allow: wishes.allow,
    load_timeout_s: policy.isolation.load_timeout_s,
    options: { ...wishes, id: target.id },
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

/** Imports that could not be bundled throw when they are reached: told here, before anybody reaches them. */
function refusals({ imports_refused }: ModuleBundle, io: Io): Check[] {
  return imports_refused.map(({ specifier, url, line, column }) => {
    const what = specifier === null ? "a computed import" : `the import of ${JSON.stringify(specifier)}`;
    const fact = `${what} at ${displayPath(url, io)}:${line}:${column} throws when it is reached`;
    // what is computed may be a fallback that is never reached; what is written down was meant to be imported
    return specifier === null ? passed("module_imports", fact) : failed("module_imports", fact, "warning");
  });
}
