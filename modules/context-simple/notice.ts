/** The notice that tells the model what its view lacks. It goes to the end, as a user message: a system message there, or a notice at the front, would change what providers have cached. */
import { deepFreeze, type Message } from "preamp";
import type { NoticeVerbosity } from "./config.ts";
import type { Tally } from "./transcript.ts";

/** Returns the notice: metadata `{source: "context-compaction", ephemeral: true}` (behaviour.md §8.4); never stored. */
export function compactionNotice(tally: Readonly<Tally>, level: number, verbosity: NoticeVerbosity): Message {
  return deepFreeze({
    role: "user",
    content: textOf(tally, level, verbosity),
    metadata: { source: "context-compaction", ephemeral: true },
  });
}

function textOf(tally: Readonly<Tally>, level: number, verbosity: NoticeVerbosity): string {
  if (verbosity === "minimal") return "[Context note: older parts of this conversation were shortened.]";
  const facts = [
    counted(tally.removed, "message", "left out"),
    counted(tally.truncated, "tool result", "truncated"),
    counted(tally.stubbed, "user message", "abbreviated"),
  ].filter((fact) => fact !== null).join(", ");
  const text =
    `[Context note: older parts of this conversation were shortened to fit (${facts}). Call a tool again if you need its full result. This note is not from the user and needs no answer.`;
  return verbosity === "normal"
    ? `${text}]`
    : `${text} Compaction level ${level} of 8; system messages, the first request (at least its beginning) and the latest one are here.]`;
}

function counted(count: number, thing: string, what: string): string | null {
  return count === 0 ? null : `${count} ${thing}${count === 1 ? "" : "s"} ${what}`;
}
