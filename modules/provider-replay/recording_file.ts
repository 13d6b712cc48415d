/** The file of recorded calls: its format, reading, writing, and finding the answer to a request. */
import { isObject, type JsonObject, PreampError, type ProviderInfo, type StreamDelta } from "preamp/base";
import type { Attempt } from "./recording.ts";
import { differenceOf, type RequestShape } from "./request_shape.ts";

/** One recorded call. */
export interface RecordedCall extends Attempt {
  readonly request: RequestShape;
}

/** A recording. Calls are found by their request, because sessions of one run may call at the same time. */
export class Recording {
  /** Facts of the recorded provider; null before the first call. */
  info: ProviderInfo | null = null;
  readonly calls: RecordedCall[] = [];
  readonly #by_request = new Map<string, number[]>();

  /** Adds a call. */
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
    const calls = this.calls.map(({ request, deltas, outcome }) => ({
      messages: request.messages.map((message) => messages.add(message)),
      options: options.add(request.options),
      deltas,
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
    calls: {
      messages: number[];
      options: number;
      deltas: StreamDelta[];
      response?: JsonObject;
      failure?: JsonObject;
    }[];
  };
  const at = (values: JsonObject[], index: number): JsonObject => {
    const value = values[index];
    if (!isObject(value)) throw new TypeError(`no value ${index}`);
    return value;
  };
  const recording = new Recording();
  recording.info = isObject(file.info) ? file.info as unknown as ProviderInfo : null; // written by toText
  for (const { messages: places, options: place, deltas, response, failure } of calls) {
    const request = { messages: places.map((index) => at(messages, index)), options: at(options, place) };
    if (!Array.isArray(deltas) || (!isObject(response) && !isObject(failure))) {
      throw new TypeError("no answer");
    }
    recording.add({ request, deltas, outcome: response ? { response } : { failure: failure ?? {} } });
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
