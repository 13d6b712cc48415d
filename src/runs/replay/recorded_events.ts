/**
 * A recorded log as a replay reads it: which entries the replayed session makes itself, which come from what is only played
 * back, and what was answered to whom.
 */
import type { Entry } from "../../kernel/host.ts";
import { eventsWith } from "../../sdk/events.ts";
import { seedOf } from "../../sdk/guest_ids.ts";
import type { AgentSegment, Segment } from "./segments.ts";
import { isObject, type JsonObject } from "../../sdk/json.ts";

/**
 * Who makes an entry in a replay: `session`: orchestrator, context and kernel, for real. `agent`: the beginning of a sub-agent's
 * turn, which runs for real too. `log`: it is played back. `inner`:
 * the answer to a model call that was not the loop's: the context's, which runs for real, or somebody else's. `state`: what
 * modules left in `session_state`, the context's keys among others. `cancel`: what somebody asked for from outside.
 */
export type Source = "session" | "agent" | "recording" | "inner" | "state" | "cancel";

/** Events that a replayed session emits itself. */
const REPLAYED_EVENTS = eventsWith("replayed");

/** What a log is made of. */
export interface RecordedEventsOptions {
  readonly entries: readonly Entry[];
  readonly segment: Segment;
  /** Ids of the orchestrator and the context. */
  readonly own_modules: readonly string[];
  /** Sub-agents of this session that run for real. */
  readonly agents: readonly AgentSegment[];
  /** Ids of calls that the loop begins with: asked for in another run. */
  readonly open_calls?: readonly string[];
}

/** The segment of a recorded log that one session made. */
export class RecordedEvents {
  readonly session_id: string;
  readonly entries: readonly Entry[];
  readonly #segment: Segment;
  readonly #own_modules: readonly string[];
  readonly #openings: ReadonlySet<Entry | null>;
  readonly #closings: ReadonlySet<Entry | null>;
  readonly #loop_calls = new Set<string>();
  readonly #streams = new Set<unknown>();

  constructor({ entries, segment, own_modules, agents, open_calls = [] }: RecordedEventsOptions) {
    this.session_id = segment.session_id;
    this.entries = entries;
    this.#segment = segment;
    this.#own_modules = own_modules;
    this.#openings = new Set(agents.map(({ opening }) => opening));
    this.#closings = new Set(agents.map(({ closing }) => closing));
    for (const id of open_calls) this.#loop_calls.add(id);
    for (const entry of this.#ownEntries(0, true)) {
      if (entry.event === "content_block:start") this.#streams.add(entry.data.request_id);
      if (entry.event !== "provider:response" || entry.data.inner === true) continue;
      const { tool_calls } = isObject(entry.data.response) ? entry.data.response : {};
      if (Array.isArray(tool_calls)) { for (const call of tool_calls) this.#loop_calls.add(String(call.id)); }
    }
  }

  /** Whether its process ended in the middle of it. */
  get is_cut(): boolean {
    return this.#segment.is_cut;
  }

  /** Whether the log ends with it. */
  get ends_log(): boolean {
    return this.#segment.to === this.entries.length;
  }

  /** Returns whether an entry is on it. */
  contains({ session_id, seq }: Entry): boolean {
    return session_id === this.session_id && seq > this.#segment.from && seq <= this.#segment.to;
  }

  /** `before`: also what was told before this segment. */
  *#ownEntries(from = 0, before = false): Generator<Entry> {
    for (let index = before ? from : Math.max(from, this.#segment.from); index < this.#segment.to; index++) {
      const entry = this.entries[index]!;
      if (entry.session_id === this.session_id) yield entry;
    }
  }

  /** Returns who makes an entry. */
  sourceOf(entry: Entry): Source {
    const { event, data } = entry;
    if (this.#openings.has(entry)) return "agent";
    if (this.#closings.has(entry)) return "session";
    if (event === "cancel:requested") return "cancel";
    if (event === "session:state") return "state";
    if (event === "provider:response" && data.inner === true) return "inner";
    return this.#isOfSession(entry) ? "session" : "recording";
  }

  #isOfSession(entry: Entry): boolean {
    const { event, data } = entry;
    switch (event) {
      case "tool:pre":
      case "tool:post":
      case "tool:error":
        return this.#loop_calls.has(String(data.tool_call_id));
      case "approval:required":
      case "approval:granted":
      case "approval:denied":
        return data.tool_call_id === null || this.#loop_calls.has(String(data.tool_call_id));
      case "provider:response":
        return true;
      case "provider:retry": // the loop's name the attempt
        return data.request_id !== undefined;
      case "provider:resolve": // the loop's follow a failure
        return this.#before(entry)?.event === "provider:error";
      case "llm:stream_aborted":
        return this.#streams.has(data.request_id);
      case "policy:violation":
        return data.kind === "injection_size" || data.kind === "injection_budget";
      case "user:notification":
        return this.isOwnModule(data.source);
      case "module:on_session_ready_failed":
        return this.isOwnModule(data.module_id);
      default:
        return REPLAYED_EVENTS.has(event) || event.startsWith("context:");
    }
  }

  #before(entry: Entry): Entry | undefined {
    return this.entries.slice(0, entry.seq - 1).findLast((other) => other.session_id === this.session_id);
  }

  /** Returns whether a key of `session_state` is the orchestrator's or the context's. */
  isOwnKey(key: string): boolean {
    return this.#own_modules.some((id) => key === id || key.startsWith(`${id}:`));
  }

  /** Returns whether a module is the orchestrator or the context. */
  isOwnModule(id: unknown): boolean {
    return this.#own_modules.includes(String(id));
  }

  /** Returns the first entry of the session at or behind `from` that `wanted` holds for. */
  find(from: number, wanted: (entry: Entry) => boolean): Entry | undefined {
    for (const entry of this.#ownEntries(from)) if (wanted(entry)) return entry;
    return undefined;
  }

  /** Returns the last entry of the session that `wanted` holds for, in this segment or an earlier one. */
  findBefore(wanted: (entry: Entry) => boolean): Entry | undefined {
    return [...this.#ownEntries(0, true)].findLast(wanted);
  }

  /** Returns every entry of the session that `wanted` holds for. */
  all(wanted: (entry: Entry) => boolean): Entry[] {
    return [...this.#ownEntries()].filter(wanted);
  }

  /** Returns the first seed of a loop that ran elsewhere, as its ids at or behind `from` have it and `taken` does not, or null. */
  seedAfter(from: number, taken: ReadonlySet<string>): string | null {
    for (const entry of this.#ownEntries(from)) {
      for (const id of idsOfLoop(entry)) {
        const seed = seedOf(id);
        if (seed !== null && !taken.has(seed)) return seed;
      }
    }
    return null;
  }

  /** Returns the first id with this prefix that an entry at or behind `from` names and `taken` does not have, or null. */
  idAfter(from: number, prefix: string, taken: ReadonlySet<string>): string | null {
    for (const entry of this.#ownEntries(from)) {
      for (const id of idsOf(entry)) if (id.startsWith(`${prefix}_`) && !taken.has(id)) return id;
    }
    return null;
  }
}

/** Ids that a loop made up, where entries name them. */
function idsOfLoop({ data }: Entry): string[] {
  return [data.request_id, data.parallel_group_id].filter((id): id is string => typeof id === "string");
}

/** Ids that a session made up, where entries name them. */
function idsOf({ turn_id, data }: Entry): string[] {
  const named = [turn_id, data.request_id, data.parallel_group_id, data.approval_id, data.tool_call_id];
  return named.filter((id): id is string => typeof id === "string");
}

/** Returns what tells entries of one event apart that are made at the same time: the call or the agent that they are about. */
export function callOf(data: JsonObject): unknown {
  return data.sub_session_id ?? data.tool_call_id ?? data.approval_id ?? null;
}
