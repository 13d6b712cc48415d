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
  /** Streamed blocks by index; null before the first. */
  #started: Map<number, StartedBlock> | null = null;
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
    return this.#started !== null || this.#queue.length > 0;
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
        this.#started ??= new Map();
        let block = this.#started.get(block_index);
        if (!block) {
          this.#started.set(block_index, block = { type: block_type, sequence: 0 });
          await this.#emitStart(block_index, block_type, name);
        }
        if (delta === "" || block.type === "tool_call") continue;
        await this.#emitDelta(block_index, ++block.sequence, delta);
      }
    } catch (error) {
      this.#failure ??= { error }; // thrown by `finish` or `abort`: this promise is not awaited
    } finally {
      this.#queue = [];
      this.#draining = null;
    }
  }

  #emitStart(block_index: number, block_type: string, name: unknown): Promise<unknown> {
    const data = { request_id: this.#request_id, block_index, block_type };
    return this.#hooks.emit("content_block:start", typeof name === "string" ? { ...data, name } : data);
  }

  #emitDelta(block_index: number, sequence: number, delta: string): Promise<unknown> {
    const data = { request_id: this.#request_id, block_index, sequence, delta };
    return this.#hooks.emit("content_block:delta", data);
  }

  /**
   * Emits blocks that were not streamed, and the end of every block. Call it with the answer, before
   * `provider:response`.
   */
  async finish({ content }: ChatResponse): Promise<void> {
    if (this.#draining || this.#failure) await this.#drained();
    for (let block_index = 0; block_index < content.length; block_index++) {
      const block = content[block_index]!; // below the length
      if (!this.#started?.has(block_index)) {
        await this.#emitStart(block_index, block.type, block.name);
        const text = textOf(block);
        if (text !== "") await this.#emitDelta(block_index, 1, text);
      }
      await this.#hooks.emit("content_block:end", {
        request_id: this.#request_id,
        block_index,
        total_blocks: content.length,
        block,
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

/** Returns the text of a block whose text is emitted as a delta; "" for all others. */
function textOf({ type, text, thinking }: ContentBlock): string {
  const own = type === "text" ? text : type === "thinking" ? thinking : "";
  return typeof own === "string" ? own : "";
}
