/** The requests of one call on their way to the server, and its answers on their way back. */
import { isObject, type JsonObject, LLMError } from "preamp/base";
import { type CallIo, readEvents } from "preamp/provider";
import { parsed } from "../names.ts";
import type { Vendor } from "../vendor.ts";
import { type EventReader, objectsIn } from "./event_reader.ts";

const JSON_TYPE = { headers: { "content-type": "application/json" } };
const STREAM_TYPE = { headers: { "content-type": "text/event-stream" } };

/** `fetch` of a vendor's package. */
export class Wire {
  readonly #io: CallIo;
  readonly #vendor: Pick<Vendor, "reader">;
  readonly #change: ((body: JsonObject) => void) | undefined;
  #whole: string | undefined;
  #sent = "";

  /** @param change Changes the body of a request in place; absent: it is sent as it is. */
  constructor(io: CallIo, vendor: Pick<Vendor, "reader">, change?: (body: JsonObject) => void) {
    this.#io = io;
    this.#vendor = vendor;
    this.#change = change;
  }

  /** Body of the last request. */
  get body(): JsonObject {
    const body = parsed(this.#sent);
    return isObject(body) ? body : {};
  }

  /** Whether the server answered a streamed request with JSON: the answer is then read as a whole one. */
  get answered_whole(): boolean {
    return this.#whole !== undefined;
  }

  readonly fetch: typeof fetch = async (input, init) => {
    if (this.#whole !== undefined) {
      const body = this.#whole;
      this.#whole = undefined;
      return new Response(body, JSON_TYPE);
    }
    const given = init?.body;
    const body = typeof given === "string" ? this.#sent = this.#changed(given) : given;
    const response = await this.#io.fetch(input, { ...init, body: body ?? null });
    if (!response.ok || response.body === null) return response;
    const is_json = /\bjson\b/.test(response.headers.get("content-type") ?? "");
    if (!is_json && !this.#io.onDelta) {
      const message = "Cannot read the answer: it is not JSON; check base_url";
      throw new LLMError("InvalidRequestError", message);
    }
    const reader = this.#vendor.reader();
    if (!is_json) {
      return new Response(ReadableStream.from(eventsFor(reader, response.body)), STREAM_TYPE);
    }
    const text = await response.text();
    const answer = parsed(text);
    if (this.#io.onDelta && Array.isArray(answer)) { // Gemini's stream without `alt=sse`, as some proxies send it
      return new Response(
        objectsIn(answer).flatMap((event) => reader.read(event)).map(dataOf).join(""),
        STREAM_TYPE,
      );
    }
    const whole = isObject(answer) ? JSON.stringify(reader.whole(answer)) : text;
    if (!this.#io.onDelta) return new Response(whole, JSON_TYPE);
    this.#whole = whole;
    return new Response("", STREAM_TYPE);
  };

  /** Yields the parts of a stream; none when the server answered with JSON. */
  async *partsOf<T>(stream: ReadableStream<T>): AsyncGenerator<T> {
    if (this.answered_whole) return await stream.cancel();
    yield* stream;
  }

  #changed(text: string): string {
    const body = this.#change && parsed(text);
    if (!isObject(body)) return text;
    this.#change?.(body);
    return JSON.stringify(body);
  }
}

/**
 * Yields the events of a stream for the package. A broken event passes, for the package to refuse it; after
 * the end of the answer, neither that nor a broken connection matters.
 */
async function* eventsFor(
  reader: EventReader,
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
): AsyncGenerator<Uint8Array<ArrayBuffer>, void, void> {
  const encoder = new TextEncoder();
  const encoded = (event: unknown) => encoder.encode(dataOf(event));
  try {
    for await (const { name, text } of readEvents(body)) {
      const event = parsed(text);
      if (isObject(event)) yield* reader.read(named(event, name)).map(encoded);
      else if (!reader.ended) yield encoder.encode(`data: ${text.replaceAll("\n", " ")}\n\n`);
    }
  } catch (error) {
    if (!reader.ended) throw error;
  }
  yield* (reader.last?.() ?? []).map(encoded);
}

/** Returns an event whose type is in its data: some servers state it in the field `event` only. */
function named(event: JsonObject, name: string): JsonObject {
  if (name === "" || event.type !== undefined) return event;
  return name === "error" && event.error === undefined
    ? { type: name, error: event }
    : { ...event, type: name };
}

function dataOf(event: unknown): string {
  return `data: ${JSON.stringify(event)}\n\n`;
}
