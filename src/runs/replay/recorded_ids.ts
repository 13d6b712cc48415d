/** Gives the sessions of a replay the ids that they generated in the recorded run. */
import type { Entry } from "../../kernel/host.ts";
import { LOOP_SEED, seedOf } from "../../sdk/ids.ts";
import type { RecordedEvents } from "./recorded_events.ts";

/** The ids of one replay. */
export class RecordedIds {
  /** Ids that a session generated or that an entry before the current position names, after its session's id. */
  readonly #used = new Set<string>();
  #generated = 0;

  /** Marks the ids that an entry names as used. */
  markUsed(entry: Entry): void {
    for (const id of idsOf(entry)) this.#used.add(`${entry.session_id} ${id}`);
  }

  /** Returns the id that a session generated after `position` of the recorded run. */
  newId(prefix: string, recorded: RecordedEvents, position: number): string {
    const { session_id } = recorded;
    const id = recorded.from(position).flatMap(idsOf)
      .find((id) => id.startsWith(`${prefix}_`) && !this.#used.has(`${session_id} ${id}`));
    if (id === undefined) return `${prefix}_replay${++this.#generated}`; // no entry names it
    // an attempt that failed at once left no entry with its id: the next attempt asks for it again
    if (prefix !== "req") this.#used.add(`${session_id} ${id}`);
    return id;
  }
}

/** Returns the ids in an entry that a session may have generated, and the seeds of a sandboxed loop. */
function idsOf({ turn_id, data }: Entry): string[] {
  const of_loop = [data.request_id, data.parallel_group_id].filter((id) => typeof id === "string");
  const seeds = of_loop.map(seedOf).filter((seed) => seed !== null).map((seed) => `${LOOP_SEED}_${seed}`);
  const others = [turn_id, data.approval_id, data.tool_call_id].filter((id) => typeof id === "string");
  return [...of_loop, ...others, ...seeds];
}
