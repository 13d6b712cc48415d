/**
 * Where a session stands: how many calls this instance has answered and how many tool calls it has made. Kept in
 * `coordinator.session_state`, so that a continued or resumed session goes on where it was.
 *
 * The key is `provider-mock`; when a plan mounts the module several times, the second instance in mount order has
 * `provider-mock:2`, and so on. Mount order is the plan's order, the same in every run of a session; an instance cannot
 * know its `instance_id`, which belongs to whoever mounts it.
 */
import type { ChatRequest, Coordinator, JsonObject } from "preamp";
import type { ScriptEntry } from "./script.ts";

const INSTANCES = "provider-mock.instances";

/** Returns the state key of the instance that is being mounted, and counts it. */
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
  /** At index n: tool calls that the first n entries of the script make. */
  readonly #scripted: readonly number[];
  /** Highest `call_N` seen in the history; looked for once, a run's later ids are our own. */
  #seen: number | undefined;

  /** `state` is asked at each call: what it returns is as of then. */
  constructor(state: () => JsonObject, key: string, script: readonly ScriptEntry[]) {
    this.#state = state;
    this.#key = key;
    let sum = 0;
    this.#scripted = [0, ...script.map((entry) => sum += entry.tool_calls?.length ?? 0)];
  }

  /**
   * Takes the next call and saves that it was taken; synchronous, so calls that overlap get different entries. `answer` says
   * what call number `index` (from 0) will be, `firstId` the number of its first `call_N`.
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
    // What the script alone tells is not saved twice.
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

/** Returns the highest N of the ids `call_N` in a history, 0 without one: a plan that changed in mid-session must not repeat an id. */
function highestCallId(request: ChatRequest): number {
  let highest = 0;
  for (const message of request.messages) {
    for (const call of message.tool_calls ?? []) highest = Math.max(highest, callNumber(call.id));
  }
  return highest;
}

/** Returns the N of an id `call_N`, 0 for any other. */
function callNumber(id: string | undefined): number {
  const number = id?.startsWith("call_") ? Number(id.slice("call_".length)) : 0;
  return Number.isSafeInteger(number) ? number : 0;
}
