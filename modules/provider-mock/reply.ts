/** Builds the response of a script entry: blocks, tool calls with ids, finish reason and usage; and streams its blocks. */
import {
  type ChatRequest,
  type ContentBlock,
  costOf,
  estimateTokens,
  type JsonObject,
  type Prices,
  type RequestMeter,
  type StreamDelta,
  ToolCall,
  toolTokens,
  toPlainObject,
  Usage,
} from "preamp/base";
import type { ScriptedCall, ScriptEntry } from "./config.ts";

/** The content of an answer, without usage. */
export interface Reply {
  content: ContentBlock[];
  tool_calls: ToolCall[];
  finish_reason: string;
}

/** Returns the content of an entry as a copy. Calls without an id are numbered from `firstId`. */
export function composeReply(entry: ScriptEntry, firstId: number): Reply {
  const content: ContentBlock[] = [];
  if (entry.thinking) content.push({ type: "thinking", thinking: entry.thinking });
  if (entry.text) content.push({ type: "text", text: entry.text });
  const calls = (entry.tool_calls ?? []).map((call, index) => toCall(call, firstId + index));
  for (const { id, name, arguments: input } of calls) content.push({ type: "tool_call", id, name, input });
  const finish_reason = entry.finish_reason ?? (calls.length > 0 ? "tool_calls" : "stop");
  return { content, tool_calls: calls, finish_reason };
}

function toCall(call: ScriptedCall, number: number): ToolCall {
  const { name, arguments: input } = call;
  return ToolCall({
    id: call.id || `call_${number}`,
    name,
    arguments: typeof input === "string" ? input : toPlainObject(input),
  });
}

/**
 * Returns the usage of an answer. Token counts that the entry does not have are estimated. A missing cost is computed from the
 * prices; without prices it is null.
 */
export function usageOf(
  entry: ScriptEntry,
  reply: Reply,
  request: ChatRequest,
  { meter, prices }: { meter: RequestMeter; prices: Prices | undefined },
): Usage {
  const scripted: JsonObject = entry.usage ?? {};
  const usage = Usage({
    ...scripted,
    input_tokens: scripted.input_tokens ?? meter.count(request.messages) + toolTokens(request.tools),
    output_tokens: scripted.output_tokens ?? estimateOutput(entry, reply),
  });
  if (prices && scripted.cost_usd === undefined) usage.cost_usd = costOf(usage, prices);
  return usage;
}

function estimateOutput(entry: ScriptEntry, reply: Reply): number {
  let tokens = estimateTokens(entry.thinking ?? "") + estimateTokens(entry.text ?? "");
  for (const call of reply.tool_calls) tokens += estimateTokens(call.name + JSON.stringify(call.arguments));
  return tokens;
}

interface StreamOptions {
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
