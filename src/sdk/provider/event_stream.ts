/** Splits the body of a streamed answer into its events: of server-sent events, or of lines of JSON. */

/** An event of a stream. */
export interface StreamedEvent {
  /** Value of its field `event`; "" without one. */
  readonly name: string;
  /** The text of a JSON object, which may be broken. */
  readonly text: string;
}

/**
 * Yields the events that may carry a part of an answer: those whose data begins an object. Comments, other
 * fields and any other data, as gateways send them to keep a connection open, are left out; so is an event
 * that the end of the body cuts. Ends with the body, or at `[DONE]`.
 */
export async function* readEvents(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
): AsyncGenerator<StreamedEvent, void, void> {
  let name = "";
  let data: string[] = [];
  for await (const line of linesOf(body)) {
    if (line.trimStart().startsWith("{")) { // no field of server-sent events begins with it
      yield { name: "", text: line };
      continue;
    }
    if (line === "") {
      const text = data.join("\n").trim();
      if (text === "[DONE]") return;
      if (text.startsWith("{")) yield { name, text };
      name = "";
      data = [];
      continue;
    }
    const [, field, value = ""] = /^(data|event)(?:: ?([^]*))?$/.exec(line) ?? [];
    if (field === "data") data.push(value);
    if (field === "event") name = value.trim();
  }
  const text = data.join("\n").trim();
  if (text.startsWith("{") && isWhole(text)) yield { name, text };
}

/**
 * Yields the lines of a body, without a byte order mark; the last one without a line end only if it is whole.
 */
async function* linesOf(body: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<string, void, void> {
  let rest = "";
  const decoder = new TextDecoder();
  for await (const chunk of body) {
    const decoded = decoder.decode(chunk, { stream: true });
    // a carriage return at the end may be half of a line end
    const is_half = rest.endsWith("\r");
    const lines = (is_half ? `\r${decoded}` : decoded).split(/\r\n|\n|\r(?!$)/);
    lines[0] = (is_half ? rest.slice(0, -1) : rest) + lines[0];
    rest = lines.pop()!; // there is one
    yield* lines;
  }
  if (rest.startsWith("data:") || isWhole(rest)) yield rest.trimEnd();
}

function isWhole(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
