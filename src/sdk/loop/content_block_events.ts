/**
 * Emits the blocks of an answer as `content_block:start`, `:delta` and `:end`: in order, as deltas arrive, or
 * all at once for a provider that does not stream. The joined deltas are always the complete text.
 */
import { errorMessage, errorName } from "../errors.ts";
import { type HookRegistry, notify } from "../hooks.ts";
import type { ChatResponse, ContentBlock, StreamDelta } from "../messages.ts";

interface StartedBlock {
  type: string;
  sequence: number;
}

/** Emits the blocks of one answer. Create one per request. */
export class ContentBlockEmitter {
  readonly #hooks: HookRegistry;
  readonly #request_id: string;
  readonly #started = new Map<number, StartedBlock>();
  #queue: StreamDelta[] = [];
  #draining: Promise<void> | null = null;
  #failure: { error: unknown } | null = null;

  /** Creates the emitter of one request. */
  constructor(hooks: HookRegistry, request_id: string) {
    this.#hooks = hooks;
    this.#request_id = request_id;
  }

  /** Whether any block was started. */
  get started(): boolean {
    return this.#started.size > 0 || this.#queue.length > 0;
  }

  /** Receives a delta and returns at once; emits in order. Pass it to `complete` as `onDelta`. */
  readonly onDelta = (delta: StreamDelta): void => {
    if (this.#draining !== null) return void this.#queue.push(delta);
    const pending = this.#emitDelta(delta);
    if (pending) this.#draining = this.#drain(pending);
  };

  /** Emits the deltas that arrive while an earlier one is being emitted. */
  async #drain(pending: Promise<unknown>): Promise<void> {
    try {
      await pending;
      for (let index = 0; index < this.#queue.length; index++) await this.#emitDelta(this.#queue[index]!);
    } catch (error) {
      this.#failure ??= { error }; // thrown by `finish` or `abort`: this promise is not awaited
    } finally {
      this.#queue = [];
      this.#draining = null;
    }
  }

  #emitDelta(delta: StreamDelta): Promise<unknown> | void {
    const block = this.#started.get(delta.block_index);
    if (block === undefined) {
      const starting = this.#startBlock(delta.block_index, delta.block_type, delta.name);
      return starting ? starting.then(() => this.#emitDelta(delta)) : this.#emitDelta(delta);
    }
    if (delta.delta === "" || block.type === "tool_call") return;
    return notify(this.#hooks, "content_block:delta", {
      request_id: this.#request_id,
      block_index: delta.block_index,
      sequence: ++block.sequence,
      delta: delta.delta,
    });
  }

  #startBlock(block_index: number, block_type: string, name: unknown): Promise<unknown> | void {
    this.#started.set(block_index, { type: block_type, sequence: 0 });
    const data = { request_id: this.#request_id, block_index, block_type };
    return notify(this.#hooks, "content_block:start", typeof name === "string" ? { ...data, name } : data);
  }

  /**
   * Emits blocks that were not streamed, and the end of every block. Call it with the answer, before
   * `provider:response`.
   */
  async finish(response: ChatResponse): Promise<void> {
    if (this.#draining !== null || this.#failure !== null) await this.#drained();
    const blocks = response.content;
    for (let block_index = 0; block_index < blocks.length; block_index++) {
      const block = blocks[block_index]!;
      if (!this.#started.has(block_index)) await this.#emitWhole(block_index, block);
      const ended = notify(this.#hooks, "content_block:end", {
        request_id: this.#request_id,
        block_index,
        total_blocks: blocks.length,
        block,
      });
      if (ended) await ended;
    }
  }

  async #emitWhole(block_index: number, block: ContentBlock): Promise<void> {
    await this.#startBlock(block_index, block.type, block.name);
    const text = block.type === "text" ? block.text : block.type === "thinking" ? block.thinking : undefined;
    if (typeof text === "string" && text !== "") {
      const started = this.#started.get(block_index)!;
      await notify(this.#hooks, "content_block:delta", {
        request_id: this.#request_id,
        block_index,
        sequence: ++started.sequence,
        delta: text,
      });
    }
  }

  async #drained(): Promise<void> {
    await this.#draining;
    if (this.#failure) throw this.#failure.error;
  }

  /** Emits `llm:stream_aborted`, unless nothing was emitted before. */
  async abort(error: unknown): Promise<void> {
    await this.#drained();
    if (!this.started) return;
    await this.#hooks.emit("llm:stream_aborted", {
      request_id: this.#request_id,
      error: { type: errorName(error), msg: errorMessage(error) },
    });
  }
}
