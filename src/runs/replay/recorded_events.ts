/**
 * Reads one session's part of a recorded log: which entries the replayed session emits itself, and which are
 * played back.
 */
import type { Entry } from "../../kernel/host.ts";
import { eventsWith } from "../../sdk/events.ts";
import { seedOf } from "../../sdk/guest_ids.ts";
import type { AgentSegment, Segment } from "./segments.ts";
import { isObject, type JsonObject } from "../../sdk/json.ts";

/**
 * Origin of an entry in a replay. `session`: emitted by the replayed orchestrator, context and kernel.
 * `agent`: starts a sub-agent's turn that is replayed too. `recording`: played back. `inner`: the response to
 * a provider call outside of the loop, by the context (which runs) or by another module. `state`: changes of
 * `session_state`, by the context or by other modules. `cancel`: a request from outside.
 */
export type Source = "session" | "agent" | "recording" | "inner" | "state" | "cancel";

/** Events that a replayed session emits itself. */
const REPLAYED_EVENTS = eventsWith("replayed");

/** Options of {@link RecordedEvents}. */
export interface RecordedEventsOptions {
  readonly entries: readonly Entry[];
  readonly segment: Segment;
  /** Ids of the orchestrator and the context. */
  readonly own_modules: readonly string[];
  /** Sub-agents of this session that are replayed. */
  readonly agents: readonly AgentSegment[];
  /** Ids of the tool calls that another run's turn left open and the loop starts with. */
  readonly open_calls?: readonly string[];
}

/** One session's segment of a recorded log. */
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

  /** Whether the process ended before the segment was complete. */
  get is_cut(): boolean {
    return this.#segment.is_cut;
  }

  /** Whether the segment is the last one of the log. */
  get ends_log(): boolean {
    return this.#segment.to === this.entries.length;
  }

  /** Returns whether the segment contains an entry. */
  contains({ session_id, seq }: Entry): boolean {
    return session_id === this.session_id && seq > this.#segment.from && seq <= this.#segment.to;
  }

  /** Yields the session's entries. `before`: includes those before this segment. */
  *#ownEntries(from = 0, before = false): Generator<Entry> {
    for (let index = before ? from : Math.max(from, this.#segment.from); index < this.#segment.to; index++) {
      const entry = this.entries[index]!;
      if (entry.session_id === this.session_id) yield entry;
    }
  }

  /** Returns the origin of an entry. */
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
      case "provider:retry": // the loop's retries name the attempt
        return data.request_id !== undefined;
      case "provider:resolve": // the loop selects another provider after a failure
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

  /** Returns whether a key of `session_state` belongs to the orchestrator or the context. */
  isOwnKey(key: string): boolean {
    return this.#own_modules.some((id) => key === id || key.startsWith(`${id}:`));
  }

  /** Returns whether a module is the orchestrator or the context. */
  isOwnModule(id: unknown): boolean {
    return this.#own_modules.includes(String(id));
  }

  /** Returns the session's first entry at or after index `from` for which `wanted` returns true. */
  find(from: number, wanted: (entry: Entry) => boolean): Entry | undefined {
    for (const entry of this.#ownEntries(from)) if (wanted(entry)) return entry;
    return undefined;
  }

  /** Returns the session's last entry for which `wanted` returns true, in this or an earlier segment. */
  findBefore(wanted: (entry: Entry) => boolean): Entry | undefined {
    return [...this.#ownEntries(0, true)].findLast(wanted);
  }

  /** Returns every entry of the session for which `wanted` returns true. */
  all(wanted: (entry: Entry) => boolean): Entry[] {
    return [...this.#ownEntries()].filter(wanted);
  }

  /**
   * Returns the first seed of a sandboxed loop that an id at or after index `from` contains and `taken` does
   * not, or null.
   */
  seedAfter(from: number, taken: ReadonlySet<string>): string | null {
    for (const entry of this.#ownEntries(from)) {
      for (const id of idsOfLoop(entry)) {
        const seed = seedOf(id);
        if (seed !== null && !taken.has(seed)) return seed;
      }
    }
    return null;
  }

  /** Returns the first id with this prefix at or after index `from` that is not in `taken`, or null. */
  idAfter(from: number, prefix: string, taken: ReadonlySet<string>): string | null {
    for (const entry of this.#ownEntries(from)) {
      for (const id of idsOf(entry)) if (id.startsWith(`${prefix}_`) && !taken.has(id)) return id;
    }
    return null;
  }
}

/** Returns the ids in an entry that a loop generated. */
function idsOfLoop({ data }: Entry): string[] {
  return [data.request_id, data.parallel_group_id].filter((id): id is string => typeof id === "string");
}

/** Returns the ids in an entry that a session generated. */
function idsOf({ turn_id, data }: Entry): string[] {
  const named = [turn_id, data.request_id, data.parallel_group_id, data.approval_id, data.tool_call_id];
  return named.filter((id): id is string => typeof id === "string");
}

/** Returns what distinguishes concurrent entries of the same event: the id of their call or sub-agent. */
export function callOf(data: JsonObject): unknown {
  return data.sub_session_id ?? data.tool_call_id ?? data.approval_id ?? null;
}
