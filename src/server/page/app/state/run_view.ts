/**
 * One run in the page: its entries, its transcript, and signals that say when they change. Entries come in
 * batches, so that a stream of a thousand entries a second draws once per frame.
 */
import { batch, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import {
  type Compaction,
  type Entry,
  type Item,
  type ModelCall,
  type Question,
  type Run,
  RunTranscript,
  type Thread,
} from "preamp/client";

/** A signal for each item and thread that something draws. */
const versions = new WeakMap<Item | Thread, Signal<number>>();

/** Returns an item or thread; what reads it this way is computed or drawn again when it changes. */
export function watched<Part extends Item | Thread>(part: Part): Part {
  let version = versions.get(part);
  if (!version) versions.set(part, version = signal(0));
  void version.value;
  return part;
}

/** One run as the page shows it. */
export class RunView {
  readonly id: string;
  readonly transcript: RunTranscript = new RunTranscript();
  /** All entries so far, in order; grows in place, and `count` says when. */
  readonly entries: Entry[] = [];
  readonly count: Signal<number> = signal(0);
  readonly status: Signal<string> = signal("queued");
  /** The run object as last received; null before the first one. */
  readonly run: Signal<Run | null> = signal(null);
  readonly questions: Signal<readonly Question[]> = signal([]);
  readonly calls: Signal<readonly ModelCall[]> = signal([]);
  readonly compactions: Signal<readonly Compaction[]> = signal([]);
  /** Time of the first entry. */
  readonly started: Signal<string | null> = signal(null);
  readonly ended: Signal<string | null> = signal(null);
  /** Whether it was asked to end. */
  readonly cancelling: Signal<boolean> = signal(false);
  readonly #thread: Signal<Thread | null> = signal(null);

  constructor(id: string) {
    this.id = id;
  }

  /** Id of its session; undefined while it is unknown. */
  get session_id(): string | undefined {
    return this.run.value?.session_id ?? this.thread.value?.session_id;
  }

  /** The conversation of the run's own session; null before its first entry. */
  get thread(): ReadonlySignal<Thread | null> {
    return this.#thread;
  }

  /** The beginning of its prompt; empty while it is unknown. */
  get title(): string {
    void this.count.value;
    return this.transcript.title;
  }

  /** Adds entries, which continue those that are there; earlier ones are skipped. */
  add(entries: readonly Entry[]): void {
    const { transcript } = this;
    batch(() => {
      for (const part of transcript.add(entries)) {
        const version = versions.get(part);
        if (version) version.value++;
      }
      for (const entry of entries) if (entry.seq > (this.entries.at(-1)?.seq ?? 0)) this.entries.push(entry);
      const { status, run, questions, calls, compactions, started, ended, cancelling, thread } = transcript;
      this.status.value = status;
      if (run) this.run.value = run;
      this.questions.value = questions;
      this.calls.value = calls;
      this.compactions.value = compactions;
      this.started.value = started;
      this.ended.value = ended;
      this.cancelling.value = cancelling;
      this.#thread.value = thread;
      this.count.value = this.entries.length;
    });
  }
}
