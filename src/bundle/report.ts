/** What a person should know of an import. */

/** One sentence of a report. A warning is an error under `--strict`. */
export interface ReportLine {
  readonly level: "note" | "warning";
  readonly message: string;
  readonly hint?: string;
}

/** Most sentences of a report. */
const MAX_LINES = 1_000;

/** Collects the sentences of a report, each once, in their order. */
export class Report {
  readonly #lines = new Map<string, ReportLine>();

  get lines(): readonly ReportLine[] {
    return [...this.#lines.values()];
  }

  /** Adds what was changed, or is done in another way. */
  note(message: string, hint?: string): void {
    this.#add("note", message, hint);
  }

  /** Adds what is missing in the plan. */
  warn(message: string, hint?: string): void {
    this.#add("warning", message, hint);
  }

  #add(level: ReportLine["level"], message: string, hint: string | undefined): void {
    if (this.#lines.has(message)) return;
    const is_last = this.#lines.size >= MAX_LINES;
    const text = is_last ? "There is more to report, which is left out" : message;
    this.#lines.set(text, { level, message: text, ...(hint === undefined || is_last ? {} : { hint }) });
  }
}
