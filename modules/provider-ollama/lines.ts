/** Reads newline-delimited JSON. */
import { isObject, type JsonObject, LLMError } from "preamp/base";

/**
 * Yields the objects of a response, wherever the network cuts it.
 *
 * @throws {LLMError} `StreamError` when the connection breaks, or a line is not a JSON object.
 */
export async function* readObjects(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
): AsyncGenerator<JsonObject> {
  let rest = "";
  for await (const text of readText(body)) {
    const lines = text.split("\n");
    lines[0] = rest + lines[0];
    rest = lines.pop() ?? "";
    for (const line of lines) if (line.trim() !== "") yield parseLine(line);
  }
  if (rest.trim() !== "") yield parseLine(rest);
}

async function* readText(body: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<string> {
  try {
    yield* body.pipeThrough(new TextDecoderStream());
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : String(cause);
    throw new LLMError("StreamError", `Cannot read the response of Ollama: ${message}`, { cause });
  }
}

function parseLine(line: string): JsonObject {
  try {
    const value: unknown = JSON.parse(line);
    if (isObject(value)) return value;
  } catch {
    // reported below
  }
  throw new LLMError(
    "StreamError",
    `Cannot read the response of Ollama: a line is not a JSON object: ${line.slice(0, 80)}`,
  );
}
