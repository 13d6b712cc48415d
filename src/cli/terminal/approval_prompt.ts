/**
 * Asks a person at the terminal to decide an approval: displays the exact call, reads `y`, `n` or an offered
 * option.
 */
import type { Approval, CreateOptions } from "../../runs/types.ts";
import { escapeUnprintable } from "../../text/escape.ts";
import type { Io } from "./io.ts";
import type { Progress } from "./progress.ts";
import { duration, formatValue } from "./progress_lines.ts";
import { styleOf } from "./format.ts";

/** Decides approvals; see {@link CreateOptions}. */
export type Ask = NonNullable<CreateOptions["ask"]>;

/** Milliseconds. A faster answer was typed before the question was displayed, and is ignored. */
const TYPED_AHEAD_MS = 150;

const YES: ReadonlySet<string> = new Set(["y", "yes", "allow"]);
const NO: ReadonlySet<string> = new Set(["n", "no", "deny"]);

/** Returns whether a person can read a question and answer it. */
export function canAsk(io: Io): boolean {
  return io.in.terminal && io.err.terminal;
}

/**
 * Returns a function that asks at the terminal. Without a terminal it resolves to null: no one can be asked.
 */
export function askAt(io: Io, progress: Progress, now: () => number = Date.now): Ask {
  if (!canAsk(io)) return () => Promise.resolve(null);
  let previous: Promise<unknown> = Promise.resolve();
  return (approval, signal) => {
    const answer = previous.then(() => signal.aborted ? null : askOne(approval, signal, io, progress, now));
    previous = answer.catch(() => {}); // one question at a time; the caller handles a rejection
    return answer;
  };
}

async function askOne(
  approval: Approval,
  signal: AbortSignal,
  io: Io,
  progress: Progress,
  now: () => number,
): ReturnType<Ask> {
  const release = progress.hold();
  let asking = true;
  /** Ends the line of the question, so that later output starts on a new line. */
  const leave = (line_end: string) => {
    if (!asking) return;
    asking = false;
    io.err.write(line_end);
    release();
  };
  const abort = () => leave("\n");
  signal.addEventListener("abort", abort, { once: true });
  try {
    const labels = approval.options.map((option) => typeof option === "string" ? option : option.label);
    io.err.write(questionText(approval, labels, io, now()));
    while (true) {
      io.err.write(`${choicesText(labels)} > `);
      const since = io.monotonic();
      const line = await io.in.line(signal);
      if (line === null) {
        leave("\n");
        return null;
      }
      const decision = decisionOf(line, labels);
      if (io.monotonic() - since < TYPED_AHEAD_MS) {
        io.err.write("\nThis answer was typed before the question was displayed. Please answer again.\n");
      } else if (decision !== null) return { decision };
    }
  } finally {
    signal.removeEventListener("abort", abort);
    leave("");
  }
}

/** Returns the text of the question, with every unprintable character escaped. */
function questionText(
  approval: Approval,
  labels: readonly string[],
  io: Pick<Io, "err">,
  now_ms: number,
): string {
  const { bold, yellow } = styleOf(io.err);
  const { prompt, tool_name, tool_input, preview, risk_level, action, expires_at, pattern } = approval;
  const left = duration(Math.max(0, Date.parse(expires_at) - now_ms));
  const rows = [
    [
      "tool",
      tool_name === null
        ? `none (${formatValue(action)})`
        : `${escapeUnprintable(tool_name)}, risk ${formatValue(risk_level)}`,
    ],
    ["arguments", argumentsText(tool_input)],
    ...(preview === undefined ? [] : [["would do", indented(preview.split("\n"))]]),
    ...(pattern === undefined ? [] : [["also for", formatValue(pattern)]]),
    ["asked by", formatValue(approval.hook_name ?? "the runtime")],
    ["expires", `in ${left}, then ${approval.default === "allow" ? "allowed" : "denied"}`],
  ].map(([name = "", text = ""]) => `  ${name.padEnd(10)} ${text}\n`);
  const question = prompt.split("\n").map(escapeUnprintable).join("\n  ");
  const offered = labels.map((label, index) => `  ${index + 1}) ${formatValue(label)}\n`);
  return `\n${yellow("?")} ${bold(question)}\n${rows.join("")}${offered.join("")}`;
}

/** Returns the complete arguments, never shortened: a person must see all that they allow. */
function argumentsText(input: unknown): string {
  if (input === null) return "none";
  const short = JSON.stringify(input) ?? "none";
  const lines = short.length <= 60 ? [short] : (JSON.stringify(input, null, 2) ?? "").split("\n");
  return indented(lines);
}

function indented(lines: readonly string[]): string {
  return lines.map(escapeUnprintable).join(`\n${" ".repeat(13)}`);
}

function choicesText(labels: readonly string[]): string {
  return labels.length === 0 ? "y/n" : `y/n or 1-${labels.length}`;
}

/** Returns the decision that a line states, or null. */
export function decisionOf(line: string, labels: readonly string[]): string | null {
  const answer = line.trim().toLowerCase();
  if (YES.has(answer)) return "allow";
  if (NO.has(answer)) return "deny";
  const numbered = /^\d{1,3}$/.test(answer) ? labels[Number(answer) - 1] : undefined;
  return numbered ?? labels.find((label) => label.toLowerCase() === answer && answer !== "") ?? null;
}
