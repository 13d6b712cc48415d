/**
 * Displays the progress of a run: permanent lines, and on a terminal below them a status line with
 * activity, time, tokens and cost.
 */
import type { Entry } from "../../kernel/host.ts";
import { isObject } from "../../sdk/json.ts";
import { sumCostUsd } from "../../sdk/money.ts";
import type { OpenLine } from "./answer_writer.ts";
import { cutToWidth, styleOf } from "./format.ts";
import type { Output } from "./io.ts";
import { callKey, dollars, duration, formatValue, indentOf, ProgressLines } from "./progress_lines.ts";

/** Displays the progress of a run. */
export interface Progress {
  /** Displays the next entry of the log. */
  entry(entry: Entry): void;
  /** Writes a permanent line. */
  note(text: string): void;
  /** Clears the status line before other output to the same terminal. */
  clear(): void;
  /** Keeps lines back while a question is on the terminal, until the returned function is called. */
  hold(): () => void;
  /** Stops the display. */
  close(): void;
}

/** Options of {@link createProgress}. */
interface ProgressOptions {
  /** The writer of the answer, if it writes to the same terminal. */
  answer?: OpenLine | undefined;
  /** Draws a status line. Default: only lines, as in a pipe or a log. */
  live?: {
    /** Returns monotonic milliseconds. */
    monotonic(): number;
    /** Calls `callback` every `ms` milliseconds until the returned function is called. */
    every?(ms: number, callback: () => void): () => void;
  } | undefined;
}

const FRAMES = [..."⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"];
const FRAME_MS = 80;
const CLEAR_LINE = "\r\x1b[2K";
/** Moves the cursor to the start of the line, so that other output overwrites the status line. */
const LINE_START = "\r";

/** Returns the display of a run's progress on an output. */
export function createProgress(output: Output, { answer, live }: ProgressOptions = {}): Progress {
  const style = styleOf(output);
  const lines = new ProgressLines(style, { answer_is_seen: answer !== undefined });
  const state = live && new LiveState(live.monotonic);
  const waiting: string[] = [];
  let held = false;
  let frame = 0;
  let drawn = false;

  const clear = () => {
    if (drawn) output.write(CLEAR_LINE);
    drawn = false;
  };
  const draw = () => {
    if (!state || held || answer?.open) return;
    const spin = style.cyan(FRAMES[frame++ % FRAMES.length] ?? "");
    output.write(`${CLEAR_LINE}${spin} ${cutToWidth(state.text(), output.columns() - 3)}${LINE_START}`);
    drawn = true;
  };
  const print = (line: string) => {
    clear();
    answer?.breakLine();
    output.write(`${line}\n`);
  };
  const note = (line: string) => {
    if (held) waiting.push(line);
    else print(line);
  };
  const release = () => {
    held = false;
    waiting.splice(0).forEach(print);
  };
  const stop = live ? (live.every ?? interval)(FRAME_MS, draw) : () => {};

  return {
    entry(entry) {
      if (state) state.take(entry);
      else if (entry.event === "provider:request") { // a status line displays this
        note(`${indentOf(entry)}asking ${formatValue(entry.data.provider)}`);
      }
      lines.of(entry).forEach(note);
    },
    note,
    clear,
    hold() {
      clear();
      answer?.breakLine();
      held = true;
      return release;
    },
    close() {
      stop();
      release();
      clear();
    },
  };
}

/** The current activity of a run. */
class LiveState {
  readonly #monotonic: () => number;
  readonly #tools = new Map<string, { name: string; since: number }>();
  #doing = "starting";
  #since: number;
  #tokens = 0;
  #cost_usd: string | null = null;

  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
    this.#since = monotonic();
  }

  take(entry: Entry): void {
    const { event, data, verdict } = entry;
    const call = callKey(entry);
    switch (event) {
      case "provider:request":
        return this.#now(`waiting for ${formatValue(data.provider)}`);
      case "content_block:start":
        return this.#now(data.block_type === "thinking" ? "thinking" : "writing");
      case "provider:response":
        this.#count(data.usage);
        return this.#now("working");
      case "tool:pre":
        if (verdict?.action !== "deny") {
          this.#tools.set(call, { name: formatValue(data.tool_name), since: this.#monotonic() });
        }
        return;
      case "approval:granted":
        if (this.#tools.has(call)) {
          this.#tools.set(call, { name: formatValue(data.tool_name), since: this.#monotonic() });
        }
        return;
      case "approval:denied":
      case "tool:post":
      case "tool:error":
        this.#tools.delete(call);
        return;
    }
  }

  #now(doing: string): void {
    this.#doing = doing;
    this.#since = this.#monotonic();
  }

  #count(usage: unknown): void {
    if (!isObject(usage)) return;
    if (typeof usage.total_tokens === "number") this.#tokens += usage.total_tokens;
    if (typeof usage.cost_usd === "string") {
      this.#cost_usd = sumCostUsd([this.#cost_usd, usage.cost_usd]);
    }
  }

  text(): string {
    const now = this.#monotonic();
    const doing = this.#tools.size === 0
      ? `${this.#doing} ${duration(now - this.#since)}`
      : [...this.#tools.values()].map(({ name, since }) => `${name} ${duration(now - since)}`).join(", ");
    const tokens = `${this.#tokens.toLocaleString("en-US")} tokens`;
    return [doing, tokens, ...(this.#cost_usd === null ? [] : [dollars(this.#cost_usd)])].join(" · ");
  }
}

function interval(ms: number, callback: () => void): () => void {
  const timer = setInterval(callback, ms);
  return () => clearInterval(timer);
}
