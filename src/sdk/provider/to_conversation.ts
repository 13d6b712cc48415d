/**
 * Makes the conversation of a request from its messages: roles, pairs of calls and results, valid ids and
 * text.
 */
import { isCallBlock } from "../checks.ts";
import { isObject, type JsonObject, toPlain } from "../json.ts";
import type { ContentBlock } from "../content_blocks.ts";
import { type Message, textOf, toBlocks } from "../messages.ts";
import { wellFormed } from "../well_formed.ts";
import {
  type AssistantPart,
  type Conversation,
  type MediaPart,
  mediaPart,
  type Repair,
  type TextPart,
  type ToolCallPart,
  type ToolResultPart,
  type Turn,
  type UserPart,
} from "./conversation.ts";

/** Text of the user turn that is added before or after an assistant turn that begins or ends a history. */
const CONTINUE = "Continue.";
const NO_RESULT = "Error: this call has no result, because it was interrupted.";

/** Result of {@link toConversation}. */
export interface ConversationResult {
  /** The conversation. */
  conversation: Conversation;
  /** Calls for which a result was added. */
  repairs: Repair[];
}

/**
 * Returns the conversation of a request. Any list of messages has one:
 *
 * - Leading system and developer messages become `system`, later ones user text in `<system>` tags.
 * - A call without a result gets one that says so. A result without a call becomes user text. A result may be
 *   a message of the role tool, or a block of a user message.
 * - Repeated or invalid ids of calls are replaced, in the call and its result alike.
 * - Consecutive messages of one side are joined. White space alone, empty messages, and thinking of another
 *   provider are left out.
 *
 * @param provider Value of `provider` on blocks that this provider wrote.
 */
export function toConversation(history: readonly Message[], provider: string): ConversationResult {
  const messages = history.some(hasResults) ? history.flatMap(withoutResults) : history;
  const first = messages.findIndex(({ role }) => role !== "system" && role !== "developer");
  const leading = first === -1 ? messages : messages.slice(0, first);
  const builder = new Builder(first === -1 ? [] : messages.slice(first), provider);
  return {
    conversation: {
      system: leading.flatMap((message) => withCache(textParts(message), message)),
      turns: builder.build(),
    },
    repairs: builder.repairs,
  };
}

/** The results with one id, by their places in the history. */
interface Results {
  readonly places: number[];
  /** Index of the first result that no call has passed. */
  next: number;
}

/** A call and the message with its result. */
interface OpenCall {
  readonly call: ToolCallPart;
  readonly result: Message | undefined;
}

class Builder {
  readonly repairs: Repair[] = [];
  readonly #messages: readonly Message[];
  readonly #provider: string;
  readonly #turns: { role: "user" | "assistant"; parts: (UserPart | AssistantPart)[] }[] = [];
  /** Results by the id of their call. */
  readonly #results = new Map<string, Results>();
  /** Places of results that have a call. */
  readonly #taken = new Set<number>();
  readonly #used_ids = new Set<string>();
  /** Number of the last replacement by the id that it replaces. */
  readonly #repeated = new Map<string, number>();
  /** Calls of the last turn, whose results are added before anything else. */
  #open: OpenCall[] = [];

  constructor(messages: readonly Message[], provider: string) {
    this.#messages = messages;
    this.#provider = provider;
    messages.forEach((message, at) => {
      const id = resultId(message);
      if (id === undefined) return;
      const results = this.#results.get(id);
      if (results) results.places.push(at);
      else this.#results.set(id, { places: [at], next: 0 });
    });
  }

  build(): Turn[] {
    this.#messages.forEach((message, at) => this.#add(message, at));
    this.#answerCalls();
    if (this.#turns[0]?.role !== "user") this.#turns.unshift({ role: "user", parts: [text(CONTINUE)] });
    if (this.#turns.at(-1)!.role !== "user") this.#push("user", [text(CONTINUE)]);
    return this.#turns as Turn[]; // parts are those of the role, see #push
  }

  #add(message: Message, at: number): void {
    switch (message.role) {
      case "assistant":
        return this.#addAssistant(message, at);
      case "tool":
      case "function":
        return this.#addOrphan(message, at);
      case "user":
        return this.#push("user", withCache(contentParts(toBlocks(message.content)), message));
      default: {
        const inner = textOf(message.content).trim();
        const parts = inner === "" ? [] : [text(`<system>\n${inner}\n</system>`)];
        return this.#push("user", withCache(parts, message));
      }
    }
  }

  #addAssistant(message: Message, at: number): void {
    const parts: AssistantPart[] = [];
    const calls: OpenCall[] = [];
    const addCall = (call: JsonObject) => {
      const part = this.#callPart(call);
      parts.push(part);
      calls.push({ call: part, result: this.#takeResult(String(call.id ?? ""), at) });
    };
    const in_content = new Set<string>();
    for (const block of toBlocks(message.content)) {
      if (isCallBlock(block)) {
        in_content.add(String(block.id));
        addCall(block);
      } else parts.push(...this.#assistantParts(block));
    }
    const stored: unknown[] = Array.isArray(message.tool_calls) ? message.tool_calls : [];
    for (const call of stored) if (isObject(call) && !in_content.has(String(call.id))) addCall(call);
    this.#push("assistant", withCache(parts, message), calls);
  }

  #assistantParts(block: ContentBlock): AssistantPart[] {
    const own = ownBlock(block, this.#provider);
    if (block.type !== "text") return own ? [{ type: "native", block: own }] : [];
    const part = textPart(block.text);
    return part ? [own ? { ...part, block: own } : part] : [];
  }

  #callPart(call: JsonObject): ToolCallPart {
    const input = call.input ?? call.arguments;
    const own = ownBlock(call, this.#provider);
    return {
      type: "tool_call",
      id: this.#newId(String(call.id ?? "")),
      name: validName(call.name ?? call.tool),
      input: isObject(input) ? wellFormed(input) : {},
      ...(own ? { block: own } : {}),
    };
  }

  /** Returns the first result of this id after the call, which no other call has. */
  #takeResult(id: string, at: number): Message | undefined {
    const results = this.#results.get(id);
    if (!results) return undefined;
    const { places } = results;
    while (results.next < places.length && places[results.next]! < at) results.next++;
    const place = places[results.next++];
    if (place === undefined) return undefined;
    this.#taken.add(place);
    return this.#messages[place];
  }

  /** Adds a result without a call as text. */
  #addOrphan(message: Message, at: number): void {
    if (this.#taken.has(at)) return;
    const output = resultContent(message.content);
    const label = text(`Result of the tool ${validName(message.name)}:`);
    const parts = typeof output === "string" ? textPart(output) : output;
    this.#push("user", withCache([label, ...(parts ? [parts].flat() : [])], message));
  }

  /** Adds parts after the results of open calls; `calls` are the open calls among the parts. */
  #push(
    role: "user" | "assistant",
    parts: readonly (UserPart | AssistantPart)[],
    calls: OpenCall[] = [],
  ): void {
    if (parts.length === 0) return;
    this.#answerCalls();
    const last = this.#turns.at(-1);
    if (last?.role === role) last.parts.push(...parts);
    else this.#turns.push({ role, parts: [...parts] });
    this.#open = calls;
  }

  #answerCalls(): void {
    if (this.#open.length === 0) return;
    this.#turns.push({ role: "user", parts: this.#open.map((open) => this.#resultPart(open)) });
    this.#open = [];
  }

  #resultPart({ call, result }: OpenCall): ToolResultPart {
    const { id: tool_call_id, name } = call;
    if (!result) {
      this.repairs.push({ tool_call_id, tool_name: name });
      return { type: "tool_result", tool_call_id, name, content: NO_RESULT, is_error: true };
    }
    const content = resultContent(result.content);
    const is_error = result.is_error === true;
    const part: ToolResultPart = { type: "tool_result", tool_call_id, name, content, is_error };
    return hasBreakpoint(result) ? { ...part, cache: true } : part;
  }

  #newId(id: string): string {
    const base = id.replace(/[^a-zA-Z0-9_-]/g, "_").slice(0, 56) || "call";
    let unique = /^[a-zA-Z0-9_-]{1,64}$/.test(id) ? id : base;
    while (this.#used_ids.has(unique)) {
      const count = (this.#repeated.get(base) ?? 1) + 1;
      this.#repeated.set(base, count);
      unique = `${base}_${count}`;
    }
    this.#used_ids.add(unique);
    return unique;
  }
}

function hasResults({ role, content }: Message): boolean {
  return role === "user" && Array.isArray(content) && content.some((block) => block?.type === "tool_result");
}

/** Returns the results in a user message as messages of their own, before the rest of it. */
function withoutResults(message: Message): Message[] {
  if (!hasResults(message)) return [message];
  const blocks = toBlocks(message.content);
  const results = blocks.filter(({ type }) => type === "tool_result").map((block: JsonObject): Message => ({
    role: "tool",
    tool_call_id: String(block.tool_call_id ?? block.tool_use_id ?? ""),
    content: (block.output ?? block.content ?? "") as Message["content"], // any value: see resultContent
    is_error: block.is_error,
  }));
  return [...results, { ...message, content: blocks.filter(({ type }) => type !== "tool_result") }];
}

function resultId({ role, tool_call_id }: Message): string | undefined {
  return (role === "tool" || role === "function") && typeof tool_call_id === "string"
    ? tool_call_id
    : undefined;
}

/** Returns a block that this provider wrote, without `provider`; undefined for blocks of others. */
function ownBlock(block: JsonObject, provider: string): JsonObject | undefined {
  if (block.provider !== provider) return undefined;
  const { provider: _, ...own } = block;
  return own;
}

function validName(name: unknown): string {
  return String(name ?? "").replace(/[^a-zA-Z0-9_-]/g, "_").slice(0, 64) || "unknown";
}

function text(value: string): TextPart {
  return { type: "text", text: value.toWellFormed() };
}

function textPart(value: unknown): TextPart | undefined {
  return typeof value === "string" && value.trim() !== "" ? text(value) : undefined;
}

function textParts({ content }: Message): TextPart[] {
  return toBlocks(content).flatMap((block) => block.type === "text" ? textPart(block.text) ?? [] : []);
}

function contentParts(blocks: readonly ContentBlock[]): (TextPart | MediaPart)[] {
  return blocks.flatMap((block) => contentPart(block) ?? []);
}

/** Returns a block of a user's message or of a tool result as a part. */
function contentPart(block: ContentBlock): TextPart | MediaPart | undefined {
  if (block.type === "text") return textPart(block.text);
  return mediaPart(block) ??
    text(`[A block of type ${JSON.stringify(String(block.type).slice(0, 40))} is left out.]`);
}

function resultContent(content: unknown): ToolResultPart["content"] {
  if (typeof content === "string") return content.toWellFormed();
  const blocks = toBlocks(content);
  if (blocks.length === 0) return isObject(content) ? JSON.stringify(toPlain(content)) : "";
  const parts = contentParts(blocks);
  return parts.every((part) => part.type === "text") ? parts.map((part) => part.text).join("\n\n") : parts;
}

function hasBreakpoint({ metadata }: Message): boolean {
  return isObject(metadata) && isObject(metadata.cache_control);
}

/** Returns the parts of a message with its cache breakpoint on the last part that can have one. */
function withCache<Part extends UserPart | AssistantPart>(parts: Part[], message: Message): Part[] {
  if (!hasBreakpoint(message)) return parts;
  const last = parts.findLastIndex(({ type }) => type !== "native");
  if (last === -1) return parts;
  const marked = parts.slice();
  marked[last] = { ...parts[last]!, cache: true };
  return marked;
}
