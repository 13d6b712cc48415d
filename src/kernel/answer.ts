/**
 * Reads the answer of a provider: checks its size, normalises it, and freezes what the log, the history and
 * the loop share. Each call has a unique id and one block in the content, so that a loop that stores only the
 * content still pairs calls with results.
 */
import { checkAnswerBounds, isCallBlock } from "../sdk/checks.ts";
import { isObject, jsonEqual, toFrozen, toFrozenObject, toFrozenOwn } from "../sdk/json.ts";
import { toChatResponse, Usage } from "../sdk/messages.ts";
import { methodOf } from "../sdk/snake_case_aliases.ts";
import { parseToolCall } from "../sdk/tools.ts";
import type { ChatResponse, ContentBlock, JsonObject, Provider, ToolCall } from "../sdk/types.ts";
import type { SessionContext } from "./session_context.ts";

/** An answer whose usage is known. */
export interface Answer extends ChatResponse {
  usage: Usage;
}

/**
 * Returns an answer of `provider` in canonical form. Its content, the arguments of its calls, its usage and
 * its metadata are frozen plain data.
 *
 * @param delegated Usage of another provider that answered the call; null if none did.
 * @throws {PreampError} `provider_bad_response` when it has too many tool calls or blocks.
 * @throws {TypeError} when it is neither an object nor a string.
 */
export function readAnswer(
  session: SessionContext,
  provider: Provider,
  received: unknown,
  delegated: Usage | null,
): Answer {
  checkAnswerBounds(received, session.limits); // before any other processing
  const response = toChatResponse(received, methodOf(provider, "parseToolCalls"));
  checkAnswerBounds(response, session.limits); // the provider may have found calls in its content
  const calls = response.tool_calls === undefined ? [] : uniqueIds(session, response.tool_calls);
  const content = arePaired(response.content, calls) ? response.content : withBlocks(response.content, calls);
  const usage = delegated ?? response.usage ?? Usage({});
  response.content = toFrozen(content) as unknown as ContentBlock[]; // the same blocks
  response.usage = toFrozenOwn(usage as unknown as JsonObject) as unknown as Usage; // the same fields
  if (response.metadata !== undefined) response.metadata = toFrozen(response.metadata) as JsonObject;
  if (calls.length > 0) response.tool_calls = freezeCalls(calls, content, response.content);
  return response as Answer; // it has a usage
}

/** Returns calls with frozen arguments: the frozen block's where the provider's block has the same object. */
function freezeCalls(calls: ToolCall[], blocks: ContentBlock[], frozen: ContentBlock[]): ToolCall[] {
  let index = 0;
  for (const call of calls) {
    while (!isCallBlock(blocks[index]!)) index++; // there is one for each call
    const { input } = blocks[index]!;
    const shared = input === call.arguments
      ? frozen[index]!.input as JsonObject
      : toFrozenObject(call.arguments);
    (call as { arguments: JsonObject }).arguments = shared; // its fields are read-only for modules
    Object.freeze(call);
    index++;
  }
  return calls;
}

/** Returns whether content has exactly one `tool_call` block for each call, in order. */
function arePaired(content: readonly ContentBlock[], calls: readonly ToolCall[]): boolean {
  let count = 0;
  for (const block of content) {
    if (!isCallBlock(block)) continue;
    const call = calls[count++];
    if (call === undefined || block.type !== "tool_call" || block.id !== call.id) return false;
    if (block.name !== call.name || !isSameInput(block.input, call.arguments)) return false;
  }
  return count === calls.length;
}

/** Returns whether a block shows the input of its call. Text that is no JSON object is shown as it came. */
function isSameInput(shown: unknown, input: JsonObject): boolean {
  return shown === input || !isObject(shown) || jsonEqual(shown, input);
}

/** Returns content with new blocks for the calls, after all other blocks. */
function withBlocks(content: readonly ContentBlock[], calls: readonly ToolCall[]): ContentBlock[] {
  return [
    ...content.filter((block) => !isCallBlock(block)),
    ...calls.map(({ id, name, arguments: input }) => ({ type: "tool_call", id, name, input })),
  ];
}

/** Returns calls with unique ids: an id that the model repeats within one answer is replaced. */
function uniqueIds({ host }: SessionContext, calls: ToolCall[]): ToolCall[] {
  if (calls.length < 2) return calls;
  const seen = new Set<string>();
  return calls.map((call) => {
    if (!seen.has(call.id)) {
      seen.add(call.id);
      return call;
    }
    return parseToolCall({
      id: host.newId("call"),
      name: call.name,
      arguments: call.invalid_arguments ?? call.arguments,
    });
  });
}
