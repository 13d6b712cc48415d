/**
 * `preamp plan check`: prints every finding with its place, and the hash of a valid plan. Runs and fetches
 * nothing.
 */
import type { PlanCheck } from "../../../app/types.ts";
import type { ErrorDetail } from "../../../sdk/errors.ts";
import { escapeUnprintable } from "../../../text/escape.ts";
import { type Arguments, formatFlags } from "../../arguments.ts";
import type { Answer, Command } from "../../commands.ts";
import { TERMINAL } from "../../terminal_caller.ts";
import { EXIT, exitOfCode } from "../../errors.ts";
import { MODEL_FLAG, modelOf, PLAN_FLAG, planNames, readPlans, withPlans } from "../../plan_files.ts";
import { withSettings } from "../../settings.ts";
import { counted, styleOf } from "../../terminal/format.ts";
import type { Io, Output } from "../../terminal/io.ts";

export const command: Command = {
  usage: "plan check [flags] [-p <file>]… [<file>…]",
  summary:
    "Checks plans and whether the policy allows them, without running or fetching anything. `-` is stdin.",
  flags: withSettings([
    PLAN_FLAG,
    MODEL_FLAG,
    ...formatFlags({
      help: "text (default), or {data: [{file, ok, code, errors, warnings, plan_hash, sources}]}",
    }),
  ]),
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

async function run(args: Arguments, io: Io): Promise<Answer> {
  planNames(args, "check");
  const merged = args.all("plan");
  const plans = merged.length > 0 ? [await readPlans(merged, io)] : [];
  for (const name of args.rest) plans.push(await readPlans([name], io)); // in order: stdin can be read once
  const data = await withPlans(args, io, async ({ check }) => {
    const checked: CheckedFile[] = [];
    for (const { name, plan, base_url } of plans) {
      checked.push({ file: name, ...await check({ plan, ...modelOf(args) }, TERMINAL, { base_url }) });
    }
    return checked;
  }, { overridden: true });
  return { data: { data }, text: data.map((file) => checkText(file, io.out)).join(""), exit: exitOf(data) };
}

/** Returns the findings of a file, one on each line with its hint below, and a last line with the result. */
function checkText(
  { file, ok, errors, warnings, plan_hash, sources = [] }: CheckedFile,
  output: Output,
): string {
  const { bold, cyan, dim, green, red, yellow } = styleOf(output);
  const clean = escapeUnprintable;
  const line = ({ line, column = 1, path, message, hint }: ErrorDetail, level: string) => {
    const place = line === undefined ? file : `${file}:${line}:${column}`;
    const parts = [cyan(clean(place)), ...(path === "" ? [] : [bold(clean(path))]), level + clean(message)];
    return `${parts.join("  ")}\n${hint === undefined ? "" : dim(`    hint: ${clean(hint)}\n`)}`;
  };
  const found = [
    ...sources.map(({ path, source, url }) =>
      dim(`${clean(file)}  ${clean(path)}  ${clean(source)} is ${clean(url)}\n`)
    ),
    ...errors.map((detail) => line(detail, "")),
    ...warnings.map((detail) => line(detail, yellow("warning: "))),
  ];
  const warned = warnings.length > 0 ? `, ${counted(warnings.length, "warning")}` : "";
  const verdict = ok
    ? `${green("ok")}${warned}  ${plan_hash}`
    : red(`${counted(errors.length, "error")}${warned}`);
  return `${found.join("")}${clean(file)}: ${verdict}\n`;
}

/** Returns the exit code: an invalid plan takes precedence over one that the policy refuses. */
function exitOf(checked: readonly CheckedFile[]): number {
  const codes = checked.flatMap(({ ok, code }) => ok ? [] : [exitOfCode(code)]);
  return [EXIT.plan_invalid, EXIT.refused].find((code) => codes.includes(code)) ?? codes[0] ?? EXIT.done;
}
