/** Lines of a stream, and server-sent events in them (WHATWG HTML §9.2.6). */

const NEWLINE = 10;

/**
 * Yields the lines of a stream without their ends. Each byte is read once, however the stream is cut.
 *
 * @param max_bytes Most bytes of one line.
 * @throws {Error} for a longer line, and what the stream fails with.
 */
export async function* linesOf(stream: AsyncIterable<Uint8Array>, max_bytes: number): AsyncGenerator<string> {
  let parts: Uint8Array[] = [];
  let bytes = 0;
  const text = () => {
    const decoder = new TextDecoder();
    const line = parts.map((part) => decoder.decode(part, { stream: true })).join("") + decoder.decode();
    parts = [];
    bytes = 0;
    return line.endsWith("\r") ? line.slice(0, -1) : line;
  };
  const add = (part: Uint8Array) => {
    parts.push(part);
    bytes += part.length;
    if (bytes > max_bytes) throw new Error(`A message has more than ${max_bytes} bytes`);
  };
  for await (let chunk of stream) {
    for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE)) {
      add(chunk.subarray(0, at));
      yield text();
      chunk = chunk.subarray(at + 1);
    }
    add(chunk);
  }
  if (bytes > 0) yield text();
}

/** A server-sent event, or an id or a time that came without data. */
export interface ServerEvent {
  readonly event: string;
  /** Empty for an event without data. */
  readonly data: string;
  readonly id?: string;
  /** Time after which a reader that lost the stream asks again. */
  readonly retry_ms?: number;
}

/** Yields the events of a stream. @throws {Error} for an event of more than `max_bytes`. */
export async function* eventsOf(
  stream: AsyncIterable<Uint8Array>,
  max_bytes: number,
): AsyncGenerator<ServerEvent> {
  let fields: { event?: string; id?: string; retry_ms?: number } = {};
  let data: string[] = [];
  let chars = 0;
  for await (const line of linesOf(stream, max_bytes)) {
    if (line === "") {
      const text = data.join("\n");
      if (text !== "" || fields.id !== undefined || fields.retry_ms !== undefined) {
        yield { event: "message", ...fields, data: text };
      }
      fields = {};
      data = [];
      chars = 0;
      continue;
    }
    const [, name, value = ""] = /^\uFEFF?([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
    if (name === "event") fields.event = value;
    else if (name === "id" && !value.includes("\0")) fields.id = value;
    else if (name === "retry" && /^\d{1,9}$/.test(value)) fields.retry_ms = Number(value);
    else if (name === "data") {
      chars += value.length;
      if (chars > max_bytes) throw new Error(`A message has more than ${max_bytes} bytes`);
      data.push(value);
    }
  }
  // the server may have forgotten the empty line after its last event
  const text = data.join("\n");
  if (text !== "") yield { event: "message", ...fields, data: text };
}
