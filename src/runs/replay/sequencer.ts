/**
 * Orders a replay. Compares each entry that a session emits with the recorded one when its turn comes, plays
 * back the entries of everything else, and repeats what came from outside (cancellation, steering).
 */
import { type DraftEntry, type Entry, isBarrier } from "../../kernel/host.ts";
import type { RunLimitGuard } from "../../kernel/run_limits.ts";
import type { Session } from "../../kernel/session/session.ts";
import { REDACTED } from "../../policy/redact.ts";
import { noopEmission } from "../../sdk/hook_chain.ts";
import { isObject, type JsonObject, toPlainObject } from "../../sdk/json.ts";
import type { Clock, Emission } from "../../sdk/types.ts";
import type { SecretSink } from "../ports.ts";
import type { Difference } from "../types.ts";
import { comparableEntry, firstDifference, isSame } from "./compare.ts";
import {
  callOf,
  PARALLEL_EVENTS,
  type RecordedEvents,
  RecordedIds,
  silentCancelsOf,
} from "./recorded_events.ts";
import { emissionOf, steeringTexts } from "./recorded_results.ts";
import type { VirtualClock } from "./virtual_clock.ts";

/** A session that runs in the replay, and its part of the log. */
export interface ReplayedSession {
  readonly session: Session;
  readonly recorded: RecordedEvents;
  readonly limitGuard: RunLimitGuard;
  /** Whether the session has ended; it emits nothing more. */
  ended: boolean;
  /** Keys of `session_state` that the session assigned since its last barrier. */
  assigned: JsonObject;
  /** Index up to which its `session_state` is compared. */
  compared: number;
  /** Closes the session: what it still emits is ignored. */
  close(): void;
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

/** An entry that a session has emitted and whose turn has not come. */
interface Waiting {
  readonly entry: DraftEntry;
  /** Keys of `session_state` that the session assigned since its last barrier. */
  readonly state: JsonObject;
  readonly resolve: () => void;
}

/** Milliseconds of real time to wait for an entry that may not come, and for sleeps of uncertain end. */
const SETTLE_MS = 20;

/** Milliseconds without progress after which the replay reports a difference. */
const NO_PROGRESS_MS = 2_000;

/** Orders the entries of one replay. */
export class Sequencer {
  /** The ids of the recorded run. */
  readonly ids = new RecordedIds();
  /** The sessions of the replay that have not been closed, by id. */
  readonly sessions = new Map<string, ReplayedSession>();
  readonly #options: SequencerOptions;
  readonly #is_redacted: boolean;
  readonly #waiting: Waiting[] = [];
  /** Index of an entry → resolved when that entry comes next. */
  readonly #reaching = new Map<number, PromiseWithResolvers<void>>();
  /** Entries whose hooks were called: their session is about to emit them. */
  readonly #used = new Set<Entry>();
  readonly #begun_agents = new Set<Entry>();
  readonly #finished = Promise.withResolvers<Difference | null>();
  /** Resolves to null at the end of the recording, or to the first difference. */
  readonly finished = this.#finished.promise;
  #is_finished = false;
  #position = 0;
  /** Immediate cancellations without an entry at their place that are to come. */
  readonly #silent_cancels: ReturnType<typeof silentCancelsOf>;
  /** Aborted when an entry comes. */
  #idle = new AbortController();
  /** The next entry, after no session has emitted anything for a short time: it is not expected any more. */
  #given_up: Entry | null = null;

  constructor(options: SequencerOptions) {
    this.#options = options;
    this.#silent_cancels = silentCancelsOf(options.entries);
    this.#is_redacted = JSON.stringify(options.entries).includes(REDACTED);
  }

  /** Index of the next entry. */
  get position(): number {
    return this.#position;
  }

  get #next(): Entry | undefined {
    return this.#options.entries[this.#position];
  }

  /** Closes all sessions: their process ended here. */
  clear(): void {
    for (const session of this.sessions.values()) session.close();
    this.sessions.clear();
    for (const { resolve } of this.#waiting.splice(0)) resolve();
  }

  /** Resolves when an entry comes next, at its recorded time; at once when it has been reached. */
  async reached({ seq }: Entry): Promise<void> {
    const index = seq - 1;
    if (this.#position > index) return;
    if (this.#position === index) return await this.#options.clock.catchUp();
    let reaching = this.#reaching.get(index);
    if (!reaching) this.#reaching.set(index, reaching = Promise.withResolvers());
    await reaching.promise;
  }

  #sessionOf(entry: Entry): ReplayedSession | undefined {
    const session = this.sessions.get(entry.session_id);
    return session?.recorded.contains(entry) ? session : undefined;
  }

  /** Receives an entry that a session emits. Returns a promise when its turn has not come. */
  record(entry: DraftEntry, replayed: ReplayedSession): Promise<void> | void {
    if (this.#is_finished) return;
    // compared when its barrier is: in the recorded run, the barrier of a stubbed module may have come first
    if (entry.event === "session:state") {
      replayed.assigned = entry.data.set as JsonObject; // written by the kernel
      return;
    }
    const { session, recorded } = replayed;
    if (recorded.supplies(entry)) return;
    // a hook of an earlier call may have cancelled the turn before this call began
    const is_stopped = session.cancellation.is_immediate && entry.event === "tool:pre";
    if (is_stopped && !recorded.find(this.#position, (next) => isSame(entry, next))) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const state = isBarrier(entry) ? takeAssigned(replayed) : {};
    const waiting: Waiting = { entry, state, resolve };
    this.#waiting.push(waiting);
    this.advance();
    return this.#waiting.includes(waiting) ? promise : undefined;
  }

  /** Returns the recorded result of the hooks of an event. */
  emissionFor(event: string, data: JsonObject, recorded: RecordedEvents): Emission {
    const call = callOf(data);
    const entry = recorded.find(
      this.#position,
      (other) => other.event === event && !this.#used.has(other) && callOf(other.data) === call,
    );
    if (!entry) return noopEmission(data); // reported when the entry is compared
    this.#used.add(entry);
    return emissionOf(entry, data, recorded);
  }

  /** Ends a session. A recorded entry that it has not emitted is a difference. */
  end(session: ReplayedSession): void {
    if (this.#is_finished) return;
    const { recorded } = session;
    session.ended = true;
    this.advance();
    const next = this.#next;
    if (!next) return;
    const assigned = takeAssigned(session);
    const state = recorded.segment.is_cut
      ? null
      : this.#stateDifference(session, recorded.segment.to, assigned);
    if (state) return this.#finish(state);
    if (next.event === "run:end") return;
    const is_all = next.session_id !== recorded.session_id && recorded.ends_log;
    if (is_all || this.#sessionOf(next) === session) {
      this.#finish(wholeDifference(next, null));
    }
  }

  /** Compares the run object, the data of the last entry, and ends the replay. */
  close(run: JsonObject): void {
    const next = this.#next;
    if (this.#is_finished) return;
    if (!next) return this.#finish(null);
    const replayed = this.#options.secrets.redactEvent(next.event, toPlainObject({ run }));
    this.#finish(this.#compare(next.seq, toPlainObject(next.data), replayed, "data"));
  }

  /** Processes the entries whose turn has come. */
  advance(): void {
    for (let next = this.#next; next && !this.#is_finished; next = this.#next) {
      for (const [id, index] of this.#silent_cancels) {
        if (this.#position === index) void this.sessions.get(id)?.session.cancel("immediate");
      }
      if (!this.#step(next)) break;
    }
    this.#idle.abort();
    const next = this.#next;
    if (!next || this.#is_finished) return;
    this.#idle = new AbortController();
    this.#watch(next);
  }

  /** Acts in real time when no entry comes, because a session may wait for a sleep or emit nothing more. */
  #watch(next: Entry, idle_ms = SETTLE_MS): void {
    const { clock, real_clock } = this.#options;
    real_clock.after(SETTLE_MS, this.#idle.signal).then(() => {
      if (this.#given_up !== next) {
        this.#given_up = next;
        this.advance();
      } else if (idle_ms >= NO_PROGRESS_MS) {
        const [waiting] = this.#waiting;
        this.#finish(wholeDifference(next, waiting ? this.#comparable(waiting.entry) : null));
      } else {
        clock.endLateSleep();
        this.#watch(next, idle_ms + SETTLE_MS);
      }
    }, () => {}); // an entry came
  }

  /** Processes the next entry. Returns false when a session must act first. */
  #step(next: Entry): boolean {
    const session = this.#sessionOf(next);
    if (!session) return this.#play(next);
    switch (session.recorded.sourceOf(next)) {
      case "recording":
        return this.#play(next);
      case "agent":
        return this.#acceptWaiting(next, session) || this.#beginAgent(next);
      case "inner":
        if (this.#acceptWaiting(next, session)) return true;
        return (session.ended || this.#given_up === next) && this.#play(next);
      case "cancel":
        return this.#stepCancel(next, session);
      default:
        if (next.event === "run:end") return false;
        return this.#acceptWaiting(next, session) || this.#checkOrder(next);
    }
  }

  #beginAgent(opening: Entry): boolean {
    if (this.#begun_agents.has(opening)) return false; // the parent is about to emit it
    this.#begun_agents.add(opening);
    this.#options.beginAgent(opening);
    return this.#next !== opening;
  }

  #waitsFor(next: Entry): boolean {
    return this.#waiting.some(({ entry }) => isSame(entry, next));
  }

  /** Compares the waiting entry that matches `next`, if there is one. */
  #acceptWaiting(next: Entry, session: ReplayedSession): boolean {
    const index = this.#waiting.findIndex(({ entry }) => isSame(entry, next));
    if (index < 0) return false;
    const [{ entry, state, resolve }] = this.#waiting.splice(index, 1) as [Waiting];
    const difference = isBarrier(next) && this.#stateDifference(session, next.seq, state) ||
      this.#compare(next.seq, comparableEntry(next), this.#comparable(entry));
    if (difference) this.#finish(difference);
    else {
      this.ids.markUsed(next);
      this.#play(next);
    }
    resolve();
    return difference === null;
  }

  /**
   * Compares the keys of `session_state` that a session assigned with those recorded before index `to`. Keys
   * of modules that do not run are ignored.
   */
  #stateDifference(session: ReplayedSession, to: number, assigned: JsonObject): Difference | null {
    const { recorded, compared: from } = session;
    session.compared = to;
    const replayed = this.#options.secrets.redactEvent("session:state", toPlainObject(assigned));
    const expected: JsonObject = {};
    let last = to;
    for (const { seq, event, data } of recorded.from(from, to)) {
      if (event !== "session:state") continue;
      last = seq;
      for (const [key, value] of Object.entries(data.set as JsonObject)) { // written by the kernel
        if (key in replayed || recorded.isOwnKey(key)) expected[key] = value;
      }
    }
    return this.#compare(last, expected, replayed, "data.set");
  }

  #compare(seq: number, recorded: JsonObject, replayed: JsonObject, path?: string): Difference | null {
    const place = firstDifference(recorded, replayed, this.#is_redacted, path);
    return place && { seq, ...place };
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
    const following = entries[this.#position];
    clock.follow(Date.parse(entry.ts), Date.parse((following ?? entry).ts));
    const reaching = this.#reaching.get(this.#position);
    if (reaching) {
      this.#reaching.delete(this.#position);
      clock.catchUp();
      reaching.resolve();
    }
    if (following?.event === "orchestrator:steering_injected") this.#steer(following);
    return true;
  }

  /** Repeats a steering message and those queued with it, unless an earlier entry has repeated them. */
  #steer(steered: Entry): void {
    const { session, recorded } = this.#sessionOf(steered) ?? {};
    const steer = session?.getCapability("session.steer");
    if (!recorded || typeof steer !== "function") return;
    for (const text of steeringTexts(steered, recorded)) {
      Promise.resolve(steer(text)).catch(() => {}); // a sandboxed loop reports failures by its own events
    }
  }

  /**
   * Repeats a cancellation, which also cancels the sub-agents. Waits first for the next entry of each turn
   * that continued: it had already passed its check.
   */
  #stepCancel(next: Entry, session: ReplayedSession): boolean {
    if (this.#waitsFor(next)) return this.#acceptWaiting(next, session);
    if (this.#used.has(next)) return false; // the session is about to emit it
    const all_there = this.#continuedAfterCancel().every((following) => this.#waitsFor(following));
    if (!all_there && this.#given_up !== next) return false;
    void session.session.cancel(next.data.state === "immediate" ? "immediate" : "graceful");
    return this.#waitsFor(next) || this.#next !== next;
  }

  /** Returns the next entries of the turns that are cancelled here and were recorded as continuing. */
  #continuedAfterCancel(): Entry[] {
    const { entries } = this.#options;
    const continued: (Entry | null)[] = [];
    for (let at = this.#position; entries[at]?.event === "cancel:requested"; at++) {
      const entry = entries[at]!;
      continued.push(this.#sessionOf(entry)?.recorded.continuedAfter(entry) ?? null);
    }
    return continued.filter((entry) => entry !== null);
  }

  /** Reports a difference when the session emitted another entry instead, unless both may run in parallel. */
  #checkOrder(next: Entry): false {
    if (PARALLEL_EVENTS.has(next.event)) return false;
    const other = this.#waiting.find(({ entry }) =>
      entry.session_id === next.session_id && !PARALLEL_EVENTS.has(entry.event) &&
      entry.event !== "cancel:requested" // its handlers may have taken any time
    );
    if (other) {
      const replayed = this.#comparable(other.entry);
      const difference = this.#compare(next.seq, comparableEntry(next), replayed);
      this.#finish(difference ?? wholeDifference(next, replayed));
    }
    return false;
  }

  #finish(difference: Difference | null): void {
    this.#is_finished = true;
    this.#idle.abort();
    for (const { resolve } of this.#waiting.splice(0)) resolve();
    this.#finished.resolve(difference);
  }
}

function takeAssigned(session: ReplayedSession): JsonObject {
  const { assigned } = session;
  session.assigned = {};
  return assigned;
}

function wholeDifference(next: Entry, replayed: JsonObject | null): Difference {
  return { seq: next.seq, path: "", recorded: comparableEntry(next), replayed };
}
