/** `preamp undo`: puts back the files that a run has changed (src/docs/chat.md#undo). */
import type { UndoReport } from "../../runs/types.ts";
import { type Arguments, formatFlags, UsageError } from "../arguments.ts";
import { type Command, TERMINAL } from "../commands.ts";
import { EXIT } from "../errors.ts";
import { withStoredRuns } from "../run_session.ts";
import { settingFlags } from "../settings.ts";
import { formatValue } from "../terminal/progress_lines.ts";

export const command: Command = {
  usage: "undo [flags] <run>",
  summary: "Puts back the files that a stored run has changed with its tools. `last` is the newest run.",
  flags: [
    ...settingFlags(["store"]),
    ...formatFlags({ help: "text (default), or {undone, not_undone}" }),
  ],
  details: () =>
    "A file that was changed since stays as it is. What commands of the run did is not undone. Exit codes: " +
    "0 all is put back, 1 some files are not. preamp runs lists the runs; those without --session are not " +
    "stored.\n",
  async run(args, io) {
    const wanted = runOf(args);
    return await withStoredRuns(args, io, async ({ runs }) => {
      const [newest] = wanted === "last" ? (await runs.list(TERMINAL, { limit: 1 })).data : [];
      if (wanted === "last" && !newest) {
        throw new UsageError(
          "Cannot undo the last run: no run is stored; preamp run --session new and preamp chat store theirs",
        );
      }
      const report = await runs.undo(TERMINAL, newest?.id ?? wanted);
      const exit = report.not_undone.length === 0 ? EXIT.done : EXIT.failed;
      return { data: report, text: `${undoLines(report).join("\n")}\n`, exit };
    });
  },
};

function runOf({ rest: [run, ...more] }: Arguments): string {
  if (run !== undefined && more.length === 0) return run;
  throw new UsageError("Cannot undo: name one run, such as run_…, or last; preamp runs lists them");
}

/** Returns what an undo has done, a line for each file. */
export function undoLines({ run_id, undone, not_undone }: UndoReport): string[] {
  const lines = [
    ...undone.map(({ path, action }) => `${action} ${formatValue(path)}`),
    ...not_undone.map(({ path, reason }) => `not undone: ${formatValue(path)}: ${reason}`),
  ];
  return lines.length === 0 ? [`Nothing to undo: ${run_id} has changed no file, or it is undone`] : lines;
}
