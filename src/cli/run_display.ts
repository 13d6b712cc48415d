/** The output of `preamp run`: progress and warnings on stderr, the answer on stdout. */
import type { Entry } from "../kernel/host.ts";
import { skippedText } from "../runs/run/run_projection.ts";
import type { Warning } from "../runs/types.ts";
import { AnswerWriter } from "./answer.ts";
import type { Io } from "./terminal/io.ts";
import { liveProgress } from "./terminal/live_progress.ts";
import { messageText, plainProgress, type Progress } from "./terminal/progress_lines.ts";
import { styleOf } from "./terminal/format.ts";

/** The writers of a run's output. */
export interface RunDisplay {
  progress: Progress;
  /** Absent when JSON is written to stdout. */
  answer: AnswerWriter | undefined;
  warnings: Warnings;
  /** Displays the next entry of the run's log. */
  entry(entry: Entry): void;
}

/** Creates the writers of a run's output. When both write to one terminal, progress is cleared before the answer. */
export function createRunDisplay(io: Io, is_text: boolean): RunDisplay {
  const { out, err } = io;
  const together = is_text && out.terminal && err.terminal;
  const answer = is_text ? new AnswerWriter(out, together ? () => progress.clear() : undefined) : undefined;
  const seen = together ? answer : undefined;
  const live = err.terminal && io.env("TERM") !== "dumb";
  const progress: Progress = live
    ? liveProgress(err, { monotonic: () => io.monotonic(), answer: seen })
    : plainProgress(err, seen);
  const { yellow } = styleOf(err);
  const warnings = new Warnings((text) => progress.note(`${yellow("warning:")} ${messageText(text)}`));
  const display = (entry: Entry) => {
    const { event, data } = entry;
    if (event === "module:skipped") warnings.add(skippedText(data));
    else if (event === "user:notification" && data.level !== "info") warnings.count++;
    answer?.take(entry);
    progress.entry(entry);
  };
  return { progress, answer, warnings, entry: display };
}

/** The warnings of a run. Each is displayed once, even if several components report it. */
export class Warnings {
  /** Number of warnings so far, including notifications displayed as warnings. */
  count = 0;
  readonly #display: (text: string) => void;
  readonly #seen = new Set<unknown>();

  constructor(display: (text: string) => void) {
    this.#display = display;
  }

  /** @param key Identifies the warning, whichever component reports it. Default: its text. */
  add(text: string, key: unknown = text): void {
    if (this.#seen.has(key)) return;
    this.#seen.add(key);
    this.count++;
    this.#display(text);
  }

  /** Adds the warnings of a run object. */
  addAll(warnings: readonly Warning[]): void {
    for (const { path, message } of warnings) {
      this.add(path === undefined || path === "" ? message : `${path}: ${message}`, message);
    }
  }
}
