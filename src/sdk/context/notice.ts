/** The notice that tells the model what its view lacks. It goes to the end, as a user message: a system message there, or a notice at the front, would change what providers have cached. */
import { deepFreeze, type Message } from "../mod.ts";
import type { NoticeVerbosity } from "./config.ts";
import type { TokenTotals } from "./transcript.ts";

/** Returns the notice: metadata `{source: "context-compaction", ephemeral: true}` (behaviour.md §8.4); never stored. `handles` name what was left out. */
export function compactionNotice(
  tally: Readonly<TokenTotals>,
  level: number,
  verbosity: NoticeVerbosity,
  handles: string | null = null,
): Message {
  return deepFreeze({
    role: "user",
    content: textOf(tally, level, verbosity, handles),
    metadata: { source: "context-compaction", ephemeral: true },
  });
}

function textOf(
  tally: Readonly<TokenTotals>,
  level: number,
  verbosity: NoticeVerbosity,
  handles: string | null,
): string {
  const recall = handles === null ? "" : ` context_recall reads back what was left out: ${handles}.`;
  if (verbosity === "minimal") {
    return `[Context note: older parts of this conversation were shortened.${recall}]`;
  }
  const facts = [
    counted(tally.removed, "message", "left out"),
    counted(tally.truncated, "tool result", "truncated"),
    counted(tally.stubbed, "user message", "abbreviated"),
  ].filter((fact) => fact !== null).join(", ");
  const text = `[Context note: older parts of this conversation were shortened to fit (${facts}). ${
    recall === "" ? "Call a tool again if you need its full result." : recall.trim()
  } This note is not from the user and needs no answer.`;
  return verbosity === "normal"
    ? `${text}]`
    : `${text} Compaction level ${level} of 8; system messages, the first request (at least its beginning) and the latest one are here.]`;
}

function counted(count: number, thing: string, what: string): string | null {
  return count === 0 ? null : `${count} ${thing}${count === 1 ? "" : "s"} ${what}`;
}
