/** `/undo`: takes files, and if wanted the conversation, back to before an answer (src/docs/chat.md#undo). */
import type { ChangedRun } from "../../runs/types.ts";
import { PreampError } from "../../sdk/errors.ts";
import { TERMINAL } from "../terminal_caller.ts";
import { filesText, promptText, titleOf, undoLines } from "../commands/undo.ts";
import { timeText } from "../run_session.ts";
import type { Conversation } from "./conversation.ts";

/** Runs `/undo [N] [conversation]` and `/undo list`. */
export async function undo(chat: Conversation, argument: string): Promise<void> {
  const { options: { runtime, view }, session_id } = chat;
  const wanted = readArgument(argument);
  const changed = session_id === null
    ? []
    : await Array.fromAsync(runtime.runs.changedRuns(TERMINAL, { session_id }));
  if (changed.length === 0) {
    return view.say("There is nothing to undo: no answer of this conversation has changes of files left.");
  }
  if (wanted === "list") {
    return changed.forEach((one, index) => view.say(`${index + 1}  ${titleOf(one)}: ${filesText(one)}`));
  }
  const { count, conversation } = wanted ?? await ask(chat, changed) ?? {};
  if (count === undefined) return;
  const taken = changed.slice(0, count);
  const first = taken.at(-1);
  if (first === undefined || count > changed.length) {
    throw new PreampError("request_invalid", `Only ${changed.length} answers have changes: /undo list`);
  }
  const { id, session_id: begun_in } = first.run;
  const fork = conversation // first: it may fail
    ? await runtime.runs.sessions.fork(TERMINAL, begun_in, { before_run: id })
    : null;
  for (const one of taken) {
    view.say(`${titleOf(one)}:`);
    undoLines(await runtime.runs.undo(TERMINAL, one.run.id)).forEach((line) => view.say(line));
  }
  if (fork === null) return;
  chat.continueIn(fork.id, chat.plan);
  view.say(`The conversation is as it was before ${promptText(first.run)}; /sessions has what followed.`);
}

/** What to undo: the newest answers with changes, this many; and whether the conversation goes back too. */
interface Wanted {
  readonly count: number;
  readonly conversation: boolean;
}

/** Returns what an argument asks for; null for none. @throws {PreampError} `request_invalid`. */
function readArgument(argument: string): Wanted | "list" | null {
  if (argument === "") return null;
  if (argument === "list") return "list";
  const found = /^(?:([1-9]\d{0,5})\b)? ?(conversation)?$/.exec(argument);
  if (found) return { count: Number(found[1] ?? 1), conversation: found[2] !== undefined };
  throw new PreampError(
    "request_invalid",
    "Use /undo, /undo list, or /undo N for the newest N answers with changes; " +
      "/undo N conversation takes the conversation back too",
  );
}

/** Resolves to what the person chooses; to the newest answer where no one can be asked; null: nothing. */
async function ask({ options: { input } }: Conversation, changed: ChangedRun[]): Promise<Wanted | null> {
  if (!input.asks) return { count: 1, conversation: false };
  const rows = changed.map((one, index) => ({
    value: index + 1,
    label: promptText(one.run),
    hint: `${timeText(one.run.created_at)} UTC, ${filesText(one)}`,
  }));
  const count = rows.length === 1 ? 1 : await input.choose("Back to before which message?", rows);
  if (count === null) return null;
  const of = count === 1 ? `the answer to ${rows[0]!.label}` : `the ${count} newest answers with changes`;
  const conversation = await input.choose(`Undo ${of}`, [
    { value: false, label: "Take back the files", hint: filesOf(changed.slice(0, count)) },
    { value: true, label: "Take back the files and the conversation" },
  ]);
  return conversation === null ? null : { count, conversation };
}

function filesOf(changed: readonly ChangedRun[]): string {
  return filesText({ ...changed[0]!, paths: [...new Set(changed.flatMap(({ paths }) => paths))] });
}
