/** `preamp plan check`: every finding with its place, and the hash of what is fine. Runs nothing, fetches nothing. */
import { createRuntime } from "../app/runtime.ts";
import type { PlanCheck } from "../app/types.ts";
import type { ErrorDetail } from "../sdk/errors.ts";
import { escapeUnprintable } from "../server/printable.ts";
import type { Arguments, Flag } from "./arguments.ts";
import type { Command } from "./command.ts";
import { EXIT } from "./exit.ts";
import type { Io, Output } from "./io.ts";
import { type PlanText, readPlanText } from "./plan_files.ts";
import { TERMINAL } from "./caller.ts";
import { policyFlags, readSettings, settingFlags } from "./settings.ts";
import { styleOf } from "./style.ts";
import { UsageError } from "./usage_error.ts";

const OWN_FLAGS: readonly Flag[] = [
  { name: "json", help: "print {data: [{file, ok, errors, warnings, plan_hash, sources}]}" },
  ...settingFlags(),
];

/** The command. */
export const command: Command = {
  usage: "plan check [--json] <file>…",
  summary: "Checks plans against their form and the policy; nothing is run or fetched. `-` is stdin.",
  flags: [...OWN_FLAGS, ...policyFlags(OWN_FLAGS)],
  run,
};

interface CheckedFile extends PlanCheck {
  file: string;
}

async function run(args: Arguments, io: Io): Promise<number> {
  if (args.rest.length === 0) throw new UsageError("Cannot check a plan: no file was named");
  const { policy, sources } = await readSettings(args, io);
  const texts: PlanText[] = [];
  for (const name of args.rest) texts.push(await readPlanText(name, io)); // in order: stdin can be read once
  const { plans } = createRuntime({ policy, sources });
  const checked: CheckedFile[] = [];
  for (const { name, url, text } of texts) {
    checked.push({ file: name, ...await plans.check({ plan: text }, TERMINAL, { base_url: url.href }) });
  }
  if (args.has("json")) io.out.write(`${JSON.stringify({ data: checked }, null, io.out.terminal ? 2 : 0)}\n`);
  else checked.forEach((one) => io.out.write(checkText(one, io.out)));
  return exitOf(checked);
}

/** Returns the findings of a file, one a line, its hint below; then how it stands. */
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

/** A plan that has a hash is one; what is wrong with it then is what the policy refuses. */
function exitOf(checked: readonly CheckedFile[]): number {
  if (checked.some(({ ok, plan_hash }) => !ok && plan_hash === undefined)) return EXIT.plan_invalid;
  return checked.every(({ ok }) => ok) ? EXIT.done : EXIT.refused;
}
