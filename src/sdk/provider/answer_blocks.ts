/** Collects the blocks of an answer, whole or streamed, and reports their deltas. */
import type { JsonObject } from "../json.ts";
import type { ContentBlock } from "../content_blocks.ts";
import type { StreamDelta } from "../messages.ts";
import { parseToolCall, type ToolCall } from "../tools.ts";

interface Block {
  readonly key: string;
  readonly index: number;
  readonly type: StreamDelta["block_type"] | "other";
  /** Text so far; of a tool call, the JSON text of its arguments. */
  text: string;
  /** Fields of the finished block besides its type and text. */
  fields: JsonObject;
}

/**
 * The blocks of one answer. A block is created with its first text and keeps its index, so that deltas and
 * the final content agree. A `key` names a block while the answer arrives.
 */
export class AnswerBlocks {
  readonly #blocks: Block[] = [];
  readonly #by_key = new Map<string, Block>();
  readonly #call_ids: Set<string>;
  readonly #onDelta: ((delta: StreamDelta) => void) | undefined;

  /**
   * Creates an empty answer.
   *
   * @param used_ids Ids of calls in the history; a call of the answer gets another id.
   */
  constructor(used_ids: Iterable<string>, onDelta?: (delta: StreamDelta) => void) {
    this.#call_ids = new Set(used_ids);
    this.#onDelta = onDelta;
  }

  /**
   * Returns the key of the last block if it has this type and no further fields, else that of a new block:
   * for answers whose parts have no index. A call is always a new block.
   */
  keyFor(type: string): string {
    const last = this.#blocks.at(-1);
    const continues = last?.type === type && type !== "tool_call" && Object.keys(last.fields).length === 0;
    return continues ? last.key : String(this.#blocks.length);
  }

  /** Appends text to a block of text or of thinking. */
  append(key: string, type: "text" | "thinking", delta: string): void {
    if (!delta) return; // some servers send null
    this.#extend(this.#by_key.get(key) ?? this.#create(key, type, {}), delta);
  }

  /** Appends what the final text has in addition to the deltas. Deltas that differ from it are kept. */
  complete(key: string, type: "text" | "thinking", text: string): void {
    const streamed = this.#by_key.get(key)?.text ?? "";
    if (text.startsWith(streamed)) this.append(key, type, text.slice(streamed.length));
  }

  /** Begins a tool call. A missing id, and one that another call has, is replaced. */
  startCall(key: string, id: unknown, name: unknown, args = ""): void {
    const is_new = typeof id === "string" && id !== "" && !this.#call_ids.has(id);
    const unique = is_new ? id : `call_${crypto.randomUUID()}`;
    this.#call_ids.add(unique);
    const fields = { id: unique, name: String(name ?? "") };
    const block = this.#create(key, "tool_call", fields);
    block.text = args;
    this.#onDelta?.({ block_index: block.index, block_type: "tool_call", delta: args, ...fields });
  }

  /**
   * Adds a call that arrived whole.
   *
   * @param call Its id, its name and its arguments: an object, or the text that the model wrote.
   * @param fields Further fields of its block.
   */
  addCall({ id, name, arguments: args }: JsonObject, fields: JsonObject = {}): void {
    const key = this.keyFor("tool_call");
    this.startCall(key, id, name, typeof args === "string" ? args : JSON.stringify(args ?? {}));
    this.addFields(key, "tool_call", fields);
  }

  /** Appends text to the arguments of a call. */
  appendArguments(key: string, delta: string): void {
    const block = this.#by_key.get(key);
    if (block && delta) this.#extend(block, delta);
  }

  /** Sets the final arguments of a call. */
  completeArguments(key: string, text: string): void {
    const block = this.#by_key.get(key);
    if (!block || text === "") return;
    if (text.startsWith(block.text)) this.appendArguments(key, text.slice(block.text.length));
    else block.text = text;
  }

  /** Returns the arguments of a call so far; undefined when it has not begun. */
  argumentsOf(key: string): string | undefined {
    return this.#by_key.get(key)?.text;
  }

  /** Adds fields to a block; a missing block of thinking is created. */
  addFields(key: string, type: "text" | "thinking" | "tool_call", fields: JsonObject): void {
    const block = this.#by_key.get(key) ?? (type === "thinking" ? this.#create(key, type, {}) : undefined);
    if (block) Object.assign(block.fields, fields);
  }

  /** Adds a block that is not streamed. */
  add(key: string, type: string, fields: JsonObject): void {
    if (!this.#by_key.has(key)) this.#create(key, "other", { type, ...fields });
  }

  /** Returns the content of the answer. */
  content(): ContentBlock[] {
    return this.#blocks.map(({ type, text, fields }) => {
      if (type === "text") return { type, text, ...fields };
      if (type === "thinking") return { type, thinking: text, ...fields };
      if (type === "other") return fields as ContentBlock; // `add` sets its type
      const { id, name, ...more } = fields;
      return { type, id, name, input: callOf(fields, text).arguments, ...more } as ContentBlock;
    });
  }

  /** Returns the tool calls of the answer. */
  calls(): ToolCall[] {
    return this.#blocks.filter(({ type }) => type === "tool_call")
      .map(({ fields, text }) => callOf(fields, text));
  }

  #create(key: string, type: Block["type"], fields: JsonObject): Block {
    const block: Block = { key, index: this.#blocks.length, type, text: "", fields };
    this.#blocks.push(block);
    this.#by_key.set(key, block);
    return block;
  }

  #extend(block: Block, delta: string): void {
    block.text += delta;
    if (block.type !== "other") {
      this.#onDelta?.({ block_index: block.index, block_type: block.type, delta });
    }
  }
}

/** Some servers send `null` for a call without arguments. */
function callOf({ id, name }: JsonObject, text: string): ToolCall {
  return parseToolCall({ id, name, arguments: text.trim() === "null" ? "" : text });
}
