/** Reads answers of the Messages API, also of the servers that resemble it. */
import { isObject, type JsonObject } from "preamp/base";
import { parsed } from "../names.ts";
import { type EventReader, objectsIn, readCounts, statesError, textOrNone } from "./event_reader.ts";

/** Field of a block that arrives in deltas, and the delta of it, by the block's type. */
const DELTAS: Readonly<Record<string, readonly [field: string, type: string, delta_field: string]>> = {
  text: ["text", "text_delta", "text"],
  thinking: ["thinking", "thinking_delta", "thinking"],
  tool_use: ["input", "input_json_delta", "partial_json"],
};

/** A block that arrives. */
interface OpenBlock {
  readonly index: number;
  readonly block: JsonObject;
  has_deltas: boolean;
}

export class AnthropicReader implements EventReader {
  ended = false;
  #is_stopped = false;
  #open: OpenBlock | null = null;
  #count = 0;

  read(event: JsonObject): readonly JsonObject[] {
    if (statesError(event)) return this.ended ? [] : [event];
    switch (event.type) {
      case "message_start":
        return [{ ...event, message: messageIn(event.message, this.#starts(event)) }];
      case "content_block_start":
        return isObject(event.content_block) ? [...this.#close(), ...this.#begin(event)] : [];
      case "content_block_delta":
        return isObject(event.delta) ? [this.#delta(event)] : [];
      case "content_block_stop":
        return [...this.#close(), { ...event, index: this.#indexOf(event) }];
      case "message_delta": {
        const delta = isObject(event.delta) ? event.delta : {};
        this.ended ||= textOrNone(delta.stop_reason) !== undefined;
        const usage = readCounts(event.usage, ["output_tokens"]) ?? { output_tokens: 0 };
        return [...this.#close(), { ...event, delta, usage }];
      }
      case "message_stop":
        this.#is_stopped = true;
        return [...this.#close(), event];
      default:
        return []; // pings, and events of tomorrow
    }
  }

  last(): readonly JsonObject[] {
    return this.ended && !this.#is_stopped ? [...this.#close(), { type: "message_stop" }] : [];
  }

  whole(answer: JsonObject): JsonObject {
    if (statesError(answer) || !Array.isArray(answer.content)) return answer;
    return messageIn(answer, objectsIn(answer.content).map(blockIn));
  }

  /** The package reads calls only in the message of the first event. */
  #starts({ message }: JsonObject): JsonObject[] {
    return objectsIn(isObject(message) ? message.content : []).filter(({ type }) => type === "tool_use");
  }

  #indexOf({ index }: JsonObject): number {
    return typeof index === "number" ? index : this.#open?.index ?? Math.max(0, this.#count - 1);
  }

  #begin(event: JsonObject): JsonObject[] {
    const index = typeof event.index === "number" ? event.index : this.#count;
    this.#count = Math.max(this.#count, index) + 1;
    const block = blockIn(event.content_block as JsonObject);
    const [field] = DELTAS[String(block.type)] ?? [];
    this.#open = { index, block, has_deltas: false };
    if (field === undefined) return [{ ...event, index }];
    return [{ ...event, index, content_block: { ...block, [field]: field === "input" ? {} : "" } }];
  }

  #delta(event: JsonObject): JsonObject {
    const index = this.#indexOf(event);
    const { text, thinking, partial_json } = event.delta as JsonObject;
    if (this.#open?.index === index && (text || thinking || partial_json)) this.#open.has_deltas = true;
    return { ...event, index };
  }

  /** Returns what a block had at its beginning only: its deltas did not come. */
  #close(): JsonObject[] {
    const open = this.#open;
    this.#open = null;
    if (!open || open.has_deltas) return [];
    const { index, block } = open;
    const [field, type, delta_field] = DELTAS[String(block.type)] ?? [];
    const whole = field === undefined ? undefined : block[field];
    const text = isObject(whole) ? Object.keys(whole).length > 0 && JSON.stringify(whole) : whole;
    if (typeof text !== "string" || text === "") return [];
    return [{ type: "content_block_delta", index, delta: { type, [delta_field!]: text } }];
  }
}

/** Returns a block with the fields that the package wants. */
function blockIn(block: JsonObject): JsonObject {
  const { type, text, thinking, signature, id, name, input } = block;
  if (type === "text") return { ...block, text: textOrNone(text) ?? "" };
  if (type === "thinking") {
    return { ...block, thinking: textOrNone(thinking) ?? "", signature: textOrNone(signature) ?? "" };
  }
  if (type !== "tool_use") return block;
  const value = isObject(input) ? input : parsed(input) ?? input ?? {};
  return {
    ...block,
    id: textOrNone(id) ?? `toolu_${crypto.randomUUID()}`,
    name: textOrNone(name) ?? "",
    input: value,
  };
}

function messageIn(value: unknown, content: JsonObject[]): JsonObject {
  const message = isObject(value) ? value : {};
  const { id, model, usage, stop_reason } = message;
  return {
    ...message,
    id: textOrNone(id) ?? null,
    model: textOrNone(model) ?? null,
    content,
    stop_reason: textOrNone(stop_reason) ?? null,
    usage: readCounts(usage, ["input_tokens", "output_tokens"]) ?? { input_tokens: 0, output_tokens: 0 },
  };
}
