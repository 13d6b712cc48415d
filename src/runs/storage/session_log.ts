/**
 * The log of a session, which has the session's id as its name: each entry is what a run, or a turn of a
 * sub-agent, has changed in the session's state. The state at a position is computed from the entries up to
 * it, so that nothing stores a history a second time.
 */
import type { LoggedUsage } from "../../kernel/session_parts.ts";
import type { JsonObject } from "../../sdk/json.ts";
import type { Message } from "../../sdk/types.ts";
import type { LogEntry, Store } from "../../store/store.ts";
import { MOST_USAGES } from "../run/run_projection.ts";
import type { RememberedApproval, SavedState } from "../types.ts";

/** An entry of a session's log. */
interface SessionEntry extends LogEntry {
  /** Messages at the beginning of the history that stay. */
  readonly kept: number;
  /** Messages that follow them. */
  readonly messages: readonly Message[];
  /** Whether the usages before no longer count: the history was compacted. */
  readonly compacted?: true;
  readonly usages?: readonly LoggedUsage[];
  /** Keys of the module state that have changed. */
  readonly session_state?: JsonObject;
  /** Keys of the module state that were deleted. */
  readonly deleted?: readonly string[];
  /** All remembered approvals, if they have changed. */
  readonly remembered?: readonly RememberedApproval[];
}

/** The state of a new session. */
export const EMPTY_STATE: SavedState = { history: [], session_state: {}, usages: [] };

/** Returns the entry that makes one state of a session the next one; null if they are the same. */
export function entryBetween(before: SavedState, after: SavedState, seq: number): SessionEntry | null {
  const added = sinceLast(before.usages, after.usages);
  const [old_state, state] = [before.session_state, after.session_state];
  const changed = Object.entries(state).filter(([key, value]) => !isSame(old_state[key], value));
  const deleted = Object.keys(old_state).filter((key) => !(key in state));
  const remembered = after.remembered ?? [];
  const kept = sameBeginning(before.history, after.history);
  const messages = after.history.slice(kept);
  const changes = {
    ...(added === null ? { compacted: true as const } : {}),
    ...((added ?? after.usages).length > 0 ? { usages: added ?? after.usages } : {}),
    ...(changed.length > 0 ? { session_state: Object.fromEntries(changed) } : {}),
    ...(deleted.length > 0 ? { deleted } : {}),
    ...(isSame(remembered, before.remembered ?? []) ? {} : { remembered }),
  };
  const has_messages = messages.length > 0 || kept < before.history.length;
  return has_messages || Object.keys(changes).length > 0 ? { seq, kept, messages, ...changes } : null;
}

/** Returns an entry that changes nothing. */
export function emptyEntry(seq: number): SessionEntry {
  return { seq, kept: 0, messages: [] };
}

/** Returns a session's state after more entries of its log. */
export function stateAfterEntries(before: SavedState, entries: readonly LogEntry[]): SavedState {
  const history = [...before.history];
  const state: JsonObject = { ...before.session_state };
  let usages = [...before.usages];
  let { remembered } = before;
  for (const entry of entries as readonly SessionEntry[]) { // written by `entryBetween`
    history.splice(entry.kept, Infinity, ...entry.messages);
    if (entry.compacted) usages = [];
    usages.push(...entry.usages ?? []);
    for (const key of entry.deleted ?? []) delete state[key];
    Object.assign(state, entry.session_state);
    remembered = entry.remembered ?? remembered;
  }
  usages = usages.slice(-MOST_USAGES);
  return { history, session_state: state, usages, ...(remembered ? { remembered } : {}) };
}

/**
 * Resolves to the state of a session at a position of its log, computed from the state at an earlier one; to
 * null if the log is no longer stored up to there.
 */
export async function stateAt(
  store: Store,
  session_id: string,
  position: number,
  from: { state: SavedState; position: number } = { state: EMPTY_STATE, position: 0 },
): Promise<SavedState | null> {
  const missing = position - from.position;
  if (missing === 0) return from.state;
  const entries = await store.entries(session_id, from.position, missing);
  return entries?.length === missing ? stateAfterEntries(from.state, entries) : null;
}

/** Returns how many messages at the beginning are the same. */
function sameBeginning(before: readonly Message[], after: readonly Message[]): number {
  const end = Math.min(before.length, after.length);
  let index = 0;
  while (index < end && isSame(before[index], after[index])) index++;
  return index;
}

/** Returns the usages after the last one of before; null if that one was dropped. */
function sinceLast(before: readonly LoggedUsage[], after: readonly LoggedUsage[]): LoggedUsage[] | null {
  const last = before.at(-1);
  if (last === undefined) return [...after];
  const index = after.lastIndexOf(last);
  return index < 0 ? null : after.slice(index + 1);
}

/** Returns whether two values are the same JSON. */
function isSame(one: unknown, other: unknown): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}
