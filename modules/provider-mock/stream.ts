/** Streams an answer as deltas. */
import type { ContentBlock, StreamDelta } from "preamp/base";

/** Options of `streamBlocks`. */
export interface StreamOptions {
  onDelta: (delta: StreamDelta) => void;
  /** Maximum code points of a text or thinking delta. */
  chunk_chars: number;
  /** Called after each delta; may throw to stop. */
  check: () => void;
}

/**
 * Streams blocks in order. A tool call is one delta with its id and name; its arguments are not streamed. Other code runs
 * between deltas: each is followed by a microtask, which is cheaper than a timer.
 */
export async function streamBlocks(content: readonly ContentBlock[], options: StreamOptions): Promise<void> {
  const { onDelta, check, chunk_chars } = options;
  for (const [block_index, block] of content.entries()) {
    if (block.type === "tool_call") {
      const { id, name } = block as { id: string; name: string };
      onDelta({ block_index, block_type: "tool_call", delta: "", id, name });
      await null;
      check();
      continue;
    }
    const block_type = block.type === "thinking" ? "thinking" : "text";
    const text = String(block_type === "thinking" ? block.thinking : block.text);
    for (let start = 0; start < text.length;) {
      const end = endOfChunk(text, start, chunk_chars);
      onDelta({ block_index, block_type, delta: text.slice(start, end) });
      start = end;
      await null;
      check();
    }
  }
}

/** Returns the index after `count` code points from `start`: a surrogate pair is never cut. */
function endOfChunk(text: string, start: number, count: number): number {
  let end = start;
  for (let left = count; left > 0 && end < text.length; left--) {
    end += (text.codePointAt(end) ?? 0) > 0xffff ? 2 : 1;
  }
  return end;
}
