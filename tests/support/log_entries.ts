/** Logs for tests of what the page shows of them. */
import { type Entry, type Item, RunTranscript, type Thread } from "preamp/client";
import { RunView } from "../../src/server/page/app/state/run_view.ts";

/** An entry to be made; without a session id it is one of `ses_1`. */
export type Draft = [event: string, data: Record<string, unknown>, session_id?: string, verdict?: unknown];

/** Returns entries of one run, a second apart. */
export function entriesOf(drafts: readonly Draft[]): Entry[] {
  return drafts.map(([event, data, session_id = "ses_1", verdict], index) => ({
    seq: index + 1,
    event,
    ts: new Date(index * 1000).toISOString(),
    run_id: "run_1",
    session_id,
    data,
    ...(verdict === undefined ? {} : { verdict }),
  }));
}

/** Returns the view of a run with these entries. */
export function viewOf(...drafts: Draft[]): RunView {
  const view = new RunView("run_1");
  view.add(entriesOf(drafts));
  return view;
}

/** Returns the transcript of a run with these entries. */
export function transcriptOf(...drafts: Draft[]): RunTranscript {
  const transcript = new RunTranscript();
  transcript.add(entriesOf(drafts));
  return transcript;
}

/** Returns a thread as short texts: `kind: what it says`. */
export function shownItems(thread: Thread | null): string[] {
  return (thread?.items ?? []).map((item: Item) => {
    if (item.kind === "tool") return `${item.name}: ${item.phase}`;
    if (item.kind === "question") return `question: ${item.question.status}`;
    return `${item.kind}: ${item.text}`;
  });
}
