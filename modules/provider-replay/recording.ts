/** Reads the attempts of model calls from a recorded event log (src/docs/events.md). */
import { isObject, type JsonObject, PreampError, type StreamDelta } from "preamp/base";

/** The config with its defaults; `record` is a file, or `events` or `recording` has a log. */
export interface ReplayConfig {
  readonly record?: string;
  readonly events?: readonly JsonObject[];
  readonly recording?: { readonly events: unknown };
  /** Session to replay; default: that of the first entry. */
  readonly session_id?: string;
  /** Provider that is recorded, or whose answers are replayed; default: all. */
  readonly provider?: string;
  readonly context_window: number;
  readonly max_output_tokens: number;
}

/** One attempt of a model call: its deltas, then its response or failure. */
export interface Attempt {
  readonly deltas: readonly StreamDelta[];
  readonly outcome: { readonly response: JsonObject } | { readonly failure: JsonObject };
}

/**
 * Returns the attempts in a config's log, in order.
 *
 * @throws {PreampError} `module_invalid` when the config has no log.
 */
export function readAttempts(config: ReplayConfig): Attempt[] {
  const events = eventsOf(config);
  const session_id = config.session_id ?? events[0]?.session_id;
  const attempts: Attempt[] = [];
  let deltas: StreamDelta[] = [];
  for (const { event, data, session_id: of } of events) {
    if (of !== session_id || !isObject(data)) continue;
    const delta = deltaOf(event, data, deltas);
    if (delta) deltas.push(delta);
    const outcome = outcomeOf(event, data);
    if (outcome === null) continue;
    if (config.provider === undefined || config.provider === data.provider) {
      attempts.push({ deltas, outcome });
    }
    deltas = [];
  }
  return attempts;
}

function eventsOf({ events, recording }: ReplayConfig): readonly JsonObject[] {
  const entries: unknown = events ?? recording?.events;
  if (Array.isArray(entries) && entries.every(isObject)) return entries;
  throw new PreampError(
    "module_invalid",
    "Cannot mount provider-replay: its config must have record (a file), events (the entries of a log) or recording (a saved run)",
  );
}

function deltaOf(event: unknown, data: JsonObject, before: readonly StreamDelta[]): StreamDelta | null {
  const block_index = Number(data.block_index);
  if (event === "content_block:start") {
    const block_type = data.block_type as StreamDelta["block_type"]; // written by a loop
    return {
      block_index,
      block_type,
      delta: "",
      ...(typeof data.name === "string" ? { name: data.name } : {}),
    };
  }
  if (event !== "content_block:delta") return null;
  const block_type = before.find((delta) => delta.block_index === block_index)?.block_type ?? "text";
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
  // retries inside of a provider have no request_id; only the final answer counts
  if (event !== "provider:retry" || data.request_id === undefined) return null;
  return { failure: { ...data, type: data.error_type, message: data.error_message, retryable: true } };
}
