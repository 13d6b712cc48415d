/**
 * Telling an answer block by block: `content_block:start`, `:delta`, `:end`, as the pieces arrive and in order, or all at
 * once for a provider that does not stream. A reader that joins deltas always has the text (trace.md, note to 13-14).
 */
import { errorMessage, errorName } from "../errors.ts";
import { type HookRegistry, notify } from "../hooks.ts";
import type { ChatResponse, ContentBlock, StreamDelta } from "../messages.ts";

interface Told {
  type: string;
  sequence: number;
}

/** Tells one answer. Make one for each request. */
export class ContentBlockEmitter {
  readonly #hooks: HookRegistry;
  readonly #request_id: string;
  readonly #told = new Map<number, Told>();
  #queue: StreamDelta[] = [];
  #draining: Promise<void> | null = null;
  #failure: { error: unknown } | null = null;

  /** Creates the teller of one request. */
  constructor(hooks: HookRegistry, request_id: string) {
    this.#hooks = hooks;
    this.#request_id = request_id;
  }

  /** Whether anything was told. */
  get started(): boolean {
    return this.#told.size > 0 || this.#queue.length > 0;
  }

  /** Takes a piece of the answer; returns at once, tells in order. Give it to `complete` as `onDelta`. */
  readonly onDelta = (delta: StreamDelta): void => {
    if (this.#draining !== null) return void this.#queue.push(delta);
    const told = this.#tell(delta);
    if (told) this.#draining = this.#drain(told);
  };

  /** Tells what comes while an earlier piece is being told. */
  async #drain(told: Promise<unknown>): Promise<void> {
    try {
      await told;
      for (let index = 0; index < this.#queue.length; index++) await this.#tell(this.#queue[index]!);
    } catch (error) {
      this.#failure ??= { error }; // thrown where somebody waits: nobody waits for a drain
    } finally {
      this.#queue = [];
      this.#draining = null;
    }
  }

  #tell(delta: StreamDelta): Promise<unknown> | void {
    const told = this.#told.get(delta.block_index);
    if (told === undefined) {
      const started = this.#start(delta.block_index, delta.block_type, delta.name);
      return started ? started.then(() => this.#tell(delta)) : this.#tell(delta);
    }
    if (delta.delta === "" || told.type === "tool_call") return;
    return notify(this.#hooks, "content_block:delta", {
      request_id: this.#request_id,
      block_index: delta.block_index,
      sequence: ++told.sequence,
      delta: delta.delta,
    });
  }

  #start(block_index: number, block_type: string, name: unknown): Promise<unknown> | void {
    this.#told.set(block_index, { type: block_type, sequence: 0 });
    const data = { request_id: this.#request_id, block_index, block_type };
    return notify(this.#hooks, "content_block:start", typeof name === "string" ? { ...data, name } : data);
  }

  /** Tells what the stream did not, and the end of every block. Call it with the answer, before `provider:response`. */
  async finish(response: ChatResponse): Promise<void> {
    if (this.#draining !== null || this.#failure !== null) await this.#drained();
    const blocks = response.content;
    for (let block_index = 0; block_index < blocks.length; block_index++) {
      const block = blocks[block_index]!;
      if (!this.#told.has(block_index)) await this.#tellWhole(block_index, block);
      const ended = notify(this.#hooks, "content_block:end", {
        request_id: this.#request_id,
        block_index,
        total_blocks: blocks.length,
        block,
      });
      if (ended) await ended;
    }
  }

  async #tellWhole(block_index: number, block: ContentBlock): Promise<void> {
    await this.#start(block_index, block.type, block.name);
    const text = block.type === "text" ? block.text : block.type === "thinking" ? block.thinking : undefined;
    if (typeof text === "string" && text !== "") {
      const told = this.#told.get(block_index)!;
      await notify(this.#hooks, "content_block:delta", {
        request_id: this.#request_id,
        block_index,
        sequence: ++told.sequence,
        delta: text,
      });
    }
  }

  async #drained(): Promise<void> {
    await this.#draining;
    if (this.#failure) throw this.#failure.error;
  }

  /** Says that the rest will not come; tells nothing when nothing was told before (behaviour.md §6.2). */
  async abort(error: unknown): Promise<void> {
    await this.#drained();
    if (!this.started) return;
    await this.#hooks.emit("llm:stream_aborted", {
      request_id: this.#request_id,
      error: { type: errorName(error), msg: errorMessage(error) },
    });
  }
}
