/**
 * Leads a replay along the recorded: an entry that the session makes waits for its turn and is compared; what others made is
 * onEntry back when its turn comes; what came from outside (cancellation, steering) is made to come again.
 */
import type { DraftEntry, Entry } from "../../kernel/host.ts";
import { eventsWith } from "../../sdk/events.ts";
import { isObject, type JsonObject, toPlainObject } from "../../sdk/json.ts";
import type { Clock, Emission } from "../../sdk/types.ts";
import type { SecretSink } from "../ports.ts";
import { LOOP_SEED } from "../../sdk/guest_ids.ts";
import { REDACTED } from "../../policy/redact.ts";
import type { Difference } from "../types.ts";
import { type DifferencePlace, firstDifference, type IgnoredFields } from "./compare.ts";
import { answersOf, emissionOf } from "./recorded_results.ts";
import type { VirtualClock } from "./virtual_clock.ts";
import { callOf, type RecordedEvents } from "./recorded_events.ts";

/** A session that runs for real, and its part of the log. */
export interface ReplayedSession {
  readonly recorded: RecordedEvents;
  steer(text: string): void;
  cancel(mode: "graceful" | "immediate"): void;
}

/** What a conductor is given. */
export interface SequencerOptions {
  entries: readonly Entry[];
  clock: VirtualClock;
  /** The clock of the process: for noticing that nothing happens any more. */
  real_clock: Clock;
  secrets: Pick<SecretSink, "redactEvent" | "redactValues">;
  /** Begins the turn of a sub-agent; its parent tells this entry then. */
  beginAgent(opening: Entry): void;
  /** Takes the entries of the replay, in order. */
  onEntry(entry: Entry): void;
}

interface Waiting {
  readonly entry: DraftEntry;
  readonly resolve: () => void;
}

/** Milliseconds without progress after which the replay is said to have parted from the recorded (our choice). */
const NO_PROGRESS_TIMEOUT_MS = 2_000;
/** Milliseconds that an entry with an uncertain maker is left for the session to make, and a session that sleeps late. */
const SETTLE_DELAY_MS = 20;

/** Events of which several can be in progress at once: an early one waits for its recorded place. */
const PARALLEL_EVENTS = eventsWith("parallel");

/** Events that may follow directly after `cancel:requested` in a turn that stops. */
const AFTER_CANCEL = eventsWith("after_cancel");

/** Leads one replay. */
export class Sequencer {
  readonly #options: SequencerOptions;
  readonly #ignored: IgnoredFields;
  readonly #waiting: Waiting[] = [];
  /** Who goes on when an entry comes next, by its place. */
  readonly #reaching = new Map<number, (() => void)[]>();
  readonly #sessions = new Map<string, ReplayedSession>();
  readonly #used = new Set<Entry>();
  /** Session → ids that were made or named. */
  readonly #ids = new Map<string, Set<string>>();
  /** Sessions that are done. */
  readonly #ended = new Set<string>();
  readonly #begun_agents = new Set<Entry>();
  readonly #finished = Promise.withResolvers<Difference | null>();
  readonly #stopped = new AbortController();
  #position = 0;
  #generated_ids = 0;
  #settle_timer: AbortController | null = null;
  /** Entry whose maker was waited for long enough. */
  #given_up: Entry | null = null;
  #progress_timer: AbortController | null = null;
  #sleep_timer: AbortController | null = null;

  constructor(options: SequencerOptions) {
    this.#options = options;
    this.#ignored = JSON.stringify(options.entries).includes(REDACTED) ? "redacted" : "clock";
  }

  #compare(recorded: unknown, replayed: unknown, path?: string): DifferencePlace | null {
    return firstDifference(recorded, replayed, this.#ignored, path);
  }

  /** Resolves when the recorded is at its end, to null, or when the replay has parted from it. */
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
    this.#advance();
  }

  /** Puts a session on the stage, in place of an earlier one of its id. */
  add(session: ReplayedSession): void {
    this.#sessions.set(session.recorded.session_id, session);
    this.#ended.delete(session.recorded.session_id);
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
    this.#sessions.clear();
    this.#reaching.clear();
    for (const { resolve } of this.#waiting.splice(0)) resolve();
  }

  #sessionOf(entry: Entry): ReplayedSession | undefined {
    const session = this.#sessions.get(entry.session_id);
    return session?.recorded.contains(entry) ? session : undefined;
  }

  #waitingOf(session_id: string): Waiting[] {
    return this.#waiting.filter(({ entry }) => entry.session_id === session_id);
  }

  /** Takes an entry that the session makes; a promise means: wait, it is not its turn. */
  record(entry: DraftEntry): Promise<void> | void {
    if (this.#stopped.signal.aborted) return;
    let resolve = () => {};
    const waited = new Promise<void>((done) => resolve = done);
    const waiting: Waiting = { entry, resolve };
    this.#waiting.push(waiting);
    this.#advance();
    return this.#waiting.includes(waiting) ? waited : undefined;
  }

  /** Returns what the hooks of the recorded run made of an event of a session. */
  emissionFor(event: string, data: JsonObject, recorded: RecordedEvents): Emission {
    const call = callOf(data);
    const entry = recorded.find(
      this.#position,
      (other) =>
        other.event === event && !this.#used.has(other) && (call === null || callOf(other.data) === call),
    );
    if (!entry) return emissionOf({ data } as Entry, data, recorded); // not on the recorded: that is compared when it is recorded
    this.#used.add(entry);
    return emissionOf(entry, data, recorded);
  }

  /** Returns what hooks answered to an event that collects answers. */
  answersFor(data: JsonObject, recorded: RecordedEvents): JsonObject[] {
    return answersOf(recorded, this.#position, data);
  }

  /** Returns the id that a session made at this place of the recorded run. */
  newId(prefix: string, recorded: RecordedEvents): string {
    const taken = this.#usedIdsOf(recorded.session_id);
    if (prefix === LOOP_SEED) {
      const seed = recorded.seedAfter(this.#position, taken);
      if (seed !== null) {
        taken.add(seed);
        return `${prefix}_${seed}`;
      }
    }
    const id = recorded.idAfter(this.#position, prefix, taken);
    if (id === null) return `${prefix}_replay${++this.#generated_ids}`; // nothing names it
    // an attempt that failed at once left no trace of its id: the next one asks again
    if (prefix !== "req") taken.add(id);
    return id;
  }

  #usedIdsOf(session_id: string): Set<string> {
    let ids = this.#ids.get(session_id);
    if (!ids) this.#ids.set(session_id, ids = new Set());
    return ids;
  }

  /** Says that a session is done; what is still on its recorded then was not made. */
  end(recorded: RecordedEvents): void {
    if (this.#stopped.signal.aborted) return;
    this.#ended.add(recorded.session_id);
    this.#advance();
    const next = this.#next;
    if (!next || next.event === "run:end") return;
    const is_all = next.session_id !== recorded.session_id && recorded.ends_log;
    if (is_all || this.#sessionOf(next)?.recorded === recorded) {
      this.#reportDifference(next, { path: "", recorded: comparableEntry(next), replayed: null });
    }
  }

  /** Compares the run object, the data of the last entry; then the replay is over. */
  close(run: JsonObject): void {
    const next = this.#next;
    if (this.#stopped.signal.aborted) return;
    if (!next) return this.#finish(null);
    const difference = this.#compare(
      toPlainObject(next.data),
      this.#options.secrets.redactEvent(next.event, toPlainObject({ run })),
      "data",
    );
    if (difference) this.#reportDifference(next, difference);
    else this.#finish(null);
  }

  #advance(): void {
    this.#settle_timer?.abort();
    for (let next = this.#next; next && !this.#stopped.signal.aborted; next = this.#next) {
      if (!this.#step(next)) break;
    }
    this.#startProgressTimer();
  }

  /** Does what is due; false when something must be waited for. */
  #step(next: Entry): boolean {
    const session = this.#sessionOf(next);
    if (!session) return this.#play(next);
    switch (session.recorded.sourceOf(next)) {
      case "recording":
        return this.#play(next);
      case "agent":
        return this.#acceptWaiting(next) || this.#beginAgent(next);
      case "state":
        return this.#stepState(next, session);
      case "inner":
        return this.#acceptWaiting(next) || this.#playUnlessMade(next);
      case "cancel":
        return this.#stepCancel(next, session);
      default:
        if (next.event === "run:end") return false;
        return this.#acceptWaiting(next) || this.#checkOrder(next);
    }
  }

  #beginAgent(opening: Entry): boolean {
    if (this.#begun_agents.has(opening)) return false; // it is on its way
    this.#begun_agents.add(opening);
    this.#options.beginAgent(opening);
    return this.#next !== opening;
  }

  /** Takes the entry that waits for this turn. */
  #acceptWaiting(next: Entry): boolean {
    const index = this.#waiting.findIndex(({ entry }) => isSame(entry, next));
    if (index < 0) return false;
    const [{ entry, resolve }] = this.#waiting.splice(index, 1) as [Waiting];
    const difference = this.#compare(comparableEntry(next), this.#comparable(entry));
    if (difference) this.#reportDifference(next, difference);
    else this.#play(next);
    resolve();
    return difference === null;
  }

  #comparable(entry: DraftEntry): JsonObject {
    const { secrets } = this.#options;
    const plain = toPlainObject({ ...entry });
    const compared = comparableEntry(plain as unknown as Entry);
    compared.data = secrets.redactEvent(entry.event, compared.data as JsonObject);
    if (isObject(compared.verdict)) compared.verdict = secrets.redactValues(compared.verdict);
    return compared;
  }

  /** Puts an entry of the recorded into the replay, as it is. */
  #play(entry: Entry): true {
    const { entries, clock, onEntry } = this.#options;
    this.#position++;
    onEntry(entry);
    for (const id of [entry.data.request_id, entry.data.approval_id, entry.turn_id]) {
      if (typeof id === "string") this.#usedIdsOf(entry.session_id).add(id);
    }
    const following = entries[this.#position];
    clock.follow(Date.parse(entry.ts), Date.parse((following ?? entry).ts));
    this.#resumeReached();
    if (following?.event === "orchestrator:steering_injected") this.#steer(following);
    return true;
  }

  #resumeReached(): void {
    const reaching = this.#reaching.get(this.#position);
    if (!reaching) return;
    this.#reaching.delete(this.#position);
    this.#options.clock.catchUp();
    for (const resolve of reaching) resolve();
  }

  /** Says again what was said: that text, and those that waited with it, unless they were said with an earlier other. */
  #steer(steered: Entry): void {
    const session = this.#sessionOf(steered);
    if (!session) return;
    const { recorded } = session;
    const { seq, data } = steered;
    const before = recorded.all((entry) =>
      entry.event === "orchestrator:steering_injected" && entry.seq < seq
    )
      .at(-1);
    if (before && Number(before.data.queued_remaining) > 0) return;
    const later = recorded.all((entry) =>
      entry.event === "orchestrator:steering_injected" && entry.seq > seq
    );
    const queued = Number(data.queued_remaining);
    const texts = [data, ...later.slice(0, queued).map((entry) => entry.data)].map(({ content }) =>
      String(content)
    );
    while (texts.length <= queued) texts.push("steering text of unknown content"); // its process ended before
    for (const text of texts) session.steer(text);
  }

  /** Keys of the orchestrator's and the context's are compared, others are onEntry back. */
  #stepState(next: Entry, { recorded }: ReplayedSession): boolean {
    const recorded_state = next.data.set as JsonObject; // written by the kernel
    const mine = this.#waitingOf(next.session_id);
    const index = this.#waiting.findIndex((other) =>
      other.entry.event === "session:state" && mine.includes(other)
    );
    if (index < 0) {
      // it is written right before a barrier: that the barrier waits already says that the session left nothing
      const done = mine.length > 0 || this.#ended.has(next.session_id) || this.#given_up === next;
      // behind it its process ended: no barrier may ever come
      const may_be_last = recorded.is_cut &&
        !recorded.find(next.seq, (other) => recorded.sourceOf(other) === "session");
      if (!done) return may_be_last ? this.#waitForSession(next) : false;
      const own = Object.keys(recorded_state).find((key) => recorded.isOwnKey(key));
      if (own === undefined) return this.#play(next);
      this.#reportDifference(next, {
        path: `data.set.${own}`,
        recorded: recorded_state[own],
        replayed: null,
      });
      return false;
    }
    const [{ entry, resolve }] = this.#waiting.splice(index, 1) as [Waiting];
    const replayed = this.#options.secrets.redactEvent(
      next.event,
      toPlainObject(entry.data.set as JsonObject),
    );
    const expected = Object.fromEntries(
      Object.entries(recorded_state).filter(([key]) => key in replayed || recorded.isOwnKey(key)),
    );
    const difference = this.#compare(expected, replayed, "data.set");
    if (difference) this.#reportDifference(next, difference);
    else this.#play(next);
    resolve();
    return difference === null;
  }

  /**
   * Cancels again. Where the recorded turn went on as if nothing had been, it had passed its check already: so it must here,
   * and what it makes next is waited for first.
   */
  #stepCancel(next: Entry, session: ReplayedSession): boolean {
    const { recorded } = session;
    if (this.#waiting.some(({ entry }) => isSame(entry, next))) return this.#acceptWaiting(next);
    if (this.#used.has(next)) return false; // it is on its way
    const following = recorded.find(next.seq, (entry) => recorded.sourceOf(entry) === "session");
    const went_on = following !== undefined && !AFTER_CANCEL.has(following.event);
    const there = this.#waiting.some(({ entry }) => following !== undefined && isSame(entry, following));
    if (went_on && !there && this.#given_up !== next) return this.#waitForSession(next);
    session.cancel(next.data.state === "immediate" ? "immediate" : "graceful");
    return this.#waiting.some(({ entry }) => isSame(entry, next)) || this.#next !== next;
  }

  #playUnlessMade(next: Entry): boolean {
    return this.#ended.has(next.session_id) || this.#given_up === next
      ? this.#play(next)
      : this.#waitForSession(next);
  }

  /** Leaves an entry for the session to make, a little while. */
  #waitForSession(next: Entry): false {
    const timer = this.#settle_timer = new AbortController();
    this.#options.real_clock.after(SETTLE_DELAY_MS, timer.signal).then(() => {
      if (this.#next !== next) return;
      this.#given_up = next;
      this.#advance();
    }, () => {}); // it came
    return false;
  }

  /** Nothing of what waits is due: a difference, unless it belongs to something that runs beside. */
  #checkOrder(next: Entry): false {
    const waiting = this.#waitingOf(next.session_id)
      .find(({ entry }) => !PARALLEL_EVENTS.has(entry.event) && !PARALLEL_EVENTS.has(next.event));
    if (waiting) {
      const replayed = this.#comparable(waiting.entry);
      this.#reportDifference(
        next,
        this.#compare(comparableEntry(next), replayed) ??
          { path: "", recorded: comparableEntry(next), replayed },
      );
    }
    return false;
  }

  #reportDifference(next: Entry, place: Omit<Difference, "seq">): void {
    this.#finish({ seq: next.seq, ...place });
  }

  #finish(difference: Difference | null): void {
    this.#settle_timer?.abort();
    this.#progress_timer?.abort();
    this.#sleep_timer?.abort();
    this.#stopped.abort();
    for (const { resolve } of this.#waiting.splice(0)) resolve();
    this.#finished.resolve(difference);
  }

  /** A session that makes nothing any more, and does not end, has parted from the recorded. */
  #startProgressTimer(): void {
    this.#progress_timer?.abort();
    const next = this.#next;
    if (!next || this.#stopped.signal.aborted) return;
    const timer = this.#progress_timer = new AbortController();
    this.#options.real_clock.after(NO_PROGRESS_TIMEOUT_MS, timer.signal).then(() => {
      const [waiting] = this.#waiting;
      const replayed = waiting ? this.#comparable(waiting.entry) : null;
      this.#reportDifference(next, { path: "", recorded: comparableEntry(next), replayed });
    }, () => {}); // something happened
    this.#startSleepTimer();
  }

  /** Where nobody is waited for, the session may timer too long: what the log tells next says that it was over. */
  #startSleepTimer(): void {
    this.#sleep_timer?.abort();
    if (this.#settle_timer?.signal.aborted === false) return;
    const timer = this.#sleep_timer = new AbortController();
    this.#options.real_clock.after(SETTLE_DELAY_MS, timer.signal).then(() => {
      if (this.#options.clock.endLateSleep()) this.#startSleepTimer();
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
