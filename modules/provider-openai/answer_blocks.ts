/** Collects the blocks of an answer, whole or streamed, and reports their deltas. */
import {
  type ContentBlock,
  type JsonObject,
  parseToolCall,
  type StreamDelta,
  type ToolCall,
} from "preamp/base";

interface Block {
  readonly index: number;
  readonly type: StreamDelta["block_type"] | "other";
  /** Text so far; of a tool call, the JSON text of its arguments. */
  text: string;
  /** Fields of the finished block besides its type and text. */
  fields: JsonObject;
}

/** Id and name of a tool call. */
export interface CallHead {
  readonly id: string;
  readonly name: string;
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

  /** Appends text to a block of text or of thinking. */
  append(key: string, type: "text" | "thinking", delta: string): void {
    if (delta === "") return;
    this.#extend(this.#by_key.get(key) ?? this.#create(key, type, {}), delta);
  }

  /** Appends what the final text has in addition to the deltas. Deltas that differ from it are kept. */
  complete(key: string, type: "text" | "thinking", text: string): void {
    const streamed = this.#by_key.get(key)?.text ?? "";
    if (text.startsWith(streamed)) this.append(key, type, text.slice(streamed.length));
  }

  /** Begins a tool call. A missing id, and one that another call has, is replaced. */
  startCall(key: string, { id, name }: CallHead): void {
    const unique = id !== "" && !this.#call_ids.has(id) ? id : `call_${crypto.randomUUID()}`;
    this.#call_ids.add(unique);
    const { index } = this.#create(key, "tool_call", { id: unique, name });
    this.#onDelta?.({ block_index: index, block_type: "tool_call", delta: "", id: unique, name });
  }

  /** Appends text to the arguments of a call. */
  appendArguments(key: string, delta: string): void {
    const block = this.#by_key.get(key);
    if (block && delta !== "") this.#extend(block, delta);
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
    const block: Block = { index: this.#blocks.length, type, text: "", fields };
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
