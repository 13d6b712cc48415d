/** What a request is compared by: everything that the model receives, without metadata and limits. */
import { type ChatRequest, isObject, type JsonObject, type Message } from "preamp/base";

/** A request as it is recorded. */
export interface RequestShape {
  readonly messages: readonly JsonObject[];
  /** Tools and parameters. */
  readonly options: JsonObject;
}

/** Fields that do not change what is asked; the run's limits lower `max_output_tokens`. */
const IGNORED: ReadonlySet<string> = new Set([
  "messages",
  "max_output_tokens",
  "metadata",
  "conversation_id",
]);

/** Returns the shape of a request: plain data with sorted keys. */
export function shapeOf(request: ChatRequest): RequestShape {
  const options = Object.entries(request).filter(([key, value]) => !IGNORED.has(key) && value !== undefined);
  return {
    messages: request.messages.map((message) => sorted(withoutMetadata(message)) as JsonObject), // as below
    options: sorted(Object.fromEntries(options)) as JsonObject, // an object stays one
  };
}

function withoutMetadata({ metadata: _, ...message }: Message): JsonObject {
  return message;
}

/** Ids that the runtime creates for each run; results of tools may contain them. */
const IDS = /\b(ses|run|turn|grp|req|apr)_[0-9A-Za-z]{12,}/g;

/** Returns JSON data with the keys of all objects sorted and ids of the run left out, so that equal data have equal text. */
function sorted(value: unknown): unknown {
  if (typeof value === "string") return value.replace(IDS, "$1_…");
  if (Array.isArray(value)) return value.map(sorted);
  if (!isObject(value)) return value;
  const keys = Object.keys(value).filter((key) => value[key] !== undefined).sort();
  return Object.fromEntries(keys.map((key) => [key, sorted(value[key])]));
}

/** Maximum characters of a value in a message. */
const MAX_SHOWN = 120;

/** Returns where two requests differ first, as a sentence; null if they are equal. */
export function differenceOf(recorded: RequestShape, received: RequestShape): string | null {
  return firstDifference("messages", recorded.messages, received.messages) ??
    firstDifference("", recorded.options, received.options);
}

function firstDifference(path: string, recorded: unknown, received: unknown): string | null {
  if (JSON.stringify(recorded) === JSON.stringify(received)) return null;
  if (Array.isArray(recorded) && Array.isArray(received)) {
    const length = Math.max(recorded.length, received.length);
    for (let index = 0; index < length; index++) {
      const found = firstDifference(`${path}[${index}]`, recorded[index], received[index]);
      if (found !== null) return found;
    }
  }
  if (isObject(recorded) && isObject(received)) {
    for (const key of new Set([...Object.keys(recorded), ...Object.keys(received)])) {
      const found = firstDifference(path === "" ? key : `${path}.${key}`, recorded[key], received[key]);
      if (found !== null) return found;
    }
  }
  return `${path}: recorded ${shown(recorded, received)}, received ${shown(received, recorded)}`;
}

/** Returns a value as text; of long text the part around the first character that differs. */
function shown(value: unknown, other: unknown): string {
  if (value === undefined) return "nothing";
  if (typeof value !== "string" || typeof other !== "string") return cut(JSON.stringify(value), 0);
  let at = 0;
  while (at < value.length && value[at] === other[at]) at++;
  return JSON.stringify(cut(value, Math.max(0, at - MAX_SHOWN / 4)));
}

function cut(text: string, from: number): string {
  const part = text.slice(from, from + MAX_SHOWN);
  return `${from > 0 ? "…" : ""}${part}${from + MAX_SHOWN < text.length ? "…" : ""}`;
}
