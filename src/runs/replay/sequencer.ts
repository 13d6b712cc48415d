/**
 * Leads a replay along the tape: an entry that the session makes waits for its turn and is compared; what others made is
 * played back when its turn comes; what came from outside (cancellation, steering) is made to come again.
 */
import type { DraftEntry, Entry } from "../../kernel/host.ts";
import { eventsWith } from "../../sdk/events.ts";
import { isObject, type JsonObject, toPlainObject } from "../../sdk/json.ts";
import type { Clock, Emission } from "../../sdk/types.ts";
import type { SecretSink } from "../ports.ts";
import { LOOP_SEED } from "../../sdk/guest_ids.ts";
import { REDACTED } from "../../policy/redact.ts";
import { type Difference, type DifferencePlace, firstDifference, type LeftOut } from "./compare.ts";
import { answersOf, emissionOf } from "./recorded_results.ts";
import type { ReplayClock } from "./virtual_clock.ts";
import { callOf, type RecordedEvents } from "./recorded_events.ts";

/** A session that runs for real, and its part of the log. */
export interface ReplayedSession {
  readonly tape: RecordedEvents;
  steer(text: string): void;
  cancel(mode: "graceful" | "immediate"): void;
}

/** What a conductor is given. */
export interface ConductorOptions {
  entries: readonly Entry[];
  clock: ReplayClock;
  /** The clock of the process: for noticing that nothing happens any more. */
  real_clock: Clock;
  secrets: Pick<SecretSink, "redactEvent" | "redactValues">;
  /** Begins the turn of a sub-agent; its parent tells this entry then. */
  beginAgent(opening: Entry): void;
  /** Takes the entries of the replay, in order. */
  played(entry: Entry): void;
}

interface Waiting {
  readonly entry: DraftEntry;
  readonly resolve: () => void;
}

/** Milliseconds without progress after which the replay is said to have parted from the tape (our choice). */
const NO_PROGRESS_TIMEOUT_MS = 2_000;
/** Milliseconds that an entry with an uncertain maker is left for the session to make, and a session that sleeps late. */
const SETTLE_DELAY_MS = 20;

/** Events of which several can be in progress at once: an early one waits for its recorded place. */
const PARALLEL_EVENTS = eventsWith("parallel");

/** Events that may follow directly after `cancel:requested` in a turn that stops. */
const AFTER_CANCEL = eventsWith("after_cancel");

/** Leads one replay. */
export class Sequencer {
  readonly #options: ConductorOptions;
  readonly #left_out: LeftOut;
  readonly #waiting: Waiting[] = [];
  /** Who goes on when an entry comes next, by its place. */
  readonly #reaching = new Map<number, (() => void)[]>();
  readonly #actors = new Map<string, ReplayedSession>();
  readonly #recalled = new Set<Entry>();
  /** Session → ids that were made or named. */
  readonly #ids = new Map<string, Set<string>>();
  /** Sessions that are done. */
  readonly #ended = new Set<string>();
  readonly #begun = new Set<Entry>();
  readonly #finished = Promise.withResolvers<Difference | null>();
  readonly #over = new AbortController();
  #position = 0;
  #made_ids = 0;
  #patience: AbortController | null = null;
  /** Entry whose maker was waited for long enough. */
  #given_up: Entry | null = null;
  #watch: AbortController | null = null;
  #sleep: AbortController | null = null;

  constructor(options: ConductorOptions) {
    this.#options = options;
    this.#left_out = JSON.stringify(options.entries).includes(REDACTED) ? "redacted" : "clock";
  }

  #compare(recorded: unknown, replayed: unknown, path?: string): DifferencePlace | null {
    return firstDifference(recorded, replayed, this.#left_out, path);
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
    return this.#options.entries[this.#position];
  }

  /** Begins. */
  start(): void {
    this.#pump();
  }

  /** Puts a session on the stage, in place of an earlier one of its id. */
  enter(actor: ReplayedSession): void {
    this.#actors.set(actor.tape.session_id, actor);
    this.#ended.delete(actor.tape.session_id);
  }

  /** Resolves when this entry comes next, at the time when it came; at once when that was before. */
  reached({ seq }: Entry): Promise<void> | void {
    const index = seq - 1;
    if (this.#position > index) return;
    if (this.#position === index) return this.#options.clock.catchUp();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#reaching.set(index, [...this.#reaching.get(index) ?? [], resolve]);
    return promise;
  }

  /** Sends every session away: their process ended here. */
  clear(): void {
    this.#actors.clear();
    this.#reaching.clear();
    for (const { resolve } of this.#waiting.splice(0)) resolve();
  }

  #actorOf(entry: Entry): ReplayedSession | undefined {
    const actor = this.#actors.get(entry.session_id);
    return actor?.tape.holds(entry) ? actor : undefined;
  }

  #waitingOf(session_id: string): Waiting[] {
    return this.#waiting.filter(({ entry }) => entry.session_id === session_id);
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

  /** Returns what the hooks of the recorded run made of an event of a session. */
  recall(event: string, data: JsonObject, tape: RecordedEvents): Emission {
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
  recallAnswers(data: JsonObject, tape: RecordedEvents): JsonObject[] {
    return answersOf(tape, this.#position, data);
  }

  /** Returns the id that a session made at this place of the recorded run. */
  newId(prefix: string, tape: RecordedEvents): string {
    const taken = this.#idsOf(tape.session_id);
    if (prefix === LOOP_SEED) {
      const seed = tape.seedAfter(this.#position, taken);
      if (seed !== null) {
        taken.add(seed);
        return `${prefix}_${seed}`;
      }
    }
    const id = tape.idAfter(this.#position, prefix, taken);
    if (id === null) return `${prefix}_replay${++this.#made_ids}`; // nothing names it
    // an attempt that failed at once left no trace of its id: the next one asks again
    if (prefix !== "req") taken.add(id);
    return id;
  }

  #idsOf(session_id: string): Set<string> {
    let ids = this.#ids.get(session_id);
    if (!ids) this.#ids.set(session_id, ids = new Set());
    return ids;
  }

  /** Says that a session is done; what is still on its tape then was not made. */
  end(tape: RecordedEvents): void {
    if (this.#over.signal.aborted) return;
    this.#ended.add(tape.session_id);
    this.#pump();
    const next = this.#next;
    if (!next || next.event === "run:end") return;
    const is_all = next.session_id !== tape.session_id && tape.ends_log;
    if (is_all || this.#actorOf(next)?.tape === tape) {
      this.#part(next, { path: "", recorded: comparableEntry(next), replayed: null });
    }
  }

  /** Compares the run object, the data of the last entry; then the replay is over. */
  close(run: JsonObject): void {
    const next = this.#next;
    if (this.#over.signal.aborted) return;
    if (!next) return this.#finish(null);
    const difference = this.#compare(
      toPlainObject(next.data),
      this.#options.secrets.redactEvent(next.event, toPlainObject({ run })),
      "data",
    );
    if (difference) this.#part(next, difference);
    else this.#finish(null);
  }

  #pump(): void {
    this.#patience?.abort();
    for (let next = this.#next; next && !this.#over.signal.aborted; next = this.#next) {
      if (!this.#step(next)) break;
    }
    this.#watchOver();
  }

  /** Does what is due; false when something must be waited for. */
  #step(next: Entry): boolean {
    const actor = this.#actorOf(next);
    if (!actor) return this.#play(next);
    switch (actor.tape.sourceOf(next)) {
      case "tape":
        return this.#play(next);
      case "agent":
        return this.#take(next) || this.#beginAgent(next);
      case "state":
        return this.#stepState(next, actor);
      case "inner":
        return this.#take(next) || this.#playUnlessMade(next);
      case "cancel":
        return this.#stepCancel(next, actor);
      default:
        if (next.event === "run:end") return false;
        return this.#take(next) || this.#notYet(next);
    }
  }

  #beginAgent(opening: Entry): boolean {
    if (this.#begun.has(opening)) return false; // it is on its way
    this.#begun.add(opening);
    this.#options.beginAgent(opening);
    return this.#next !== opening;
  }

  /** Takes the entry that waits for this turn. */
  #take(next: Entry): boolean {
    const index = this.#waiting.findIndex(({ entry }) => isSame(entry, next));
    if (index < 0) return false;
    const [{ entry, resolve }] = this.#waiting.splice(index, 1) as [Waiting];
    const difference = this.#compare(comparableEntry(next), this.#shown(entry));
    if (difference) this.#part(next, difference);
    else this.#play(next);
    resolve();
    return difference === null;
  }

  #shown(entry: DraftEntry): JsonObject {
    const { secrets } = this.#options;
    const plain = toPlainObject({ ...entry });
    const told = comparableEntry(plain as unknown as Entry);
    told.data = secrets.redactEvent(entry.event, told.data as JsonObject);
    if (isObject(told.verdict)) told.verdict = secrets.redactValues(told.verdict);
    return told;
  }

  /** Puts an entry of the tape into the replay, as it is. */
  #play(entry: Entry): true {
    const { entries, clock, played } = this.#options;
    this.#position++;
    played(entry);
    for (const id of [entry.data.request_id, entry.data.approval_id, entry.turn_id]) {
      if (typeof id === "string") this.#idsOf(entry.session_id).add(id);
    }
    const following = entries[this.#position];
    clock.follow(Date.parse(entry.ts), Date.parse((following ?? entry).ts));
    this.#letGoOn();
    if (following?.event === "orchestrator:steering_injected") this.#steer(following);
    return true;
  }

  #letGoOn(): void {
    const reaching = this.#reaching.get(this.#position);
    if (!reaching) return;
    this.#reaching.delete(this.#position);
    this.#options.clock.catchUp();
    for (const resolve of reaching) resolve();
  }

  /** Says again what was said: that text, and those that waited with it, unless they were said with an earlier one. */
  #steer(steered: Entry): void {
    const actor = this.#actorOf(steered);
    if (!actor) return;
    const { tape } = actor;
    const { seq, data } = steered;
    const before = tape.all((entry) => entry.event === "orchestrator:steering_injected" && entry.seq < seq)
      .at(-1);
    if (before && Number(before.data.queued_remaining) > 0) return;
    const later = tape.all((entry) => entry.event === "orchestrator:steering_injected" && entry.seq > seq);
    const queued = Number(data.queued_remaining);
    const texts = [data, ...later.slice(0, queued).map((entry) => entry.data)].map(({ content }) =>
      String(content)
    );
    while (texts.length <= queued) texts.push("said, and never told"); // its process ended before
    for (const text of texts) actor.steer(text);
  }

  /** Keys of the orchestrator's and the context's are compared, others are played back. */
  #stepState(next: Entry, { tape }: ReplayedSession): boolean {
    const recorded = next.data.set as JsonObject; // written by the kernel
    const mine = this.#waitingOf(next.session_id);
    const index = this.#waiting.findIndex((one) => one.entry.event === "session:state" && mine.includes(one));
    if (index < 0) {
      // it is written right before a barrier: that the barrier waits already says that the session left nothing
      const done = mine.length > 0 || this.#ended.has(next.session_id) || this.#given_up === next;
      // behind it its process ended: no barrier may ever come
      const may_be_last = tape.is_cut && !tape.find(next.seq, (one) => tape.sourceOf(one) === "session");
      if (!done) return may_be_last ? this.#bePatient(next) : false;
      const own = Object.keys(recorded).find((key) => tape.isOwnKey(key));
      if (own === undefined) return this.#play(next);
      this.#part(next, { path: `data.set.${own}`, recorded: recorded[own], replayed: null });
      return false;
    }
    const [{ entry, resolve }] = this.#waiting.splice(index, 1) as [Waiting];
    const replayed = this.#options.secrets.redactEvent(
      next.event,
      toPlainObject(entry.data.set as JsonObject),
    );
    const expected = Object.fromEntries(
      Object.entries(recorded).filter(([key]) => key in replayed || tape.isOwnKey(key)),
    );
    const difference = this.#compare(expected, replayed, "data.set");
    if (difference) this.#part(next, difference);
    else this.#play(next);
    resolve();
    return difference === null;
  }

  /**
   * Cancels again. Where the recorded turn went on as if nothing had been, it had passed its check already: so it must here,
   * and what it makes next is waited for first.
   */
  #stepCancel(next: Entry, actor: ReplayedSession): boolean {
    const { tape } = actor;
    if (this.#waiting.some(({ entry }) => isSame(entry, next))) return this.#take(next);
    if (this.#recalled.has(next)) return false; // it is on its way
    const following = tape.find(next.seq, (entry) => tape.sourceOf(entry) === "session");
    const went_on = following !== undefined && !AFTER_CANCEL.has(following.event);
    const there = this.#waiting.some(({ entry }) => following !== undefined && isSame(entry, following));
    if (went_on && !there && this.#given_up !== next) return this.#bePatient(next);
    actor.cancel(next.data.state === "immediate" ? "immediate" : "graceful");
    return this.#waiting.some(({ entry }) => isSame(entry, next)) || this.#next !== next;
  }

  #playUnlessMade(next: Entry): boolean {
    return this.#ended.has(next.session_id) || this.#given_up === next
      ? this.#play(next)
      : this.#bePatient(next);
  }

  /** Leaves an entry for the session to make, a little while. */
  #bePatient(next: Entry): false {
    const patience = this.#patience = new AbortController();
    this.#options.real_clock.after(SETTLE_DELAY_MS, patience.signal).then(() => {
      if (this.#next !== next) return;
      this.#given_up = next;
      this.#pump();
    }, () => {}); // it came
    return false;
  }

  /** Nothing of what waits is due: a difference, unless it belongs to something that runs beside. */
  #notYet(next: Entry): false {
    const early = this.#waitingOf(next.session_id)
      .find(({ entry }) => !PARALLEL_EVENTS.has(entry.event) && !PARALLEL_EVENTS.has(next.event));
    if (early) {
      const replayed = this.#shown(early.entry);
      this.#part(
        next,
        this.#compare(comparableEntry(next), replayed) ??
          { path: "", recorded: comparableEntry(next), replayed },
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
    this.#sleep?.abort();
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
    this.#options.real_clock.after(NO_PROGRESS_TIMEOUT_MS, watch.signal).then(() => {
      const [early] = this.#waiting;
      const replayed = early ? this.#shown(early.entry) : null;
      this.#part(next, { path: "", recorded: comparableEntry(next), replayed });
    }, () => {}); // something happened
    this.#watchSleep();
  }

  /** Where nobody is waited for, the session may sleep too long: what the log tells next says that it was over. */
  #watchSleep(): void {
    this.#sleep?.abort();
    if (this.#patience?.signal.aborted === false) return;
    const sleep = this.#sleep = new AbortController();
    this.#options.real_clock.after(SETTLE_DELAY_MS, sleep.signal).then(() => {
      if (this.#options.clock.endLateSleep()) this.#watchSleep();
    }, () => {}); // as above
  }
}

/** Returns whether an entry is the one whose turn it is, whatever its data are. */
function isSame(made: DraftEntry, next: Entry): boolean {
  return made.event === next.event && made.session_id === next.session_id &&
    callOf(made.data) === callOf(next.data);
}

/** An entry as it is compared: without what the log adds, and without the step that something from outside happened to meet. */
function comparableEntry({ seq: _, ts: __, run_id: ___, iteration, ...rest }: Entry): JsonObject {
  return rest.event === "cancel:requested" || iteration === undefined ? { ...rest } : { ...rest, iteration };
}
