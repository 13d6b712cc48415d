/**
 * Orders a replay. Compares each entry that a session emits with the recorded one when its turn comes, plays
 * back the entries of everything else, and repeats what came from outside (cancellation, steering).
 */
import type { DraftEntry, Entry } from "../../kernel/host.ts";
import { eventsWith } from "../../sdk/events.ts";
import { isObject, type JsonObject, toPlainObject } from "../../sdk/json.ts";
import { cancelledCallText } from "../../sdk/tools.ts";
import type { Clock, Emission } from "../../sdk/types.ts";
import type { SecretSink } from "../ports.ts";
import { REDACTED } from "../../policy/redact.ts";
import type { Difference } from "../types.ts";
import {
  comparableEntry,
  type DifferencePlace,
  firstDifference,
  type IgnoredFields,
  isSame,
} from "./compare.ts";
import { answersOf, emissionOf, steeringTexts } from "./recorded_results.ts";
import { RecordedIds } from "./recorded_ids.ts";
import { ReplayTimers } from "./replay_timers.ts";
import type { VirtualClock } from "./virtual_clock.ts";
import { callOf, type RecordedEvents } from "./recorded_events.ts";

/** A session that runs in the replay, and its part of the log. */
export interface ReplayedSession {
  readonly recorded: RecordedEvents;
  steer(text: string): void;
  cancel(mode: "graceful" | "immediate"): void;
}

/** Options of {@link Sequencer}. */
export interface SequencerOptions {
  entries: readonly Entry[];
  clock: VirtualClock;
  /** The clock of the process; detects that no session makes progress. */
  real_clock: Clock;
  secrets: Pick<SecretSink, "redactEvent" | "redactValues">;
  /** Starts the turn of a sub-agent; its parent then emits `opening`. */
  beginAgent(opening: Entry): void;
  /** Receives the entries of the replay, in order. */
  onEntry(entry: Entry): void;
}

interface Waiting {
  readonly entry: DraftEntry;
  readonly resolve: () => void;
}

/** Events of which several can be in progress at once: an early one waits for its recorded place. */
const PARALLEL_EVENTS = eventsWith("parallel");

/** Events that may follow directly after `cancel:requested` in a turn that stops. */
const AFTER_CANCEL = eventsWith("after_cancel");

/** Orders the entries of one replay. */
export class Sequencer {
  readonly #options: SequencerOptions;
  readonly #ignored: IgnoredFields;
  readonly #waiting: Waiting[] = [];
  /** Index of an entry → functions to call when that entry comes next. */
  readonly #reaching = new Map<number, (() => void)[]>();
  readonly #sessions = new Map<string, ReplayedSession>();
  readonly #used = new Set<Entry>();
  readonly #ids = new RecordedIds();
  /** Ids of sessions that have ended. */
  readonly #ended = new Set<string>();
  readonly #begun_agents = new Set<Entry>();
  readonly #finished = Promise.withResolvers<Difference | null>();
  readonly #stopped = new AbortController();
  #position = 0;
  readonly #timers: ReplayTimers;
  /** The entry whose session was waited for long enough. */
  #given_up: Entry | null = null;

  constructor(options: SequencerOptions) {
    this.#options = options;
    this.#timers = new ReplayTimers(options.real_clock, options.clock, {
      onSettled: (next) => {
        if (this.#next !== next) return;
        this.#given_up = next;
        this.#advance();
      },
      onNoProgress: (next) => {
        const [waiting] = this.#waiting;
        const replayed = waiting ? this.#comparable(waiting.entry) : null;
        this.#reportDifference(next, { path: "", recorded: comparableEntry(next), replayed });
      },
    });
    this.#ignored = JSON.stringify(options.entries).includes(REDACTED) ? "redacted" : "clock";
  }

  #compare(recorded: unknown, replayed: unknown, path?: string): DifferencePlace | null {
    return firstDifference(recorded, replayed, this.#ignored, path);
  }

  /** Resolves to null at the end of the recording, or to the first difference. */
  get finished(): Promise<Difference | null> {
    return this.#finished.promise;
  }

  /** Index of the next entry. */
  get position(): number {
    return this.#position;
  }

  get #next(): Entry | undefined {
    return this.#options.entries[this.#position];
  }

  /** Starts the replay. */
  start(): void {
    this.#advance();
  }

  /** Adds a session. Replaces an earlier one with the same id. */
  add(session: ReplayedSession): void {
    this.#sessions.set(session.recorded.session_id, session);
    this.#ended.delete(session.recorded.session_id);
  }

  /** Resolves when an entry comes next, at its recorded time. Returns undefined when it has been reached. */
  reached({ seq }: Entry): Promise<void> | void {
    const index = seq - 1;
    if (this.#position > index) return;
    if (this.#position === index) return this.#options.clock.catchUp();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#reaching.set(index, [...this.#reaching.get(index) ?? [], resolve]);
    return promise;
  }

  /** Removes all sessions: their process ended here. */
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

  /** Receives an entry that a session emits. Returns a promise when its turn has not come. */
  record(entry: DraftEntry): Promise<void> | void {
    if (this.#stopped.signal.aborted) return;
    let resolve = () => {};
    const waited = new Promise<void>((done) => resolve = done);
    const waiting: Waiting = { entry, resolve };
    this.#waiting.push(waiting);
    this.#advance();
    return this.#waiting.includes(waiting) ? waited : undefined;
  }

  /** Returns the recorded result of the hooks of an event. */
  emissionFor(event: string, data: JsonObject, recorded: RecordedEvents): Emission {
    const call = callOf(data);
    const entry = recorded.find(
      this.#position,
      (other) =>
        other.event === event && !this.#used.has(other) && (call === null || callOf(other.data) === call),
    );
    // not recorded: reported when the entry is compared
    if (!entry) return emissionOf({ data } as Entry, data, recorded);
    this.#used.add(entry);
    return emissionOf(entry, data, recorded);
  }

  /** Returns the recorded answers to an event that collects answers. */
  answersFor(data: JsonObject, recorded: RecordedEvents): JsonObject[] {
    return answersOf(recorded, this.#position, data);
  }

  /** Returns the id that a session generated at this place of the recorded run. */
  newId(prefix: string, recorded: RecordedEvents): string {
    return this.#ids.newId(prefix, recorded, this.#position);
  }

  /** Ends a session. A recorded entry that it has not emitted is a difference. */
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

  /** Compares the run object, the data of the last entry, and ends the replay. */
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
    this.#timers.stopSettling();
    for (let next = this.#next; next && !this.#stopped.signal.aborted; next = this.#next) {
      if (!this.#step(next)) break;
    }
    const next = this.#next;
    if (next && !this.#stopped.signal.aborted) this.#timers.awaitProgress(next);
    else this.#timers.stop();
  }

  /** Processes the next entry. Returns false when a session must act first. */
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
    if (this.#begun_agents.has(opening)) return false; // the parent is about to emit it
    this.#begun_agents.add(opening);
    this.#options.beginAgent(opening);
    return this.#next !== opening;
  }

  /** Compares the waiting entry that matches `next`, if there is one. */
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

  /** Adds a recorded entry to the replay unchanged. */
  #play(entry: Entry): true {
    const { entries, clock, onEntry } = this.#options;
    this.#position++;
    onEntry(entry);
    this.#ids.markUsed(entry);
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

  /** Repeats a steering message and those queued with it, unless an earlier entry has repeated them. */
  #steer(steered: Entry): void {
    const session = this.#sessionOf(steered);
    for (const text of session ? steeringTexts(steered, session.recorded) : []) session!.steer(text);
  }

  /** Compares the keys of orchestrator and context; plays back the keys of other modules. */
  #stepState(next: Entry, { recorded }: ReplayedSession): boolean {
    const recorded_state = next.data.set as JsonObject; // written by the kernel
    const mine = this.#waitingOf(next.session_id);
    const index = this.#waiting.findIndex((other) =>
      other.entry.event === "session:state" && mine.includes(other)
    );
    if (index < 0) {
      // state is recorded right before a barrier: if the barrier waits already, the session changed no state
      const done = mine.length > 0 || this.#ended.has(next.session_id) || this.#given_up === next;
      // the process ended here: the barrier may never come
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
   * Repeats a cancellation. If the recorded turn continued, it had already passed its check: then waits for
   * its next entry first.
   */
  #stepCancel(next: Entry, session: ReplayedSession): boolean {
    const { recorded } = session;
    if (this.#waiting.some(({ entry }) => isSame(entry, next))) return this.#acceptWaiting(next);
    if (this.#used.has(next)) return false; // the session is about to emit it
    const following = recorded.find(next.seq, (entry) => recorded.sourceOf(entry) === "session");
    const went_on = next.turn_id !== undefined && following !== undefined && !followsCancel(following);
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

  /** Waits a short time for the session to emit an entry. */
  #waitForSession(next: Entry): false {
    this.#timers.settle(next);
    return false;
  }

  /** Reports a difference when the session emitted another entry instead, unless both may run in parallel. */
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
    this.#timers.stop();
    this.#stopped.abort();
    for (const { resolve } of this.#waiting.splice(0)) resolve();
    this.#finished.resolve(difference);
  }
}

/**
 * Returns whether a turn that was cancelled emits this entry next: an end event, the end of a sub-agent that
 * was cancelled with it, or the result of a call that was.
 */
function followsCancel({ event, data }: Entry): boolean {
  if (AFTER_CANCEL.has(event)) return true;
  if (event === "task:agent_completed") return data.status === "cancelled";
  const { message } = data;
  return event === "context:message" && isObject(message) && message.role === "tool" &&
    message.content === cancelledCallText(String(message.name));
}
