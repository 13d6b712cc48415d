/**
 * What survives a restart: the decisions of all compactions so far, in the form they are kept in `session_state`. With the
 * same history they give back the same view, byte for byte; with another history they are void.
 */
import { isObject, type JsonObject, type Message, messageTokens } from "preamp";
import { stubbed, truncated } from "./shorten.ts";
import {
  type Decisions,
  entriesOf,
  type Entry,
  type Form,
  type Transcript,
  type Unit,
} from "./transcript.ts";

/** Key in `session_state`. */
export const STATE_KEY = "context-simple";

/** What is kept. Numbers name messages by their place in the history. */
export interface Saved {
  readonly version: 1;
  /** Messages of the history when the decisions were made, and {@link fingerprint} of them. */
  readonly messages: number;
  readonly fingerprint: number;
  /** Messages left out, as first and last place of each stretch. */
  readonly removed: readonly (readonly [number, number])[];
  /** Shortened messages: place, and how many characters were kept. */
  readonly shortened: readonly (readonly [number, number])[];
  /** Level of the last compaction. */
  readonly level: number;
  readonly compactions: number;
}

/** Returns the fingerprint of a history with one more message; begins with 0. Not a digest: it finds mistakes, not malice. */
export function fingerprint(before: number, message: Message): number {
  let hash = Math.imul(before ^ messageTokens(message), 0x01000193);
  const start = `${message.role} ${typeof message.content === "string" ? message.content.slice(0, 64) : ""}`;
  for (let index = 0; index < start.length; index++) {
    hash = Math.imul(hash ^ start.charCodeAt(index), 0x01000193); // FNV-1a
  }
  return hash >>> 0;
}

/** Returns stretches of places with more places in them, in order, neighbours joined. O(n log n) in their number, which nobody notices. */
export function withPlaces(
  stretches: readonly (readonly [number, number])[],
  places: readonly number[],
): [number, number][] {
  const all = [...stretches, ...places.map((place) => [place, place] as const)].sort((a, b) => a[0] - b[0]);
  const joined: [number, number][] = [];
  for (const [first, last] of all) {
    const before = joined.at(-1);
    if (before && before[1] >= first - 1) before[1] = Math.max(before[1], last);
    else joined.push([first, last]);
  }
  return joined;
}

/** Returns the places of shortened messages, as {@link Saved} wants them. */
export function shortenedOf(transcript: Transcript): [number, number][] {
  return transcript.units.flatMap(entriesOf)
    .filter((entry) => entry.kept_chars !== null && entry.index >= 0)
    .map((entry) => [entry.index, entry.kept_chars ?? 0]);
}

/** Returns what was kept, or null when there is nothing or it cannot be read. */
export function readSaved(state: JsonObject): Saved | null {
  const value = state[STATE_KEY];
  if (!isObject(value) || value.version !== 1) return null;
  const numbers = [value.messages, value.fingerprint, value.level, value.compactions];
  if (!numbers.every((number) => Number.isSafeInteger(number))) return null;
  return isPairs(value.removed) && isPairs(value.shortened) ? value as unknown as Saved : null; // every field was checked
}

function isPairs(value: unknown): boolean {
  return Array.isArray(value) &&
    value.every((pair) =>
      Array.isArray(pair) && pair.length === 2 && pair.every((number) => Number.isSafeInteger(number))
    );
}

/** Returns the kept decisions for a transcript that was filled from the same history. */
export function decisionsOf(saved: Saved, transcript: Transcript): Decisions {
  const removed = new Set<Unit>();
  const changed = new Map<Entry, Form>();
  const kept = new Map(saved.shortened);
  let stretch = 0;
  for (const unit of transcript.units) {
    while ((saved.removed[stretch]?.[1] ?? Infinity) < unit.head.index) stretch++;
    if ((saved.removed[stretch]?.[0] ?? Infinity) <= unit.head.index) removed.add(unit);
    else for (const entry of entriesOf(unit)) remember(entry, kept.get(entry.index), changed);
  }
  return { removed, changed };
}

function remember(entry: Entry, kept_chars: number | undefined, changed: Map<Entry, Form>): void {
  if (kept_chars === undefined) return;
  const shown = entry.message.role === "user" ? stubbed(entry.message) : truncated(entry.message, kept_chars);
  if (shown) changed.set(entry, { shown, tokens: messageTokens(shown), kept_chars });
}
