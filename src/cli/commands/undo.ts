/** `preamp undo`: puts back the files that a run has changed (src/docs/chat.md#undo). */
import type { ChangedRun, UndoReport } from "../../runs/types.ts";
import { type Arguments, formatFlags, UsageError } from "../arguments.ts";
import type { Command } from "../commands.ts";
import { TERMINAL } from "../terminal_caller.ts";
import { EXIT } from "../errors.ts";
import { timeText, withStoredRuns } from "../run_session.ts";
import { settingFlags } from "../settings.ts";
import { counted } from "../terminal/format.ts";
import { formatValue } from "../terminal/progress_lines.ts";

export const command: Command = {
  usage: "undo [flags] <run>",
  summary:
    "Puts back the files that a stored run has changed with its tools. `last` is the newest with changes.",
  flags: [
    ...settingFlags(["store"]),
    ...formatFlags({ help: "text (default), or {run_id, undone, not_undone}" }),
  ],
  details: () =>
    `A file that was changed since stays as it is. What commands of the run did is not undone. A run whose process has
died is ended first. Exit codes: 0 all is put back, 1 some files are not. preamp runs lists the runs; those without
--session are not stored.
`,
  async run(args, io) {
    const wanted = runOf(args);
    return await withStoredRuns(args, io, async ({ runs }) => {
      if (wanted !== "last") return resultOf(await runs.undo(TERMINAL, wanted), []);
      for await (const changed of runs.changedRuns(TERMINAL)) {
        return resultOf(await runs.undo(TERMINAL, changed.run.id), [`${titleOf(changed)}:`]);
      }
      const { data: [newest] } = await runs.list(TERMINAL, { limit: 1 });
      if (newest) {
        const data: UndoReport = { object: "undo", run_id: newest.id, undone: [], not_undone: [] };
        return { data, text: "Nothing to undo: no stored run has changes of files that are not undone\n" };
      }
      throw new UsageError(
        "Cannot undo the last run: no run is stored; preamp run --session new and preamp chat store theirs",
      );
    });
  },
};

function runOf({ rest: [run, ...more] }: Arguments): string {
  if (run !== undefined && more.length === 0) return run;
  throw new UsageError("Cannot undo: name one run, such as run_…, or last; preamp runs lists them");
}

function resultOf(report: UndoReport, title: string[]) {
  const exit = report.not_undone.length === 0 ? EXIT.done : EXIT.failed;
  return { data: report, text: `${[...title, ...undoLines(report)].join("\n")}\n`, exit };
}

/** Characters of a prompt in a title. */
const MAX_PROMPT = 60;

/** Returns the name of a run for a person: its prompt, or its id, and when it began. */
export function titleOf({ run }: ChangedRun): string {
  return `${promptText(run)} (${run.id}, ${timeText(run.created_at)} UTC)`;
}

/** Returns the begin of a run's prompt in quotation marks; its id if it has no text. */
export function promptText({ id, title }: ChangedRun["run"]): string {
  const text = formatValue(title || id);
  return JSON.stringify(text.length <= MAX_PROMPT ? text : `${text.slice(0, MAX_PROMPT - 1)}…`);
}

/** Returns the number of files of a run, and their names as far as there is room. */
export function filesText({ paths }: ChangedRun): string {
  const named = paths.slice(0, 3).map(formatValue).join(", ");
  return `${counted(paths.length, "file")}: ${named}${paths.length > 3 ? ", …" : ""}`;
}

/** Returns what an undo has done, a line for each file. */
export function undoLines({ run_id, undone, not_undone }: UndoReport): string[] {
  const lines = [
    ...undone.map(({ path, action }) => `${action} ${formatValue(path)}`),
    ...not_undone.map(({ path, reason }) => `not undone: ${formatValue(path)}: ${reason}`),
  ];
  return lines.length === 0 ? [`Nothing to undo: ${run_id} has changed no file, or it is undone`] : lines;
}
