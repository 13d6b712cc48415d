/** `preamp plan diff`: compares what two plans may do. It fetches and runs nothing. */
import type { PlanChange, PlanDiff } from "../../../plan/diff_module.ts";
import type { JsonValue } from "../../../sdk/json.ts";
import { escapeUnprintable } from "../../../text/escape.ts";
import { type Arguments, formatFlags, UsageError } from "../../arguments.ts";
import type { Answer, Command } from "../../commands.ts";
import { TERMINAL } from "../../terminal_caller.ts";
import { EXIT, inDocument } from "../../errors.ts";
import { PLAN_FLAG, readPlans, withPlans } from "../../plan_files.ts";
import { withSettings } from "../../settings.ts";
import { counted, cutToWidth, styleOf, wrapText } from "../../terminal/format.ts";
import type { Io, Output } from "../../terminal/io.ts";

const MERGED = "several files are merged from left to right";

export const command: Command = {
  usage: "plan diff [flags] [<from>] [<to>]",
  summary: "Compares two plans: what the second one widens, narrows and otherwise changes. `-` is stdin.",
  flags: withSettings([
    { name: "from", value: "FILE", many: true, help: `first plan; ${MERGED}` },
    { ...PLAN_FLAG, help: `second plan; ${MERGED}` },
    ...formatFlags({ help: "a table (default), or the object that the HTTP API answers" }),
  ]),
  details: () =>
    `A change that is not proven to narrow counts as widening: a new module, another source, a removed pin, hook or limit,
a weaker tier, a wider grant, a variable, looser approval rules.
Each plan is a file, or several files merged as in \`preamp run\`: --from for the first plan, -p for the second.
Exit codes: 0 nothing widens, 1 something widens, 3 a plan is invalid.

  preamp plan diff old.yaml new.yaml
  preamp plan diff old.yaml -p base.yaml -p prod.yaml
  preamp plan diff --from base.yaml --from test.yaml -p base.yaml -p prod.yaml
`,
  run: runDiff,
};

async function runDiff(args: Arguments, io: Io): Promise<Answer> {
  const names = planPair(args);
  if (names.flat().filter((name) => name === "-").length > 1) {
    throw new UsageError(
      "Cannot compare plans: stdin can be read only once; name a file instead of the second -",
    );
  }
  const { name: from_name, ...from } = await readPlans(names[0], io);
  const { name: to_name, ...to } = await readPlans(names[1], io);
  const diff = await withPlans(args, io, async ({ diff }) => {
    // each plan separately first, so that an error names its file
    await inDocument(from_name, diff(from, from, TERMINAL));
    await inDocument(to_name, diff(to, to, TERMINAL));
    return await diff(from, to, TERMINAL);
  });
  return { data: diff, text: diffText(diff, io.out), exit: diff.widens.length > 0 ? EXIT.failed : EXIT.done };
}

/**
 * Returns the files of both plans, from flags or arguments. @throws {UsageError} for another number of plans.
 */
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

/** Returns the changes as text: widening, narrowing, others. */
function diffText(diff: PlanDiff, output: Pick<Output, "color" | "columns">): string {
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
    return [`${paint(counted(changes.length, `${title} change`))}\n${lines.join("")}`];
  };
  const sections = [
    ...section("widening", "+", diff.widens, red),
    ...section("narrowing", "-", diff.narrows, green),
    ...section("other", "~", diff.other, yellow),
  ];
  return sections.length === 0 ? `${green("no difference")}\n` : sections.join("\n");
}

function formatValue(value: JsonValue, columns: number): string {
  return cutToWidth(clean(JSON.stringify(value)), columns);
}

const clean = escapeUnprintable;
