/** `preamp plan check`: prints every finding with its place, and the hash of a valid plan. Runs and fetches nothing. */
import { createRuntime } from "../../app/runtime.ts";
import type { PlanCheck } from "../../app/types.ts";
import type { ErrorDetail } from "../../sdk/errors.ts";
import { escapeUnprintable } from "../../text/escape.ts";
import { type Arguments, type Flag, UsageError } from "../arguments.ts";
import { type Command, TERMINAL } from "../command.ts";
import { EXIT, exitOfCode } from "../errors.ts";
import type { Io, Output } from "../terminal/io.ts";
import { formatFlags, wantsJson, writeJson } from "../output_format.ts";
import { readPlans, type UncheckedPlan } from "../plan_files.ts";
import { MODEL_FLAG, modelOf, PLAN_FLAG } from "./plan_command.ts";
import { policyFlags, readSettings, settingFlags } from "../settings.ts";
import { styleOf } from "../terminal/format.ts";

const OWN_FLAGS: readonly Flag[] = [
  PLAN_FLAG,
  MODEL_FLAG,
  ...formatFlags({
    help: "text (default), or {data: [{file, ok, code, errors, warnings, plan_hash, sources}]}",
  }),
  ...settingFlags(),
];

/** The command. */
export const command: Command = {
  usage: "plan check [flags] [-p <file>]… [<file>…]",
  summary:
    "Checks plans and whether the policy allows them, without running or fetching anything. `-` is stdin.",
  flags: [...OWN_FLAGS, ...policyFlags(OWN_FLAGS)],
  details: () =>
    `Each <file> is checked separately. The files of -p are one plan, merged from left to right as in \`preamp run\`.
Exit codes: 0 all are valid, 3 a plan is invalid, 4 a plan is refused by policy.

  preamp plan check plans/*.yaml
  preamp plan check -p base.yaml -p prod.yaml
`,
  run,
};

interface CheckedFile extends PlanCheck {
  file: string;
}

async function run(args: Arguments, io: Io): Promise<number> {
  const merged = args.all("plan");
  if (args.rest.length + merged.length === 0) throw new UsageError("Cannot check a plan: no file was named");
  const json = wantsJson(args);
  const { policy, sources } = await readSettings(args, io);
  const unchecked: UncheckedPlan[] = merged.length > 0 ? [await readPlans(merged, io)] : [];
  for (const name of args.rest) unchecked.push(await readPlans([name], io)); // in order: stdin can be read once
  const { plans } = createRuntime({ policy, sources });
  const checked: CheckedFile[] = [];
  for (const { name, plan, base_url } of unchecked) {
    checked.push({ file: name, ...await plans.check({ plan, ...modelOf(args) }, TERMINAL, { base_url }) });
  }
  if (json) writeJson(io, { data: checked });
  else checked.forEach((check) => io.out.write(checkText(check, io.out)));
  return exitOf(checked);
}

/** Returns the findings of a file, one on each line with its hint below, and a last line with the result. */
export function checkText(
  { file, ok, errors, warnings, plan_hash, sources = [] }: CheckedFile,
  output: Output,
): string {
  const { bold, cyan, dim, green, red, yellow } = styleOf(output);
  const line = (detail: ErrorDetail, level: string) => {
    const place = detail.line === undefined ? file : `${file}:${detail.line}:${detail.column ?? 1}`;
    const parts = [
      cyan(clean(place)),
      ...(detail.path === "" ? [] : [bold(clean(detail.path))]),
      `${level}${clean(detail.message)}`,
    ];
    return `${parts.join("  ")}\n${
      detail.hint === undefined ? "" : dim(`    hint: ${clean(detail.hint)}\n`)
    }`;
  };
  const found = [
    ...sources.map(({ path, source, url }) =>
      dim(`${clean(file)}  ${clean(path)}  ${clean(source)} is ${clean(url)}\n`)
    ),
    ...errors.map((detail) => line(detail, "")),
    ...warnings.map((detail) => line(detail, yellow("warning: "))),
  ];
  const counts = [
    counted(errors.length, "error"),
    ...(warnings.length > 0 ? [counted(warnings.length, "warning")] : []),
  ];
  const verdict = ok
    ? `${green("ok")}${warnings.length > 0 ? `, ${counted(warnings.length, "warning")}` : ""}  ${plan_hash}`
    : red(counts.join(", "));
  return `${found.join("")}${clean(file)}: ${verdict}\n`;
}

function clean(text: string): string {
  return escapeUnprintable(text);
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/** Returns the exit code: an invalid plan takes precedence over one that the policy refuses. */
function exitOf(checked: readonly CheckedFile[]): number {
  const codes = checked.flatMap(({ ok, code }) => ok ? [] : [exitOfCode(code)]);
  return [EXIT.plan_invalid, EXIT.refused].find((code) => codes.includes(code)) ?? codes[0] ?? EXIT.done;
}
