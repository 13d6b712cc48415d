/** `preamp plan diff`: compares what two plans may do. Fetches and runs nothing. */
import type { PlanChange, PlanDiff } from "../../plan/diff_module.ts";
import type { JsonValue } from "../../sdk/json.ts";
import { escapeUnprintable } from "../../text/escape.ts";
import { type Arguments, type Flag, UsageError } from "../arguments.ts";
import { type Command, TERMINAL } from "../command.ts";
import { DocumentFailure, EXIT } from "../errors.ts";
import type { Io, Output } from "../terminal/io.ts";
import { wantsJson, writeJson } from "../output_format.ts";
import { readPlans, type UncheckedPlan } from "../plan_files.ts";
import { FORMAT_FLAGS, withRuntime } from "./plan_command.ts";
import { cutToWidth, styleOf, wrapText } from "../terminal/format.ts";
import { policyFlags, settingFlags } from "../settings.ts";

const OWN_FLAGS: readonly Flag[] = [
  {
    name: "from",
    value: "FILE",
    many: true,
    help: "first plan; several files are merged from left to right",
  },
  {
    name: "plan",
    short: "p",
    value: "FILE",
    many: true,
    help: "second plan; several files are merged from left to right",
  },
  ...FORMAT_FLAGS,
  ...settingFlags(),
];

/** The command. */
export const command: Command = {
  usage: "plan diff [flags] [<from>] [<to>]",
  summary: "Compares two plans: what the second one widens, narrows and otherwise changes. `-` is stdin.",
  flags: [...OWN_FLAGS, ...policyFlags(OWN_FLAGS)],
  details: () =>
    `A change that is not proven to narrow counts as widening: a new module, another source, a removed pin, hook or limit,
a weaker tier, a wider grant, a variable, looser approval rules.
Each plan is a file, or several files merged as in \`preamp run\`: --from for the first plan, -p for the second.
Exit codes: 0 nothing widens, 1 something widens, 3 a plan is invalid.

  preamp plan diff old.yaml new.yaml
  preamp plan diff old.yaml -p base.yaml -p prod.yaml
  preamp plan diff --from base.yaml --from test.yaml -p base.yaml -p prod.yaml
`,
  run,
};

async function run(args: Arguments, io: Io): Promise<number> {
  const names = planPair(args);
  if (names.flat().filter((name) => name === "-").length > 1) {
    throw new UsageError(
      "Cannot compare plans: stdin can be read only once; name a file instead of the second -",
    );
  }
  const json = wantsJson(args);
  const from = await readPlans(names[0], io);
  const to = await readPlans(names[1], io);
  const diff = await withRuntime(args, io, async ({ plans }) => {
    // each plan separately first, so that an error names its file
    for (const side of [from, to]) {
      try {
        await plans.diff(input(side), input(side), TERMINAL);
      } catch (error) {
        throw new DocumentFailure(side.name, error);
      }
    }
    return await plans.diff(input(from), input(to), TERMINAL);
  });
  if (json) writeJson(io, diff);
  else io.out.write(diffText(diff, io.out));
  return diff.widens.length > 0 ? EXIT.failed : EXIT.done;
}

/** Returns the files of both plans, from flags or arguments. @throws {UsageError} for another number of plans. */
function planPair(args: Arguments): [from: readonly string[], to: readonly string[]] {
  const rest = [...args.rest];
  const filesOf = (flag: string): readonly string[] => args.has(flag) ? args.all(flag) : rest.splice(0, 1);
  const from = filesOf("from");
  const to = filesOf("plan");
  if (from.length > 0 && to.length > 0 && rest.length === 0) return [from, to];
  const received = [
    ...(args.has("from") ? ["--from"] : []),
    ...(args.has("plan") ? ["-p"] : []),
    ...args.rest.map((name) => JSON.stringify(name)),
  ];
  throw new UsageError(
    `Cannot compare plans: name two, <from> and <to>; --from and -p take several files that are merged. Received: ${
      received.join(" ") || "nothing"
    }`,
  );
}

function input({ plan, base_url }: UncheckedPlan): { plan: UncheckedPlan["plan"]; base_url: string } {
  return { plan, base_url };
}

/** Returns the changes as text: widening, narrowing, others. */
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
      ...(from === null ? [] : [dim(`    from ${formatValue(from, columns - 9)}\n`)]),
      ...(to === null ? [] : [dim(`    to   ${formatValue(to, columns - 9)}\n`)]),
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

function formatValue(value: JsonValue, columns: number): string {
  return cutToWidth(clean(JSON.stringify(value)), columns);
}

function clean(text: string): string {
  return escapeUnprintable(text);
}
