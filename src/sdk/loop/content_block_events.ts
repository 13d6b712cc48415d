/**
 * Emits the blocks of an answer as `content_block:start`, `:delta` and `:end`: in order, as deltas arrive, or
 * all at once for a provider that does not stream. The joined deltas are always the complete text.
 */
import { errorMessage, errorName } from "../errors.ts";
import type { HookRegistry } from "../hooks.ts";
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
    this.#queue.push(delta);
    this.#draining ??= this.#drain();
  };

  /** Emits the queued deltas and those that arrive meanwhile. */
  async #drain(): Promise<void> {
    try {
      for (let index = 0; index < this.#queue.length; index++) {
        const { block_index, block_type, name, delta } = this.#queue[index]!;
        const block = this.#started.get(block_index) ?? await this.#startBlock(block_index, block_type, name);
        if (delta !== "" && block.type !== "tool_call") await this.#emitText(block_index, block, delta);
      }
    } catch (error) {
      this.#failure ??= { error }; // thrown by `finish` or `abort`: this promise is not awaited
    } finally {
      this.#queue = [];
      this.#draining = null;
    }
  }

  async #startBlock(block_index: number, block_type: string, name: unknown): Promise<StartedBlock> {
    const block = { type: block_type, sequence: 0 };
    this.#started.set(block_index, block);
    const data = { request_id: this.#request_id, block_index, block_type };
    await this.#hooks.emit("content_block:start", typeof name === "string" ? { ...data, name } : data);
    return block;
  }

  #emitText(block_index: number, block: StartedBlock, delta: string): Promise<unknown> {
    const data = { request_id: this.#request_id, block_index, sequence: ++block.sequence, delta };
    return this.#hooks.emit("content_block:delta", data);
  }

  /**
   * Emits blocks that were not streamed, and the end of every block. Call it with the answer, before
   * `provider:response`.
   */
  async finish(response: ChatResponse): Promise<void> {
    await this.#drained();
    const blocks = response.content;
    for (const [block_index, block] of blocks.entries()) {
      if (!this.#started.has(block_index)) await this.#emitWhole(block_index, block);
      await this.#hooks.emit("content_block:end", {
        request_id: this.#request_id,
        block_index,
        total_blocks: blocks.length,
        block,
      });
    }
  }

  async #emitWhole(block_index: number, block: ContentBlock): Promise<void> {
    const started = await this.#startBlock(block_index, block.type, block.name);
    const text = block.type === "text" ? block.text : block.type === "thinking" ? block.thinking : undefined;
    if (typeof text === "string" && text !== "") await this.#emitText(block_index, started, text);
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
