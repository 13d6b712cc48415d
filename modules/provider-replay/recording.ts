/** A recorded log → what each attempt of a model call came to. Knows the entries of trace.md and nothing else of runs. */
import { type JsonObject, PreampError, type StreamDelta } from "preamp";

/** One attempt: its pieces as they were told, then its answer or its failure. */
export interface Attempt {
  readonly pieces: readonly StreamDelta[];
  readonly outcome: { readonly response: JsonObject } | { readonly failure: JsonObject };
}

/**
 * Returns the attempts that a config's log holds, in order.
 *
 * @throws {PreampError} `module_invalid` when there is none.
 */
export function readAttempts(config: JsonObject): Attempt[] {
  const events = eventsOf(config);
  const session_id = typeof config.session_id === "string" ? config.session_id : events[0]?.session_id;
  const attempts: Attempt[] = [];
  let pieces: StreamDelta[] = [];
  for (const { event, data, session_id: of } of events) {
    if (of !== session_id || !isObject(data)) continue;
    const piece = pieceOf(event, data, pieces);
    if (piece) pieces.push(piece);
    const outcome = outcomeOf(event, data);
    if (outcome === null) continue;
    if (config.provider === undefined || config.provider === data.provider) {
      attempts.push({ pieces, outcome });
    }
    pieces = [];
  }
  return attempts;
}

function eventsOf({ events, recording }: JsonObject): JsonObject[] {
  const given = events ?? (isObject(recording) ? recording.events : undefined);
  if (Array.isArray(given) && given.every(isObject)) return given;
  throw new PreampError(
    "module_invalid",
    "Cannot read the config of provider-replay: events must be the entries of a log, or recording a saved run: received neither",
  );
}

function pieceOf(event: unknown, data: JsonObject, before: readonly StreamDelta[]): StreamDelta | null {
  const block_index = Number(data.block_index);
  if (event === "content_block:start") {
    const block_type = data.block_type as StreamDelta["block_type"]; // as a loop wrote it
    return {
      block_index,
      block_type,
      delta: "",
      ...(typeof data.name === "string" ? { name: data.name } : {}),
    };
  }
  if (event !== "content_block:delta") return null;
  const block_type = before.find((piece) => piece.block_index === block_index)?.block_type ?? "text";
  return { block_index, block_type, delta: String(data.delta) };
}

function outcomeOf(event: unknown, data: JsonObject): Attempt["outcome"] | null {
  if (event === "provider:response") {
    return isObject(data.response) ? { response: { ...data.response, usage: data.usage } } : null;
  }
  if (event === "provider:error") {
    const { type, msg } = isObject(data.error) ? data.error : {};
    return { failure: { ...data, type, message: msg } };
  }
  // the attempts of a provider that tries again by itself are inside of its one answer
  if (event !== "provider:retry" || data.request_id === undefined) return null;
  return { failure: { ...data, type: data.error_type, message: data.error_message, retryable: true } };
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
