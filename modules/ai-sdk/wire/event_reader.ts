/** What a reader of a vendor's wire format does, before the vendor's package reads the same. */
import { isObject, type JsonObject } from "preamp/base";

/**
 * Reads one answer. A package refuses an answer for one odd field in it; the reader leaves only what the
 * package takes, and adds what a server sent in another place. A stream owes the answer and nothing else:
 * what carries no part of it is left out.
 */
export interface EventReader {
  /** Whether the stream has stated the end of the answer: whatever follows cannot spoil it. */
  readonly ended: boolean;
  /** Returns the events for the package in the place of one of the server: none, one or several. */
  read(event: JsonObject): readonly JsonObject[];
  /** Returns the events that a stream lacks at its end. */
  last?(): readonly JsonObject[];
  /** Returns an answer that is not streamed. */
  whole(answer: JsonObject): JsonObject;
}

/** Returns the objects of a list; an empty list for any other value. */
export function objectsIn(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/** Returns a text that is not empty, else undefined. */
export function textOrNone(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** Returns the arguments of a call as text: some servers send them as a value. */
export function argumentsText(value: unknown): string {
  if (typeof value === "string") return value;
  return isObject(value) ? JSON.stringify(value) : "";
}

/** Returns an event or an answer that states an error. Some servers state `error: null`, or an empty one. */
export function statesError({ error, type, object }: JsonObject): boolean {
  return isObject(error) || typeof error === "string" && error !== "" || type === "error" ||
    object === "error";
}

const COUNT = /tokens?(?:_?count)?$/i;
const DETAILS = /details$/i;

/**
 * Returns a usage with numbers where it has counts: a count in a text is read, anything else and `null` are
 * left out. Undefined when no count of tokens is left: the usage is then estimated.
 *
 * @param required Counts that the package wants; 0 where they are missing.
 */
export function readCounts(usage: unknown, required: readonly string[] = []): JsonObject | undefined {
  if (!isObject(usage)) return undefined;
  const counts = countsIn(usage);
  if (!Object.keys(counts).some((key) => COUNT.test(key))) return undefined;
  for (const key of required) counts[key] ??= 0;
  return counts;
}

function countsIn(usage: JsonObject): JsonObject {
  const counts: JsonObject = {};
  for (const [key, value] of Object.entries(usage)) {
    const read = COUNT.test(key) ? countOf(value) : DETAILS.test(key) ? detailsIn(value) : value;
    if (read !== undefined && read !== null) counts[key] = read;
  }
  return counts;
}

/** Returns details, of which Gemini sends a list. */
function detailsIn(value: unknown): unknown {
  if (!Array.isArray(value)) return isObject(value) ? countsIn(value) : undefined;
  return objectsIn(value).map(countsIn).filter((one) => Object.keys(one).some((key) => COUNT.test(key)));
}

/** Returns a count of tokens, also of a text; undefined for any other value. */
export function countOf(value: unknown): number | undefined {
  const count = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
  return typeof count === "number" && Number.isSafeInteger(count) && count >= 0 ? count : undefined;
}
