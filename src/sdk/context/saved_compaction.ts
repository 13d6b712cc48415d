/**
 * The saved form of all compaction decisions in `session_state`. With the same history they give the same
 * view, byte for byte; with another history they are ignored.
 */
import { isObject, type JsonObject, type Message } from "../base.ts";
import type { SavedCalibration } from "./token_counter.ts";
import type { MessageVariants } from "./shorten.ts";
import {
  type CompactionDecisions,
  entriesOf,
  type Entry,
  type Form,
  type MessageGroup,
  type Transcript,
} from "./transcript.ts";

/** Saved decisions. Messages are identified by their index in the history. */
export interface Saved {
  readonly version: 1;
  /** Number of messages when the decisions were made; {@link fingerprint} is computed of these. */
  readonly messages: number;
  readonly fingerprint: number;
  /** Ranges of left-out messages, as first and last index. */
  readonly removed: readonly (readonly [number, number])[];
  /** Shortened messages: index and number of kept characters. */
  readonly shortened: readonly (readonly [number, number])[];
  /** Level of the last compaction. */
  readonly level: number;
  readonly compactions: number;
  /** Calibration at that time; null before the first report, and when calibration is off. */
  readonly calibration: SavedCalibration | null;
  /** The message that replaces what was left out; absent without one. */
  readonly lead?: Message;
  /** Maximum input tokens of models that refused a request; absent without one. See `LearnedLimits`. */
  readonly limits?: readonly (readonly [string, number])[];
}

/** Returns the fingerprint of a history. Not a digest: it detects mistakes, not attacks. */
export function fingerprint(history: readonly Message[]): number {
  let hash = 0;
  for (const { role, content, tool_calls, tool_call_id } of history) {
    hash = withText(hash, String(role)); // fields may be missing or of another type
    hash = withNumber(hash, lengthOf(content));
    hash = withNumber(hash, lengthOf(tool_calls));
    if (typeof tool_call_id === "string") hash = withText(hash, tool_call_id);
    hash = withText(hash, typeof content === "string" ? content : "") >>> 0;
  }
  return hash;
}

/** Characters of a text that enter a fingerprint. */
const FINGERPRINT_CHARS = 64;

function lengthOf(value: unknown): number {
  return typeof value === "string" || Array.isArray(value) ? value.length : 0;
}

function withText(before: number, text: string): number {
  const length = Math.min(text.length, FINGERPRINT_CHARS);
  let hash = before;
  for (let index = 0; index < length; index++) hash = withNumber(hash, text.charCodeAt(index));
  return hash;
}

/** Adds a number to an FNV-1a hash. */
function withNumber(before: number, value: number): number {
  return Math.imul(before ^ value, 0x01000193);
}

/** Returns ranges with further indexes added, in order, adjacent ranges joined. O(n log n). */
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

/** Returns the shortened messages in the form of {@link Saved}. */
export function shortenedOf(transcript: Transcript): [number, number][] {
  return transcript.units.flatMap(entriesOf)
    .filter((entry) => entry.kept_chars !== null && entry.index >= 0)
    .map((entry) => [entry.index, entry.kept_chars ?? 0]);
}

/** Returns the saved decisions under a key of `session_state`, or null when they are missing or invalid. */
export function readSaved(state: JsonObject, key: string): Saved | null {
  const value = state[key];
  if (!isObject(value) || value.version !== 1) return null;
  const numbers = [value.messages, value.fingerprint, value.level, value.compactions];
  if (!numbers.every((number) => Number.isSafeInteger(number))) return null;
  const { calibration } = value;
  if (calibration !== null && !(isNumbers(calibration) && calibration.length === 4)) return null;
  if (value.lead !== undefined && !isObject(value.lead)) return null;
  return isPairs(value.removed) && isPairs(value.shortened) ? value as unknown as Saved : null; // every field was checked above
}

function isNumbers(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((number) => Number.isFinite(number));
}

function isPairs(value: unknown): boolean {
  return Array.isArray(value) &&
    value.every((pair) =>
      Array.isArray(pair) && pair.length === 2 && pair.every((number) => Number.isSafeInteger(number))
    );
}

/** Returns the saved decisions for a transcript of the same history. */
export function decisionsOf(saved: Saved, transcript: Transcript): CompactionDecisions {
  const removed = new Set<MessageGroup>();
  const changed = new Map<Entry, Form>();
  const kept = new Map(saved.shortened);
  let stretch = 0;
  for (const unit of transcript.units) {
    while ((saved.removed[stretch]?.[1] ?? Infinity) < unit.head.index) stretch++;
    if ((saved.removed[stretch]?.[0] ?? Infinity) <= unit.head.index) removed.add(unit);
    else {
      for (const entry of entriesOf(unit)) {
        const form = formOf(entry, kept.get(entry.index), transcript.forms);
        if (form) changed.set(entry, form);
      }
    }
  }
  return { removed, changed };
}

function formOf(entry: Entry, kept_chars: number | undefined, forms: MessageVariants): Form | null {
  if (kept_chars === undefined) return null;
  const visible = entry.message.role === "user" ? forms.stubbed(entry) : forms.truncated(entry, kept_chars);
  return visible && { visible, tokens: forms.count(visible), kept_chars };
}
