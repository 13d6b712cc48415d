/**
 * The position in the script: how many calls this instance has answered and how many tool calls it has made. It is saved in
 * `coordinator.session_state`, so that a continued or resumed session continues at the same entry.
 *
 * The key is `provider-mock`. If a plan mounts the module several times, the second instance in mount order has
 * `provider-mock:2`, and so on. Mount order is the order of the plan, which is the same in every run of a session. An
 * instance does not know its `instance_id`.
 */
import type { ChatRequest, Coordinator, JsonObject } from "preamp/base";
import type { ScriptEntry } from "./config.ts";

const INSTANCES = "provider-mock.instances";

/** Counts the instance that is being mounted and returns its state key. */
export function claimStateKey(coordinator: Coordinator): string {
  const before = coordinator.getCapability(INSTANCES);
  const instance = (typeof before === "number" ? before : 0) + 1;
  coordinator.registerCapability(INSTANCES, instance);
  return instance === 1 ? "provider-mock" : `provider-mock:${instance}`;
}

/** The position of one instance in one session. */
export class Position {
  readonly #state: () => JsonObject;
  readonly #key: string;
  /** At index n: the number of tool calls in the first n entries of the script. */
  readonly #scripted: readonly number[];
  /** Highest `call_N` in the history. Searched once, because later ids of the run are created here. */
  #seen: number | undefined;

  /** Creates the position of an instance; `state` is called for each access. */
  constructor(state: () => JsonObject, key: string, script: readonly ScriptEntry[]) {
    this.#state = state;
    this.#key = key;
    let sum = 0;
    this.#scripted = [0, ...script.map((entry) => sum += entry.tool_calls?.length ?? 0)];
  }

  /**
   * Returns the entry of the next call and saves the new position. It is synchronous, so overlapping calls get different
   * entries.
   *
   * @param answer Returns the entry of call number `index`, counted from 0.
   * @returns The entry, and the number of its first `call_N`.
   */
  take(
    request: ChatRequest,
    answer: (index: number) => ScriptEntry,
  ): { entry: ScriptEntry; firstId: number } {
    const { calls, tool_calls } = this.#read();
    this.#seen ??= highestCallId(request);
    const used = Math.max(tool_calls ?? this.#scriptedBefore(calls), this.#seen);
    const entry = answer(calls);
    let total = used + (entry.tool_calls?.length ?? 0);
    for (const call of entry.tool_calls ?? []) total = Math.max(total, callNumber(call.id));
    this.#seen = total;
    // Not saved if it follows from the script.
    const derived = total === this.#scriptedBefore(calls + 1);
    this.#state()[this.#key] = derived ? { calls: calls + 1 } : { calls: calls + 1, tool_calls: total };
    return { entry, firstId: used + 1 };
  }

  #scriptedBefore(calls: number): number {
    return this.#scripted[Math.min(calls, this.#scripted.length - 1)] ?? 0;
  }

  #read(): { calls: number; tool_calls: number | undefined } {
    const saved = this.#state()[this.#key] as JsonObject | undefined;
    return { calls: count(saved?.calls) ?? 0, tool_calls: count(saved?.tool_calls) };
  }
}

function count(value: unknown): number | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

/** Returns the highest N of the ids `call_N` in a history, or 0. Ids stay unique when the plan changes in mid-session. */
function highestCallId(request: ChatRequest): number {
  let highest = 0;
  for (const message of request.messages) {
    for (const call of message.tool_calls ?? []) highest = Math.max(highest, callNumber(call.id));
  }
  return highest;
}

/** Returns the N of an id `call_N`, or 0 for any other id. */
function callNumber(id: string | undefined): number {
  const number = id?.startsWith("call_") ? Number(id.slice("call_".length)) : 0;
  return Number.isSafeInteger(number) ? number : 0;
}
