/** Collects the blocks of an answer, whole or streamed, and reports their deltas. */
import { GrowingText } from "../growing_text.ts";
import { jsonEqual, type JsonObject } from "../json.ts";
import type { ContentBlock } from "../content_blocks.ts";
import type { StreamDelta } from "../messages.ts";
import { parseToolCall, type ToolCall } from "../tools.ts";
import { type TextSplit, ThinkTags } from "./think_tags.ts";

interface Block {
  readonly key: string;
  readonly index: number;
  readonly type: StreamDelta["block_type"] | "other";
  /** Text so far; of a tool call, the JSON text of its arguments. */
  text: GrowingText;
  /** Fields of the finished block besides its type and text. */
  fields: JsonObject;
}

/** A call with the id and the name of another one of the answer: not yet known to differ from it. */
interface Repeated {
  readonly id: string;
  readonly name: string;
  text: string;
  fields: JsonObject;
}

/** Key of the thinking between tags. */
const TAGGED = "think tags";

/** Options of {@link AnswerBlocks}. */
export interface AnswerBlocksOptions {
  /** Receives the deltas of a streamed answer. */
  readonly onDelta?: ((delta: StreamDelta) => void) | undefined;
  /** Whether text in `<think>` tags at the beginning is thinking; default false. */
  readonly think_tags?: boolean | undefined;
}

/**
 * The blocks of one answer. A block is created with its first text and keeps its index, so that deltas and
 * the final content agree. A `key` names a block while the answer arrives. A call that a server sends twice,
 * with the same id, name and arguments, is one call.
 */
export class AnswerBlocks {
  readonly #blocks: Block[] = [];
  readonly #by_key = new Map<string, Block>();
  readonly #used_ids: ReadonlySet<string>;
  /** Calls of the answer by the ids that the server gave them. */
  readonly #by_id = new Map<string, Block[]>();
  readonly #repeated = new Map<string, Repeated>();
  readonly #onDelta: ((delta: StreamDelta) => void) | undefined;
  readonly #tags: ThinkTags | null;
  /** Key of the last text. */
  #text_key = "";

  /**
   * Creates an empty answer.
   *
   * @param used_ids Ids of calls in the history; a call of the answer gets another id.
   */
  constructor(used_ids: Iterable<string>, { onDelta, think_tags }: AnswerBlocksOptions = {}) {
    this.#used_ids = new Set(used_ids);
    this.#onDelta = onDelta;
    this.#tags = think_tags ? new ThinkTags() : null;
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
    if (!this.#tags || type !== "text") return this.#append(key, type, delta);
    this.#text_key = key;
    this.#appendSplit(this.#tags.split(delta));
  }

  #appendSplit(parts: readonly TextSplit[]): void {
    for (const { type, text } of parts) {
      this.#append(type === "thinking" ? TAGGED : this.#text_key, type, text);
    }
  }

  #append(key: string, type: "text" | "thinking", delta: string): void {
    this.#extend(this.#by_key.get(key) ?? this.#create(key, type, {}), delta);
  }

  /** Appends the text that may have been a part of a tag: another block follows, or none. */
  #endText(): void {
    if (this.#tags) this.#appendSplit(this.#tags.rest());
  }

  /**
   * Begins a tool call. A missing id, and one that another call has, is replaced. One with id and name of
   * another call of the answer is a call of its own only if its arguments differ.
   */
  startCall(key: string, id: unknown, name: unknown, args = ""): void {
    this.#endText();
    const call = { id: typeof id === "string" ? id : "", name: String(name ?? "") };
    if (this.#same(call).length > 0) this.#repeated.set(key, { ...call, text: args, fields: {} });
    else this.#startCall(key, call, args);
  }

  /** Returns the calls of the answer with an id and a name. */
  #same({ id, name }: { id: string; name: string }): Block[] {
    return this.#by_id.get(id)?.filter(({ fields }) => fields.name === name) ?? [];
  }

  #startCall(key: string, { id, name }: { id: string; name: string }, args: string): Block {
    const known = this.#by_id.get(id) ?? [];
    const is_new = id !== "" && !this.#used_ids.has(id) && known.length === 0;
    const fields = { id: is_new ? id : `call_${crypto.randomUUID()}`, name };
    const block = this.#create(key, "tool_call", fields);
    block.text.append(args);
    if (id !== "") this.#by_id.set(id, [...known, block]);
    this.#onDelta?.({ block_index: block.index, block_type: "tool_call", delta: args, ...fields });
    return block;
  }

  /** Makes a call of one that turned out to differ from the call whose id and name it has. */
  #addDifferent(key: string, { text, fields, ...call }: Repeated): void {
    this.#repeated.delete(key);
    const { arguments: input, invalid_arguments } = callOf(call, text);
    const is_repeated = this.#same(call).some((block) =>
      block.text.value.startsWith(text) || // also a part of it, which says nothing else
      invalid_arguments === undefined && jsonEqual(callOf(call, block.text.value).arguments, input)
    );
    if (!is_repeated) Object.assign(this.#startCall(key, call, text).fields, fields);
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
    const repeated = this.#repeated.get(key);
    if (repeated) this.#addDifferent(key, repeated);
  }

  /** Appends text to the arguments of a call. */
  appendArguments(key: string, delta: string): void {
    const repeated = this.#repeated.get(key);
    if (repeated) repeated.text += delta;
    const block = this.#by_key.get(key);
    if (block && delta) this.#extend(block, delta);
  }

  /** Sets the final arguments of a call. */
  completeArguments(key: string, text: string): void {
    const repeated = this.#repeated.get(key);
    if (repeated && text !== "") repeated.text = text;
    const block = this.#by_key.get(key);
    if (!block || text === "") return;
    const { value: before } = block.text;
    if (text.startsWith(before)) return this.appendArguments(key, text.slice(before.length));
    block.text = new GrowingText();
    block.text.append(text);
  }

  /** Adds fields to a block; a missing block of thinking is created. */
  addFields(key: string, type: "text" | "thinking" | "tool_call", fields: JsonObject): void {
    const block = this.#repeated.get(key) ?? this.#by_key.get(key) ??
      (type === "thinking" ? this.#create(key, type, {}) : undefined);
    if (block) Object.assign(block.fields, fields);
  }

  /** Adds a block that is not streamed. */
  add(key: string, type: string, fields: JsonObject): void {
    this.#endText();
    if (!this.#by_key.has(key)) this.#create(key, "other", { type, ...fields });
  }

  /** Returns the content of the answer. */
  content(): ContentBlock[] {
    this.#end();
    return this.#blocks.map(({ type, text: { value: text }, fields }) => {
      if (type === "text") return { type, text, ...fields };
      if (type === "thinking") return { type, thinking: text, ...fields };
      if (type === "other") return fields as ContentBlock; // `add` sets its type
      const { id, name, ...more } = fields;
      return { type, id, name, input: callOf(fields, text).arguments, ...more } as ContentBlock;
    });
  }

  /** Returns the tool calls of the answer. */
  calls(): ToolCall[] {
    this.#end();
    return this.#blocks.filter(({ type }) => type === "tool_call")
      .map(({ fields, text }) => callOf(fields, text.value));
  }

  /** Adds what was held back. */
  #end(): void {
    this.#endText();
    for (const [key, repeated] of this.#repeated) this.#addDifferent(key, repeated);
  }

  #create(key: string, type: Block["type"], fields: JsonObject): Block {
    const block: Block = { key, index: this.#blocks.length, type, text: new GrowingText(), fields };
    this.#blocks.push(block);
    this.#by_key.set(key, block);
    return block;
  }

  #extend(block: Block, delta: string): void {
    block.text.append(delta);
    if (block.type !== "other") {
      this.#onDelta?.({ block_index: block.index, block_type: block.type, delta });
    }
  }
}

/** Some servers send `null` for a call without arguments. */
function callOf({ id, name }: JsonObject, text: string): ToolCall {
  return parseToolCall({ id, name, arguments: text.trim() === "null" ? "" : text });
}
