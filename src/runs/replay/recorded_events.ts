/**
 * Reads one session's part of a recorded log: which entries the replayed session emits itself, and which are
 * played back, and which ids it generated.
 */
import type { DraftEntry, Entry } from "../../kernel/host.ts";
import { CONTEXT_EVENTS, eventsWith } from "../../sdk/event_table.ts";
import { LOOP_SEED, seedOf } from "../../sdk/ids.ts";
import { isObject, type JsonObject } from "../../sdk/json.ts";
import { cancelledCallText } from "../../sdk/tools.ts";
import { type AgentSegment, isTakeover, type Segment } from "./segments.ts";

/**
 * Origin of an entry in a replay. `session`: emitted by the replayed orchestrator, context and kernel.
 * `agent`: starts a sub-agent's turn that is replayed too. `recording`: played back. `inner`: the response to
 * a provider call outside of the loop, a tool call that no model requested, or a question that is about no
 * tool call: by the loop or the context (which run), or by another module. `cancel`: a request from outside.
 */
export type Source = "session" | "agent" | "recording" | "inner" | "cancel";

/** Events that a replayed session emits itself. */
const REPLAYED_EVENTS = eventsWith("replayed");

/** Events that may follow directly after `cancel:requested` in a turn that stops. */
const AFTER_CANCEL = eventsWith("after_cancel");

/** Events that report the end of a provider call. */
export const CALL_ENDS = eventsWith("ends_call");

/** Events of which several can be in progress at once: an early one waits for its recorded place. */
export const PARALLEL_EVENTS = eventsWith("parallel");

/** Options of {@link RecordedEvents}. */
export interface RecordedEventsOptions {
  readonly entries: readonly Entry[];
  readonly segment: Segment;
  /** Ids of the orchestrator and the context. */
  readonly own_modules: readonly string[];
  /** Whether a hook mounted the context manager: its events are played back. */
  readonly foreign_context: boolean;
  /** Sub-agents of this session that are replayed. */
  readonly agents: readonly AgentSegment[];
  /** Ids of the tool calls that another run's turn left open and the loop starts with. */
  readonly open_calls: readonly string[];
}

/** One session's segment of a recorded log. */
export class RecordedEvents {
  readonly segment: Segment;
  readonly foreign_context: boolean;
  readonly #options: RecordedEventsOptions;
  readonly #loop_calls: Set<string>;
  /** Ids of calls outside of any call of the model: the loop made them, or another module. */
  readonly #other_calls = new Set<unknown>();
  /** The first complete block of a lost answer: the process ended before its `provider:response`. */
  readonly #lost: Entry | undefined;
  /** The first entry about a module of the segment: before it, recovery denies open questions. */
  readonly #mounted: Entry | undefined;

  constructor(options: RecordedEventsOptions) {
    const { segment, foreign_context, open_calls } = options;
    this.segment = segment;
    this.foreign_context = foreign_context;
    this.#options = options;
    this.#loop_calls = new Set(open_calls);
    const open = new Set<unknown>(); // calls of the model
    for (const { event, data } of this.#own(0)) {
      if (event === "tool:pre" && this.#loop_calls.has(String(data.tool_call_id))) {
        open.add(data.tool_call_id);
      } else if (event === "tool:pre" && open.size === 0) this.#other_calls.add(data.tool_call_id);
      else if (event === "tool:post" || event === "tool:error") open.delete(data.tool_call_id);
      else if (event === "provider:request") open.clear();
      if (event !== "provider:response" || data.inner === true) continue;
      const { tool_calls } = isObject(data.response) ? data.response : {};
      if (Array.isArray(tool_calls)) { for (const { id } of tool_calls) this.#loop_calls.add(String(id)); }
    }
    this.#mounted = this.find(segment.from, ({ event }) => event === "module:mounted");
    if (!segment.is_cut) return;
    const answered = this.findBefore((entry) =>
      CALL_ENDS.has(entry.event) && entry.data.inner !== true && this.#isOfSession(entry)
    );
    this.#lost = this.find(answered?.seq ?? 0, ({ event }) => event === "content_block:end");
  }

  get session_id(): string {
    return this.segment.session_id;
  }

  /** Whether the segment is the last one of the log. */
  get ends_log(): boolean {
    return this.segment.to === this.#options.entries.length;
  }

  contains({ session_id, seq }: Entry): boolean {
    return session_id === this.session_id && seq > this.segment.from && seq <= this.segment.to;
  }

  /** Yields the session's entries from index `from` to index `to`, also those before this segment. */
  *#own(from: number, to = this.segment.to): Generator<Entry> {
    for (let index = from; index < to; index++) {
      const entry = this.#options.entries[index]!; // a segment is part of the log
      if (entry.session_id === this.session_id) yield entry;
    }
  }

  sourceOf(entry: Entry): Source {
    const { event, data } = entry;
    if (this.#options.agents.some(({ opening }) => opening === entry)) return "agent";
    if (this.#options.agents.some(({ closing }) => closing === entry)) return "session";
    if (event === "cancel:requested") return "cancel";
    if (event.startsWith("approval:") && this.#mounted && entry.seq < this.#mounted.seq) return "recording";
    if (data.inner === true && CALL_ENDS.has(event)) return "inner";
    const { tool_call_id: id } = data;
    if (PARALLEL_EVENTS.has(event) && (id === null || this.#other_calls.has(id))) return "inner";
    if (this.#lost && event.startsWith("content_block:") && entry.seq >= this.#lost.seq) return "recording";
    return this.#isOfSession(entry) ? "session" : "recording";
  }

  /**
   * Returns whether the recording supplies an event that the replayed session emits too, so that it is not
   * compared: an event of the loop's or the context's own, which other modules may emit as well.
   */
  supplies(entry: DraftEntry): boolean {
    return !PARALLEL_EVENTS.has(entry.event) && !this.#isOfSession(entry);
  }

  #isOfSession({ event, data }: DraftEntry): boolean {
    switch (event) {
      case "tool:pre":
      case "tool:post":
      case "tool:error":
      case "approval:required":
      case "approval:granted":
      case "approval:denied":
        return this.#loop_calls.has(String(data.tool_call_id));
      case "provider:response":
        return true;
      case "provider:retry":
      case "llm:stream_aborted":
        return data.request_id !== undefined && data.module_id === undefined;
      case "module:on_session_ready_failed":
        return this.isOwnModule(data.module_id);
      default:
        return REPLAYED_EVENTS.has(event) && !(this.foreign_context && CONTEXT_EVENTS.has(event));
    }
  }

  /** Returns whether a key of `session_state` belongs to the orchestrator or the context. */
  isOwnKey(key: string): boolean {
    return this.#options.own_modules.some((id) => key === id || key.startsWith(`${id}:`));
  }

  /** Returns whether a module is the orchestrator or the context. */
  isOwnModule(id: unknown): boolean {
    return this.#options.own_modules.includes(String(id));
  }

  /** Yields the session's entries in this segment, from index `from` of the log to index `to`. */
  from(from: number, to?: number): Generator<Entry> {
    return this.#own(Math.max(from, this.segment.from), to);
  }

  /** Returns the session's first entry at or after index `from` for which `wanted` returns true. */
  find(from: number, wanted: (entry: Entry) => boolean): Entry | undefined {
    return this.from(from).find(wanted);
  }

  /** Returns the entry that the turn emits after its cancellation; null when the turn stops there. */
  continuedAfter({ seq, turn_id }: Entry): Entry | null {
    const following = this.find(seq, (entry) => this.sourceOf(entry) === "session");
    return turn_id !== undefined && following && !followsCancel(following) ? following : null;
  }

  /** Returns the session's last entry for which `wanted` returns true, in this or an earlier segment. */
  findBefore(wanted: (entry: Entry) => boolean): Entry | undefined {
    return [...this.#own(0)].findLast(wanted);
  }

  /** Returns every entry of the session for which `wanted` returns true. */
  all(wanted: (entry: Entry) => boolean): Entry[] {
    return this.from(0).filter(wanted).toArray();
  }
}

/**
 * Returns what distinguishes concurrent entries of the same event: the id of their call or sub-agent, or true
 * for an answer to a provider call outside of the loop.
 */
export function callOf(data: JsonObject): unknown {
  return data.sub_session_id ?? data.tool_call_id ?? data.approval_id ?? data.inner ?? null;
}

/**
 * Returns whether a turn that was cancelled emits this entry next: an end event, the end of a sub-agent that
 * was cancelled with it, or the result of a call that was.
 */
function followsCancel(entry: Entry): boolean {
  const { event, data } = entry;
  if (AFTER_CANCEL.has(event)) return true;
  return event === "task:agent_completed" ? data.status === "cancelled" : isCancelledResult(entry);
}

function isCancelledResult({ event, data: { message } }: Entry): boolean {
  return event === "context:message" && isObject(message) && message.role === "tool" &&
    message.content === cancelledCallText(String(message.name));
}

/** Gives the sessions of a replay the ids that they generated in the recorded run. */
export class RecordedIds {
  /** Ids that a session generated or that an earlier entry of its own names, after the session's id. */
  readonly #used = new Set<string>();
  #generated = 0;

  /** Marks the ids that an entry names as used. */
  markUsed(entry: Entry): void {
    for (const id of idsOf(entry)) this.#used.add(`${entry.session_id} ${id}`);
  }

  /** Returns the id that a session generated after `position` of the recorded run, for this tool call. */
  newId(prefix: string, recorded: RecordedEvents, position: number, call?: string | null): string {
    const { session_id } = recorded;
    const own = recorded.from(position).filter((entry) =>
      recorded.sourceOf(entry) !== "recording" && (call === undefined || entry.data.tool_call_id === call)
    );
    const id = own.flatMap(idsOf)
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

/** Events that a turn, or its sub-agents' turns, may still emit after an immediate cancellation. */
const ENDINGS = new Set<string>([
  ...["cancel:completed", "execution:end", "orchestrator:complete", "context:message", "session:state"],
  ...["session:end", "session:cleanup", "run:status"],
]);

/** An immediate cancellation of a session, before the entry with this index. */
export type SilentCancel = readonly [session_id: string, index: number];

/**
 * Returns the immediate cancellations whose `cancel:requested` is not at their place: a second request has
 * none, and that of the first one follows its handlers. One of the run's own session cancels its sub-agents.
 */
export function silentCancelsOf(entries: readonly Entry[]): SilentCancel[] {
  const root_id = entries[0]?.session_id;
  const found: SilentCancel[] = [];
  const requested = new Set<string>();
  const reported = new Set<unknown>();
  let from = 0;
  for (const entry of entries) {
    const { session_id, event, data, seq } = entry;
    if (isTakeover(entry)) from = seq; // the next process knows only what has an entry
    if (event === "cancel:requested" && data.state === "immediate") requested.add(session_id);
    if (event === "tool:post" || event === "tool:error") reported.add(data.tool_call_id);
    if (event === "provider:response") reported.clear(); // a model may give the calls of each answer the same ids
    const is_proof = event === "cancel:completed"
      ? data.was_immediate === true
      : isCancelledResult(entry) && !reported.has((data.message as JsonObject).tool_call_id);
    if (!is_proof) continue;
    const silent = found.filter(([, index]) => index > from).map(([id]) => id);
    if ([...requested, ...silent].some((id) => id === root_id || id === session_id)) continue;
    const last = entries.slice(0, seq - 1).findLastIndex(({ event, data, session_id: id }) =>
      (session_id === root_id || session_id === id) && !ENDINGS.has(event) &&
      !(event === "task:agent_completed" && data.status === "cancelled")
    );
    if (session_id === root_id) found.length -= silent.length;
    found.push([session_id, last + 1]);
  }
  return found.sort(([, a], [, b]) => a - b);
}
