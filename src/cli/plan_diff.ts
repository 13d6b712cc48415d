/** `preamp plan diff`: what a plan may do that another may not, and the other way round. Fetches nothing, runs nothing. */
import type { PlanChange, PlanDiff } from "../plan/diff_report.ts";
import type { JsonValue } from "../sdk/json.ts";
import { escapeUnprintable } from "../server/printable.ts";
import type { Arguments, Flag } from "./arguments.ts";
import { TERMINAL } from "./caller.ts";
import type { Command } from "./command.ts";
import { EXIT } from "./exit.ts";
import { DocumentFailure } from "./failure.ts";
import type { Io, Output } from "./io.ts";
import { type PlanText, readPlanText } from "./plan_files.ts";
import { FORMAT_FLAG, wantsJson, withRuntime, writeJson } from "./plan_tools.ts";
import { styleOf } from "./style.ts";
import { UsageError } from "./usage_error.ts";
import { wrapText } from "./wrap.ts";
import { cutToWidth } from "./width.ts";
import { policyFlags, settingFlags } from "./settings.ts";

const OWN_FLAGS: readonly Flag[] = [FORMAT_FLAG, ...settingFlags()];

/** The command. */
export const command: Command = {
  usage: "plan diff [--output-format text|json] <from> <to>",
  summary: "Compares two plans: what the second widens, what it narrows, what else changed. `-` is stdin.",
  flags: [...OWN_FLAGS, ...policyFlags(OWN_FLAGS)],
  details: () =>
    `What cannot be shown to narrow is told as widening: a new module, another source, a removed pin, hook or ceiling, a
weaker tier, a wider grant, a variable, looser approval rules.
Exit codes: 0 nothing widens, 1 something does, 3 a plan is invalid.
`,
  run,
};

async function run(args: Arguments, io: Io): Promise<number> {
  const [first, second, ...more] = args.rest;
  if (first === undefined || second === undefined || more.length > 0) {
    throw new UsageError(`Cannot compare plans: name two of them: received ${args.rest.length}`);
  }
  if (first === "-" && second === "-") throw new UsageError("Cannot compare stdin with itself: name a file");
  const json = wantsJson(args);
  const from = await readPlanText(first, io);
  const to = await readPlanText(second, io);
  const diff = await withRuntime(args, io, async ({ plans }) => {
    // each by itself first, so that an error names its file
    for (const text of [from, to]) {
      try {
        await plans.diff(input(text), input(text), TERMINAL);
      } catch (error) {
        throw new DocumentFailure(text.name, error);
      }
    }
    return await plans.diff(input(from), input(to), TERMINAL);
  });
  if (json) writeJson(io, diff);
  else io.out.write(diffText(diff, io.out));
  return diff.widens.length > 0 ? EXIT.failed : EXIT.done;
}

function input({ text, url }: PlanText): { plan: string; base_url: string } {
  return { plan: text, base_url: url.href };
}

/** Returns the changes, those that widen first. */
export function diffText(diff: PlanDiff, output: Pick<Output, "color" | "columns">): string {
  const { bold, dim, green, red, yellow } = styleOf(output);
  const columns = Math.max(40, output.columns());
  const section = (
    title: string,
    sign: string,
    changes: readonly PlanChange[],
    paint: (text: string) => string,
  ) => {
    if (changes.length === 0) return [];
    const lines = changes.flatMap(({ path, from, to, message }) => [
      `${paint(sign)} ${bold(clean(path))}\n`,
      ...wrapText(clean(message), columns - 4).map((line) => `    ${line}\n`),
      ...(from === null ? [] : [dim(`    from ${shown(from, columns - 9)}\n`)]),
      ...(to === null ? [] : [dim(`    to   ${shown(to, columns - 9)}\n`)]),
    ]);
    return [`${paint(`${changes.length} ${title}`)}\n${lines.join("")}`];
  };
  const sections = [
    ...section("widen", "+", diff.widens, red),
    ...section("narrow", "-", diff.narrows, green),
    ...section("other", "~", diff.other, yellow),
  ];
  return sections.length === 0 ? `${green("no difference")}\n` : sections.join("\n");
}

function shown(value: JsonValue, columns: number): string {
  return cutToWidth(clean(JSON.stringify(value)), columns);
}

function clean(text: string): string {
  return escapeUnprintable(text);
}
