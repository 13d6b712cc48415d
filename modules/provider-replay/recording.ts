/**
 * Recorded model calls: those of an event log (src/docs/events.md), and the file of recorded calls with its
 * format, reading, writing, and finding the answer to a request.
 */
import { type ChatRequest, isObject, type JsonObject, PreampError, type ProviderInfo } from "preamp/base";

/** The name of the provider. */
export const NAME = "replay";

/** The config: `record` is a file, or `events` or `recording` has a log. */
export interface ReplayConfig {
  readonly record?: string;
  readonly events?: readonly JsonObject[];
  readonly recording?: { readonly events: unknown };
  /** Provider that is recorded, or whose answers are replayed; default: all. */
  readonly provider?: string;
}

/** How a model call ended. */
export type Outcome = { readonly response: JsonObject } | { readonly failure: JsonObject };

/**
 * Returns how the model calls in a config's log ended, in order: those of its first session.
 *
 * @throws {PreampError} `module_invalid` when the config has no answer.
 */
export function readOutcomes({ events, recording, provider }: ReplayConfig): Outcome[] {
  const entries: unknown = events ?? recording?.events;
  const outcomes = (Array.isArray(entries) ? entries : []).filter(isObject)
    .filter(({ session_id }, _, [first]) => session_id === first!.session_id)
    .flatMap(({ event, data }) =>
      isObject(data) && (provider === undefined || data.provider === provider) ? outcomesOf(event, data) : []
    );
  if (outcomes.length > 0) return outcomes;
  throw new PreampError(
    "module_invalid",
    "Cannot mount provider-replay: its config must have record (a file), or events (the entries of a log) or " +
      "recording (a saved run) with a model answer",
  );
}

function outcomesOf(event: unknown, data: JsonObject): Outcome[] {
  if (event === "provider:response") {
    return isObject(data.response) ? [{ response: { ...data.response, usage: data.usage } }] : [];
  }
  if (event === "provider:error") {
    const { type, msg } = isObject(data.error) ? data.error : {};
    return [{ failure: { ...data, type, message: msg } }];
  }
  // retries inside of a provider have no request_id; only the final answer counts
  if (event !== "provider:retry" || data.request_id === undefined) return [];
  return [{ failure: { ...data, type: data.error_type, message: data.error_message, retryable: true } }];
}

/** What a request is compared by: everything that the model receives, without metadata and limits. */
interface RequestShape {
  readonly messages: readonly JsonObject[];
  /** Tools and parameters. */
  readonly options: JsonObject;
}
interface RecordedCall {
  readonly request: RequestShape;
  readonly outcome: Outcome;
}

/** A recording. Calls are found by their request, because sessions of one run may call at the same time. */
export class Recording {
  /** Facts of the recorded provider; null before the first call. */
  info: ProviderInfo | null = null;
  readonly calls: RecordedCall[] = [];
  readonly #by_request = new Map<string, number[]>();

  add(call: RecordedCall): void {
    const key = keyOf(call.request);
    const places = this.#by_request.get(key) ?? [];
    this.#by_request.set(key, [...places, this.calls.length]);
    this.calls.push(call);
  }

  /**
   * Returns the index of the first call with this request that is not among `used`; null if no call has it.
   * When all are used, the last one answers again.
   */
  find(request: RequestShape, used: ReadonlySet<number>): number | null {
    const places = this.#by_request.get(keyOf(request)) ?? [];
    return places.find((place) => !used.has(place)) ?? places.at(-1) ?? null;
  }

  /** Returns how a request differs from the recorded one that is most like it. */
  explain(request: RequestShape, used: ReadonlySet<number>): string {
    const unused = this.calls.flatMap((call, index) => used.has(index) ? [] : [{ call, index }]);
    const alike = ({ call }: { call: RecordedCall }) => sharedMessages(call.request, request);
    const [nearest] = unused.toSorted((a, b) => alike(b) - alike(a) || a.index - b.index);
    if (!nearest) return `it has ${this.calls.length} calls, and all were played`;
    const difference = differenceOf(nearest.call.request, request);
    return `the request differs from call ${nearest.index + 1} at ${difference ?? "nothing"}`;
  }

  /** Returns the text of the file: each message and each set of options is in it once. */
  toText(): string {
    const messages = new Pool();
    const options = new Pool();
    const calls = this.calls.map(({ request, outcome }) => ({
      messages: request.messages.map((message) => messages.add(message)),
      options: options.add(request.options),
      ...outcome,
    }));
    const file = { version: 1, info: this.info, messages: messages.values, options: options.values, calls };
    return `${JSON.stringify(file, null, 1)}\n`;
  }

  /** Returns the recording in a text. @throws {PreampError} `module_invalid` for any other text. */
  static fromText(text: string, name: string): Recording {
    try {
      return readFile(JSON.parse(text));
    } catch (error) {
      const message =
        `Cannot read the recording ${JSON.stringify(name)}: it is not one of provider-replay: ` +
        "delete the file to record again";
      throw new PreampError("module_invalid", message, { cause: error });
    }
  }
}

function readFile(file: JsonObject): Recording {
  if (file.version !== 1) throw new TypeError("another version");
  const { messages, options, calls } = file as unknown as { // a wrong type throws below
    messages: JsonObject[];
    options: JsonObject[];
    calls: { messages: number[]; options: number; response?: JsonObject; failure?: JsonObject }[];
  };
  const at = (values: JsonObject[], index: number): JsonObject => {
    const value = values[index];
    if (!isObject(value)) throw new TypeError(`no value ${index}`);
    return value;
  };
  const recording = new Recording();
  recording.info = isObject(file.info) ? file.info as unknown as ProviderInfo : null; // written by toText
  for (const { messages: places, options: place, response, failure } of calls) {
    const request = { messages: places.map((index) => at(messages, index)), options: at(options, place) };
    if (!isObject(response) && !isObject(failure)) throw new TypeError("no answer");
    recording.add({ request, outcome: response ? { response } : { failure: failure! } });
  }
  return recording;
}

/** Distinct values in the order of their first use. */
class Pool {
  readonly values: unknown[] = [];
  readonly #places = new Map<string, number>();

  add(value: unknown): number {
    const key = JSON.stringify(value);
    const known = this.#places.get(key);
    if (known !== undefined) return known;
    this.#places.set(key, this.values.length);
    return this.values.push(value) - 1;
  }
}

function keyOf({ messages, options }: RequestShape): string {
  return JSON.stringify([messages, options]);
}

function sharedMessages(a: RequestShape, b: RequestShape): number {
  const differs = a.messages.findIndex((message, index) =>
    JSON.stringify(message) !== JSON.stringify(b.messages[index])
  );
  return differs < 0 ? a.messages.length : differs;
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
    messages: request.messages.map(({ metadata: _, ...message }) => sorted(message) as JsonObject), // as below
    options: sorted(Object.fromEntries(options)) as JsonObject, // an object stays one
  };
}

/** Ids that the runtime creates for each run; results of tools may contain them. */
const IDS = /\b(ses|run|turn|grp|req|apr)_[0-9A-Za-z]{12,}/g;

/**
 * Returns JSON data with the keys of all objects sorted and ids of the run left out, so that equal data have
 * equal text.
 */
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
function differenceOf(recorded: RequestShape, received: RequestShape): string | null {
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
