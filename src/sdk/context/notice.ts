/**
 * Builds the notice that lists for the model what its view leaves out. It is the last message and a user
 * message: a system message, or a notice at the front, would change the cached prefix.
 */
import type { Message } from "../base.ts";
import { frozenMessage } from "./frozen_message.ts";
import type { NoticeVerbosity } from "./config.ts";
import type { TokenTotals } from "./transcript.ts";

/**
 * Returns the notice, with the metadata `{source: "context-compaction", ephemeral: true}`; it is never
 * stored. `handles` name what was left out.
 */
export function compactionNotice(
  totals: Readonly<TokenTotals>,
  level: number,
  verbosity: NoticeVerbosity,
  handles: string | null = null,
): Message {
  return frozenMessage({
    role: "user",
    content: textOf(totals, level, verbosity, handles),
    metadata: { source: "context-compaction", ephemeral: true },
  });
}

function textOf(
  totals: Readonly<TokenTotals>,
  level: number,
  verbosity: NoticeVerbosity,
  handles: string | null,
): string {
  const recall = handles === null ? "" : ` context_recall reads back what was left out: ${handles}.`;
  if (verbosity === "minimal") {
    return `[Context note: older parts of this conversation were shortened.${recall}]`;
  }
  const facts = [
    counted(totals.removed, "message", "left out"),
    counted(totals.truncated, "tool result", "truncated"),
    counted(totals.stubbed, "user message", "abbreviated"),
  ].filter((fact) => fact !== null).join(", ");
  const text = `[Context note: older parts of this conversation were shortened to fit (${facts}). ${
    recall === "" ? "Call a tool again if you need its full result." : recall.trim()
  } This note is not from the user and needs no answer.`;
  return verbosity === "normal"
    ? `${text}]`
    : `${text} Compaction level ${level} of 8; system messages, the first request (at least its beginning) and the latest one are here.]`;
}

function counted(count: number, thing: string, change: string): string | null {
  return count === 0 ? null : `${count} ${thing}${count === 1 ? "" : "s"} ${change}`;
}
