/** The provider: takes the next answer, waits, streams it, and fails if the entry has an error. */
import {
  type ChatRequest,
  type ChatResponse,
  type Clock,
  type CompleteOptions,
  LLMError,
  parseToolCall,
  type Provider,
  ProviderInfo,
  RequestMeter,
  type ToolCall,
} from "preamp/base";
import { type Answers, DEFAULT_TEXT, type MockConfig, type ScriptEntry } from "./config.ts";
import type { Position } from "./script_position.ts";
import { composeReply, streamBlocks, usageOf } from "./reply.ts";
import { defaultAnswer, promptOf } from "./default_answer.ts";

export interface ProviderDeps {
  clock: Clock;
  position: Position;
}

/** Returns a provider that answers from its script, or by `default_answer.ts`. */
export function createProvider(config: MockConfig, deps: ProviderDeps): Provider {
  const { answers, chunk_chars, context_window, max_output_tokens, models, prices, priority } = config;
  const meter = new RequestMeter();

  async function complete(request: ChatRequest, options: CompleteOptions = {}): Promise<ChatResponse> {
    const { signal, onDelta } = options;
    const check = () => throwIfAborted(signal);
    check();
    const { entry, firstId } = deps.position.take(request, (index) => answerTo(answers, index, request));
    if (entry.delay_ms) await wait(deps.clock, entry.delay_ms, signal);
    const reply = composeReply(entry, firstId);
    if (onDelta) await streamBlocks(reply.content, { onDelta, chunk_chars, check });
    if (entry.error) {
      const { type, message, ...facts } = entry.error;
      throw new LLMError(type, message, { provider: "mock", ...facts });
    }
    const { content, tool_calls, finish_reason } = reply;
    const usage = usageOf(entry, reply, request, { meter, prices });
    return { content, ...(tool_calls.length > 0 ? { tool_calls } : {}), finish_reason, usage };
  }

  return {
    name: "mock",
    ...(priority === undefined ? {} : { priority }),
    getInfo: () =>
      ProviderInfo({
        id: "mock",
        display_name: "Mock provider",
        capabilities: ["streaming", "tools"],
        defaults: { context_window, max_output_tokens },
      }),
    listModels: () => Promise.resolve(structuredClone(models)),
    complete,
    parseToolCalls,
  };
}

/** Returns the answer to call number `index` (from 0) of the session. */
function answerTo(answers: Answers, index: number, request: ChatRequest): ScriptEntry {
  if (answers.kind === "default") return defaultAnswer(request);
  const { entries, after } = answers;
  const entry = entries[index];
  if (entry) return entry;
  if (after === "echo") return { text: promptOf(request.messages) };
  if (after === "repeat") return { text: entries.findLast(({ text }) => text)?.text ?? DEFAULT_TEXT };
  const message = `Cannot answer call ${
    index + 1
  }: the script has ${entries.length} entries and after is "error"`;
  return { error: { type: "InvalidRequestError", message } };
}

async function wait(clock: Clock, ms: number, signal: AbortSignal | undefined): Promise<void> {
  try {
    await clock.after(ms, signal);
  } catch (error) {
    throwIfAborted(signal);
    throw error;
  }
}

function throwIfAborted(signal: AbortSignal | undefined): void {
  if (!signal?.aborted) return;
  throw new LLMError("AbortError", "Cannot finish the answer: the call was aborted", {
    provider: "mock",
    cause: signal.reason,
  });
}

/** Returns the calls of a response: its `tool_calls`, else those of its blocks. */
function parseToolCalls(response: ChatResponse): ToolCall[] {
  const calls = response.tool_calls ?? response.content.filter((block) => block.type === "tool_call");
  return calls.map(parseToolCall);
}
