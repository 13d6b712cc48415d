/** Reads server-sent events as a browser would (WHATWG HTML §9.2): fields, empty line, comments left out. */

/** One event. */
export interface SseFrame {
  id: string | null;
  event: string;
  data: string;
}

/** Yields the events of a response until it ends. */
export async function* readSse(response: Response): AsyncGenerator<SseFrame> {
  let frame: SseFrame = { id: null, event: "message", data: "" };
  let rest = "";
  for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop()!;
    for (const line of lines) {
      if (line === "") {
        if (frame.data !== "") yield { ...frame, data: frame.data.slice(0, -1) };
        frame = { id: frame.id, event: "message", data: "" };
        continue;
      }
      const colon = line.indexOf(":");
      const field = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (field === "data") frame.data += `${value}\n`;
      else if (field === "event") frame.event = value;
      else if (field === "id") frame.id = value;
    }
  }
}
