/**
 * Leads a replay along the tape: an entry that the session makes waits for its turn and is compared; what others made is
 * played back when its turn comes; what came from outside (cancellation, steering) is made to come again.
 */
import type { DraftEntry, Entry } from "../../kernel/host.ts";
import { isObject, type JsonObject, toPlainObject } from "../../sdk/json.ts";
import type { Clock, Emission } from "../../sdk/types.ts";
import { type Difference, firstDifference } from "./compare.ts";
import { answersOf, emissionOf } from "./recall.ts";
import type { ReplayClock } from "./replay_clock.ts";
import { callOf, type Tape } from "./tape.ts";

/** What a conductor is given. */
export interface ConductorOptions {
  tape: Tape;
  clock: ReplayClock;
  /** The clock of the process: for noticing that nothing happens any more. */
  real_clock: Clock;
  redact: (data: JsonObject) => JsonObject;
  steer(text: string): void;
  cancel(mode: "graceful" | "immediate"): void;
  /** Takes the entries of the replay, in order. */
  played(entry: Entry): void;
}

interface Waiting {
  readonly entry: DraftEntry;
  readonly resolve: () => void;
}

/** Milliseconds without progress after which the replay is said to have parted from the tape (our choice). */
const STUCK_MS = 2_000;
/** Milliseconds that an entry with an uncertain maker is left for the session to make. */
const PATIENCE_MS = 20;

/** Events of which several may be under way at once: one that is early waits for its turn. */
const PARALLEL: ReadonlySet<string> = new Set([
  "tool:selecting",
  "tool:selected",
  "tool:pre",
  "tool:post",
  "tool:error",
  "approval:required",
  "approval:granted",
  "approval:denied",
]);

/** What a turn that was cancelled makes next, and one that was not does not. */
const AFTER_CANCEL: ReadonlySet<string> = new Set([
  "cancel:completed",
  "execution:end",
  "orchestrator:complete",
  "approval:denied",
]);

/** Leads one replay. */
export class Conductor {
  readonly #options: ConductorOptions;
  readonly #waiting: Waiting[] = [];
  readonly #recalled = new Set<Entry>();
  readonly #ids = new Set<string>();
  readonly #finished = Promise.withResolvers<Difference | null>();
  readonly #over = new AbortController();
  #position = 0;
  #made_ids = 0;
  #patience: AbortController | null = null;
  /** Entry whose maker was waited for long enough. */
  #given_up: Entry | null = null;
  #watch: AbortController | null = null;

  constructor(options: ConductorOptions) {
    this.#options = options;
  }

  /** Resolves when the tape is at its end, to null, or when the replay has parted from it. */
  get finished(): Promise<Difference | null> {
    return this.#finished.promise;
  }

  /** Index of the entry that comes next. */
  get position(): number {
    return this.#position;
  }

  get #next(): Entry | undefined {
    return this.#options.tape.entries[this.#position];
  }

  /** Begins. */
  start(): void {
    this.#pump();
  }

  /** Takes an entry that the session makes; a promise means: wait, it is not its turn. */
  record(entry: DraftEntry): Promise<void> | void {
    if (this.#over.signal.aborted) return;
    let resolve = () => {};
    const waited = new Promise<void>((done) => resolve = done);
    const waiting: Waiting = { entry, resolve };
    this.#waiting.push(waiting);
    this.#pump();
    return this.#waiting.includes(waiting) ? waited : undefined;
  }

  /** Returns what the hooks of the recorded run made of an event. */
  recall(event: string, data: JsonObject): Emission {
    const { tape } = this.#options;
    const call = callOf(data);
    const entry = tape.find(
      this.#position,
      (one) =>
        one.event === event && !this.#recalled.has(one) && (call === null || callOf(one.data) === call),
    );
    if (!entry) return emissionOf({ data } as Entry, data, tape); // not on the tape: that is told when it is recorded
    this.#recalled.add(entry);
    return emissionOf(entry, data, tape);
  }

  /** Returns what hooks answered to an event that collects answers. */
  recallAnswers(data: JsonObject): JsonObject[] {
    return answersOf(this.#options.tape, this.#position, data);
  }

  /** Returns the id that was made at this place of the recorded run. */
  newId(prefix: string): string {
    const id = this.#options.tape.idAfter(this.#position, prefix, this.#ids);
    if (id === null) return `${prefix}_replay${++this.#made_ids}`; // nothing names it
    // an attempt that failed at once left no trace of its id: the next one asks again
    if (prefix !== "req") this.#ids.add(id);
    return id;
  }

  /** Says that the session is done; what is still on the tape then was not made. */
  end(): void {
    if (this.#over.signal.aborted) return;
    this.#pump(true);
    const next = this.#next;
    if (next && next.event !== "run:end") {
      this.#part(next, { path: "", recorded: shown(next), replayed: null });
    }
  }

  /** Compares the run object, the data of the last entry; then the replay is over. */
  close(run: JsonObject): void {
    const next = this.#next;
    if (this.#over.signal.aborted) return;
    if (!next) return this.#finish(null);
    const difference = firstDifference(
      toPlainObject(next.data),
      this.#options.redact(toPlainObject({ run })),
      "data",
    );
    if (difference) this.#part(next, difference);
    else this.#finish(null);
  }

  #pump(ending = false): void {
    this.#patience?.abort();
    for (let next = this.#next; next && !this.#over.signal.aborted; next = this.#next) {
      if (!this.#step(next, ending)) break;
    }
    this.#watchOver();
  }

  /** Does what is due; false when something must be waited for. */
  #step(next: Entry, ending: boolean): boolean {
    switch (this.#options.tape.sourceOf(next)) {
      case "tape":
        return this.#play(next);
      case "state":
        return this.#stepState(next, ending);
      case "inner":
        return this.#take(next) || this.#playUnlessMade(next, ending);
      case "cancel":
        return this.#stepCancel(next);
      default:
        if (next.event === "run:end") return false;
        return this.#take(next) || this.#notYet(next);
    }
  }

  /** Takes the entry that waits for this turn. */
  #take(next: Entry): boolean {
    const index = this.#waiting.findIndex(({ entry }) => isSame(entry, next));
    if (index < 0) return false;
    const [{ entry, resolve }] = this.#waiting.splice(index, 1) as [Waiting];
    const difference = firstDifference(shown(next), this.#shown(entry));
    if (difference) this.#part(next, difference);
    else this.#play(next);
    resolve();
    return difference === null;
  }

  #shown(entry: DraftEntry): JsonObject {
    const { redact } = this.#options;
    const plain = toPlainObject({ ...entry });
    const told = shown(plain as unknown as Entry);
    told.data = redact(told.data as JsonObject);
    if (isObject(told.verdict)) told.verdict = redact(told.verdict);
    return told;
  }

  /** Puts an entry of the tape into the replay, as it is. */
  #play(entry: Entry): true {
    const { tape, clock, played } = this.#options;
    this.#position++;
    played(entry);
    for (const id of [entry.data.request_id, entry.data.approval_id, entry.turn_id]) {
      if (typeof id === "string") this.#ids.add(id);
    }
    const following = tape.entries[this.#position];
    clock.follow(Date.parse(entry.ts), Date.parse((following ?? entry).ts));
    if (following?.event === "orchestrator:steering_injected") this.#steer(following);
    return true;
  }

  /** Says again what was said: that text, and those that waited with it, unless they were said with an earlier one. */
  #steer({ seq, data }: Entry): void {
    const { tape, steer } = this.#options;
    const before = tape.all((entry) => entry.event === "orchestrator:steering_injected" && entry.seq < seq)
      .at(-1);
    if (before && Number(before.data.queued_remaining) > 0) return;
    const later = tape.all((entry) => entry.event === "orchestrator:steering_injected" && entry.seq > seq);
    for (const { data: { content } } of [{ data }, ...later.slice(0, Number(data.queued_remaining))]) {
      steer(String(content));
    }
  }

  /** Keys of the orchestrator's and the context's are compared, others are played back. */
  #stepState(next: Entry, ending: boolean): boolean {
    const recorded = next.data.set as JsonObject; // written by the kernel
    const index = this.#waiting.findIndex(({ entry }) => entry.event === "session:state");
    if (index < 0) {
      // it is written right before a barrier: that the barrier waits already says that the session left nothing
      if (this.#waiting.length === 0 && !ending) return false;
      const own = Object.keys(recorded).find((key) => this.#options.tape.isOwnKey(key));
      if (own === undefined) return this.#play(next);
      this.#part(next, { path: `data.set.${own}`, recorded: recorded[own], replayed: null });
      return false;
    }
    const [{ entry, resolve }] = this.#waiting.splice(index, 1) as [Waiting];
    const replayed = this.#options.redact(toPlainObject(entry.data.set as JsonObject));
    const expected = Object.fromEntries(
      Object.entries(recorded).filter(([key]) => key in replayed || this.#options.tape.isOwnKey(key)),
    );
    const difference = firstDifference(expected, replayed, "data.set");
    if (difference) this.#part(next, difference);
    else this.#play(next);
    resolve();
    return difference === null;
  }

  /**
   * Cancels again. Where the recorded turn went on as if nothing had been, it had passed its check already: so it must here,
   * and what it makes next is waited for first.
   */
  #stepCancel(next: Entry): boolean {
    if (this.#waiting.some(({ entry }) => isSame(entry, next))) return this.#take(next);
    if (this.#recalled.has(next)) return false; // it is on its way
    const { tape, cancel } = this.#options;
    const following = tape.find(next.seq, (entry) => tape.sourceOf(entry) === "session");
    const went_on = following !== undefined && !AFTER_CANCEL.has(following.event);
    const there = this.#waiting.some(({ entry }) => following !== undefined && isSame(entry, following));
    if (went_on && !there && this.#given_up !== next) return this.#bePatient(next);
    cancel(next.data.state === "immediate" ? "immediate" : "graceful");
    return this.#waiting.some(({ entry }) => isSame(entry, next)) || this.#next !== next;
  }

  #playUnlessMade(next: Entry, ending: boolean): boolean {
    return ending || this.#given_up === next ? this.#play(next) : this.#bePatient(next);
  }

  /** Leaves an entry for the session to make, a little while. */
  #bePatient(next: Entry): false {
    const patience = this.#patience = new AbortController();
    this.#options.real_clock.after(PATIENCE_MS, patience.signal).then(() => {
      if (this.#next !== next) return;
      this.#given_up = next;
      this.#pump();
    }, () => {}); // it came
    return false;
  }

  /** Nothing of what waits is due: a difference, unless it belongs to something that runs beside. */
  #notYet(next: Entry): false {
    const early = this.#waiting.find(({ entry }) => !PARALLEL.has(entry.event) && !PARALLEL.has(next.event));
    if (early) {
      const replayed = this.#shown(early.entry);
      this.#part(
        next,
        firstDifference(shown(next), replayed) ?? { path: "", recorded: shown(next), replayed },
      );
    }
    return false;
  }

  #part(next: Entry, place: Omit<Difference, "seq">): void {
    this.#finish({ seq: next.seq, ...place });
  }

  #finish(difference: Difference | null): void {
    this.#patience?.abort();
    this.#watch?.abort();
    this.#over.abort();
    for (const { resolve } of this.#waiting.splice(0)) resolve();
    this.#finished.resolve(difference);
  }

  /** A session that makes nothing any more, and does not end, has parted from the tape. */
  #watchOver(): void {
    this.#watch?.abort();
    const next = this.#next;
    if (!next || this.#over.signal.aborted) return;
    const watch = this.#watch = new AbortController();
    this.#options.real_clock.after(STUCK_MS, watch.signal).then(() => {
      const [early] = this.#waiting;
      const replayed = early ? this.#shown(early.entry) : null;
      this.#part(next, { path: "", recorded: shown(next), replayed });
    }, () => {}); // something happened
  }
}

/** Returns whether an entry is the one whose turn it is, whatever its data are. */
function isSame(made: DraftEntry, next: Entry): boolean {
  return made.event === next.event && made.session_id === next.session_id &&
    callOf(made.data) === callOf(next.data);
}

/** An entry as it is compared: without what the log adds. */
function shown({ seq: _, ts: __, run_id: ___, ...rest }: Entry): JsonObject {
  return { ...rest };
}
