/** Gives the sessions of a replay the ids that they generated in the recorded run. */
import type { Entry } from "../../kernel/host.ts";
import { LOOP_SEED } from "../../sdk/guest_ids.ts";
import type { RecordedEvents } from "./recorded_events.ts";

/** The ids of one replay. */
export class RecordedIds {
  /** Session id → ids that the session generated or the recording names. */
  readonly #used = new Map<string, Set<string>>();
  #generated = 0;

  /** Marks the ids that an entry names as used. */
  markUsed({ session_id, turn_id, data }: Entry): void {
    for (const id of [data.request_id, data.approval_id, turn_id]) {
      if (typeof id === "string") this.#usedOf(session_id).add(id);
    }
  }

  /** Returns the id that a session generated after `position` of the recorded run. */
  newId(prefix: string, recorded: RecordedEvents, position: number): string {
    const used = this.#usedOf(recorded.session_id);
    if (prefix === LOOP_SEED) {
      const seed = recorded.seedAfter(position, used);
      if (seed !== null) {
        used.add(seed);
        return `${prefix}_${seed}`;
      }
    }
    const id = recorded.idAfter(position, prefix, used);
    if (id === null) return `${prefix}_replay${++this.#generated}`; // no entry names it
    // an attempt that failed at once left no entry with its id: the next attempt asks for it again
    if (prefix !== "req") used.add(id);
    return id;
  }

  #usedOf(session_id: string): Set<string> {
    let used = this.#used.get(session_id);
    if (!used) this.#used.set(session_id, used = new Set());
    return used;
  }
}
