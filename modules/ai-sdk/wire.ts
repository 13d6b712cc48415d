/** The requests of one call on their way to the server, and its answers on their way back. */
import { isObject, type JsonObject, LLMError } from "preamp/base";
import type { CallIo } from "preamp/provider";
import { parsed } from "./names.ts";
import type { Vendor } from "./vendor.ts";

const JSON_TYPE = { headers: { "content-type": "application/json" } };

/** `fetch` of a vendor's package. */
export class Wire {
  readonly #io: CallIo;
  readonly #repair: Vendor["repair"];
  readonly #change: ((body: JsonObject) => void) | undefined;
  #whole: string | undefined;
  #sent = "";

  /** @param change Changes the body of a request in place; absent: it is sent as it is. */
  constructor(io: CallIo, { repair }: Pick<Vendor, "repair">, change?: (body: JsonObject) => void) {
    this.#io = io;
    this.#repair = repair;
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
    const is_json = /\bjson\b/.test(response.headers.get("content-type") ?? "");
    if (response.ok && !is_json && !this.#io.onDelta) {
      const message = "Cannot read the answer: it is not JSON; check base_url";
      throw new LLMError("InvalidRequestError", message);
    }
    if (!response.ok || !is_json && !this.#repair) return response;
    if (!is_json) {
      return new Response(response.body?.pipeThrough(repaired(this.#repair!())) ?? null, response);
    }
    if (!this.#io.onDelta && !this.#repair) return response;
    const text = await response.text();
    const chunks = parsed(text);
    if (isObject(chunks)) this.#repair?.()(chunks);
    const whole = isObject(chunks) && this.#repair ? JSON.stringify(chunks) : text;
    if (!this.#io.onDelta) return new Response(whole, JSON_TYPE);
    if (Array.isArray(chunks)) { // Gemini's stream without `alt=sse`, as some proxies send it
      const events = chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("");
      return new Response(events, { headers: { "content-type": "text/event-stream" } });
    }
    this.#whole = whole;
    return new Response("", { headers: { "content-type": "text/event-stream" } });
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

/** Returns a stream of events with each one repaired; what is not JSON passes. */
function repaired(repair: (event: JsonObject) => void): TransformStream<Uint8Array, Uint8Array> {
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  let rest = "";
  const lineOf = (line: string) => {
    const event = line.startsWith("data:") ? parsed(line.slice(5)) : undefined;
    if (!isObject(event)) return line;
    repair(event);
    return `data: ${JSON.stringify(event)}`;
  };
  return new TransformStream({
    transform(chunk, controller) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
      rest = lines.pop()!; // there is one
      for (const line of lines) controller.enqueue(encoder.encode(`${lineOf(line)}\n`));
    },
    flush: (controller) => controller.enqueue(encoder.encode(lineOf(rest))),
  });
}
