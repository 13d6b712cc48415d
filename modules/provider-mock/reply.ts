/**
 * Builds answers: the response of a script entry, with blocks, tool calls, finish reason and usage, and
 * streams its blocks. Without a script an arithmetic question calls the tool `calculator`, any other
 * prompt is repeated; the answer depends only on the messages since the prompt.
 */
import {
  type ChatRequest,
  type ContentBlock,
  costOf,
  estimateTokens,
  type JsonObject,
  type Message,
  parseToolCall,
  type Prices,
  requestTokens,
  type StreamDelta,
  textOf,
  ToolCall,
  toolTokens,
  toPlainObject,
  Usage,
} from "preamp/base";
import type { ScriptedCall, ScriptEntry } from "./config.ts";

/** The content of an answer, without usage. */
interface Reply {
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
 * Returns the usage of an answer. Token counts that the entry does not have are estimated. A missing cost is
 * computed from the prices; without prices it is null.
 */
export function usageOf(
  entry: ScriptEntry,
  reply: Reply,
  request: ChatRequest,
  prices: Prices | undefined,
): Usage {
  const scripted: JsonObject = entry.usage ?? {};
  const usage = Usage({
    ...scripted,
    input_tokens: scripted.input_tokens ?? requestTokens(request.messages) + toolTokens(request.tools),
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
 * Streams blocks in order. A tool call is one delta with its id and name; its arguments are not streamed.
 * Other code runs between deltas: each is followed by a microtask, which is cheaper than a timer.
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

/** Maximum code units of a prompt that are searched for an expression. */
const MAX_READ_CHARS = 2_000;

/** Maximum code points of a prompt that are repeated. */
const MAX_ECHO_CHARS = 200;

/** A sequence of numbers, operators and parentheses that starts and ends with a number or a parenthesis. */
const EXPRESSION = /[-−(]*\d(?:[\d\s.()+*/^%×·÷x−-]*[\d)])?/g;

/** An operator with spaces, or one of + * × ÷ ^. It distinguishes arithmetic from dates, ranges and sizes. */
const OPERATOR = /[\d)]\s*[+*×·÷^]\s*[-−(\d]|[\d)]\s+[-−/%x]\s+[(\d]/;

/** Returns the answer to a request: a call of `calculator`, or text. */
export function defaultAnswer(request: ChatRequest): ScriptEntry {
  const { prompt, result } = readTurn(request.messages);
  const source = findExpression(prompt.slice(0, MAX_READ_CHARS));
  if (source === undefined) return { text: echo(prompt, offers(request, "calculator")) };
  if (result !== undefined) return { text: sentence(source, result) };
  if (!offers(request, "calculator")) {
    return { text: `I cannot work out ${source}: this request offers no tool named "calculator".` };
  }
  return { tool_calls: [{ name: "calculator", arguments: { expression: normalise(source) } }] };
}

/** Returns the text of the last message that a person wrote, or an empty text. */
export function promptOf(messages: readonly Message[]): string {
  const message = messages[promptIndex(messages)];
  return message ? textOf(message.content) : "";
}

/** Returns the prompt and the result of the last `calculator` call after it, if any. */
function readTurn(messages: readonly Message[]): { prompt: string; result: string | undefined } {
  const turn = messages.slice(promptIndex(messages) + 1);
  const calls = turn.flatMap((message) => message.role === "assistant" ? callsOf(message) : []);
  const id = calls.findLast(({ name }) => name === "calculator")?.id;
  const answer = turn.find((message) => message.role === "tool" && message.tool_call_id === id);
  return { prompt: promptOf(messages), result: id === undefined ? undefined : textOf(answer?.content ?? "") };
}

function callsOf(message: Message) {
  const blocks = Array.isArray(message.content) ? message.content : [];
  return (message.tool_calls ?? blocks.filter((block) => block.type === "tool_call")).map(parseToolCall);
}

function promptIndex(messages: readonly Message[]): number {
  return messages.findLastIndex((message) => message.role === "user" && !isReminder(message));
}

/**
 * Returns whether a hook or a loop wrote a user message: a hook's message has a source, a loop's has a tag.
 */
function isReminder({ metadata, content }: Message): boolean {
  return metadata?.source === "hook" || textOf(content).trimStart().startsWith("<system-reminder");
}

function offers({ tools, tool_choice }: ChatRequest, name: string): boolean {
  const none = tool_choice === "none" || (typeof tool_choice === "object" && tool_choice.type === "none");
  return !none && (tools ?? []).some((tool) => tool.name === name);
}

/** Returns the first expression in its original spelling, such as `6 × 7`. */
function findExpression(prompt: string): string | undefined {
  for (const [text] of prompt.matchAll(EXPRESSION)) {
    if (OPERATOR.test(text) && isBalanced(text)) return text.trim();
  }
  return undefined;
}

function isBalanced(text: string): boolean {
  let open = 0;
  for (const character of text) {
    if (character === "(") open++;
    else if (character === ")" && --open < 0) return false;
  }
  return open === 0;
}

/** Returns the expression with the calculator's operators, such as `6*7`. */
function normalise(expression: string): string {
  return expression.replace(/\s+/g, "").replace(/[×·x]/g, "*").replaceAll("÷", "/").replaceAll("−", "-");
}

function sentence(source: string, result: string): string {
  const [answer = ""] = result.split("\n\n"); // hooks append text after an empty line
  if (answer.trim() !== "" && Number.isFinite(Number(answer))) return `${source} is ${answer}.`;
  return `I could not work out ${source}: ${answer || "the tool returned nothing"}`;
}

function echo(prompt: string, calculates: boolean): string {
  const text = [...prompt.trim()];
  const cut = text.length > MAX_ECHO_CHARS ? `${text.slice(0, MAX_ECHO_CHARS).join("")}…` : text.join("");
  const hint = calculates ? ' Try "What is 6 × 7?".' : "";
  return `You said: "${cut}". I am provider-mock, a scripted provider without a model.${hint}`;
}
