/**
 * Converts stored messages to valid messages of requests. History comes from loops, sandboxed modules and old
 * transcripts, so fields may be missing or of the wrong type. Every function is pure.
 */
import {
  type ContentBlock,
  isObject,
  type JsonObject,
  type Message,
  methodOf,
  type Role,
  toBlocks,
  toFrozenObject,
} from "../base.ts";
import { isCallBlock } from "../checks.ts";

/**
 * Returns a message as frozen plain data. Its tokens are counted once, and its unchanged parts are shared.
 */
export function frozenMessage(message: Message): Message {
  return toFrozenObject(message) as unknown as Message; // the same fields
}

const ROLES: ReadonlySet<unknown> = new Set<Role>([
  "system",
  "developer",
  "user",
  "assistant",
  "function",
  "tool",
]);

/** A call that an assistant message makes. */
export interface CallName {
  readonly id: string;
  readonly name: string;
}

/**
 * Returns the frozen message in valid form; the stored object itself when it is valid. Missing content
 * becomes empty, content of another type becomes blocks or text. Keys that start with `_` (marks of other
 * context managers) are removed. Returns null for an unknown role, which no provider accepts.
 */
export function toRequestMessage(stored: Message): Message | null {
  const fields: JsonObject = stored;
  if (!ROLES.has(fields.role)) return null;
  const content = contentOf(fields.content);
  const calls = callsField(fields.tool_calls);
  if (content === fields.content && calls === fields.tool_calls && !isMarked(fields)) return stored;
  const message: JsonObject = { ...fields, content };
  for (const key of Object.keys(fields)) if (key.startsWith("_")) delete message[key];
  if (calls) message.tool_calls = calls;
  else delete message.tool_calls;
  return frozenMessage(message as Message); // role and content were checked above
}

function isMarked(fields: JsonObject): boolean {
  for (const key in fields) if (key.charCodeAt(0) === UNDERSCORE) return true; // perf: runs for every message
  return false;
}

const UNDERSCORE = 0x5f;

function contentOf(content: unknown): string | ContentBlock[] {
  if (typeof content === "string") return content;
  if (content === null || content === undefined) return "";
  if (Array.isArray(content)) {
    const sound = content.every((block) => isObject(block) && typeof block.type === "string");
    return sound ? content : toBlocks(content);
  }
  const blocks = toBlocks(content);
  return blocks.length > 0 ? blocks : typeof content === "object" ? JSON.stringify(content) : String(content);
}

function callsField(calls: unknown): unknown[] | undefined {
  if (!Array.isArray(calls)) return undefined;
  return calls.every(isObject) ? calls : calls.filter(isObject);
}

/**
 * Returns the calls of an assistant message in order: `tool_calls`, then content blocks that are not among
 * them.
 */
export function callsOf(message: Message): CallName[] {
  if (message.role !== "assistant") return [];
  const calls = (message.tool_calls ?? []).map((call) => callName(call as unknown as JsonObject)); // may have any format
  if (typeof message.content === "string") return calls;
  const listed = calls.slice();
  let ids: Set<string> | null = null;
  let position = 0;
  for (let index = 0; index < message.content.length; index++) { // perf: an iterator allocates an object a step
    const block = message.content[index]!; // below the length
    if (!isCallBlock(block)) continue;
    if (idOf(block.id) === listed[position++]?.id) continue; // most blocks are in the order of the calls
    ids ??= new Set(listed.map(({ id }) => id));
    if (!ids.has(idOf(block.id))) calls.push(callName(block));
  }
  return calls;
}

function callName(call: JsonObject): CallName {
  const named = isObject(call.function) ? call.function : call;
  return { id: idOf(call.id), name: String(named.name ?? named.tool ?? "") };
}

function idOf(id: unknown): string {
  return typeof id === "string" || typeof id === "number" ? String(id) : "";
}

/**
 * Returns the ids of the calls that a message answers: a tool message answers one; a user message of
 * tool_result blocks answers several.
 */
export function answersOf(message: Message): string[] {
  if (message.role === "tool") return [idOf(message.tool_call_id)];
  if (message.role !== "user" || typeof message.content === "string" || message.content.length === 0) {
    return [];
  }
  if (!message.content.every((block) => block.type === "tool_result")) return [];
  return message.content.map((block: JsonObject) => idOf(block.tool_call_id ?? block.tool_use_id));
}

/** Returns true for a user message of a person: not a hook's reminder and not a compaction notice. */
export function isHuman(message: Message): boolean {
  if (message.role !== "user") return false;
  const metadata = isObject(message.metadata) ? message.metadata : {};
  return metadata.source !== "hook" && metadata.source !== "context-compaction" &&
    metadata.hook_name === undefined && metadata.ephemeral !== true;
}

/** Returns true for a message with provider state that must not be left out. */
export function isPinned(message: Message): boolean {
  return isObject(message.metadata) && message.metadata["openai:tool_search_items"] !== undefined;
}

/** Returns the result in a view for a call that never got one. */
export function missingResult(call: CallName): Message {
  return frozenMessage({
    role: "tool",
    tool_call_id: call.id,
    name: call.name,
    content: `Error: the call of ${call.name || "this tool"} has no result, it was interrupted`,
    metadata: { source: "context-repair" },
  });
}

/** Capabilities of providers that support breakpoints, in `getInfo().capabilities`. */
const CAPABILITIES: readonly string[] = ["cache_control", "prompt_caching"];

const with_breakpoint = new WeakMap<Message, Message>();

export function takesBreakpoints(provider: unknown): boolean {
  const info = infoOf(provider, "getInfo");
  const capabilities = isObject(info) && Array.isArray(info.capabilities) ? info.capabilities : [];
  return capabilities.some((name) => CAPABILITIES.includes(name));
}

/** Returns what a method of a provider returns; null when it fails, and without such a method. */
export function infoOf(provider: unknown, method: "getInfo" | "getModelInfo"): unknown {
  try {
    return methodOf(provider, method)?.() ?? null;
  } catch {
    return null;
  }
}

/**
 * Returns the frozen message with a breakpoint after it, where a provider's prompt cache may end; the same
 * object for the same message. Whether a message has one is decided in its first view and never changes,
 * because moving marks would change the cached prefix.
 */
export function withBreakpoint(message: Message): Message {
  let copy = with_breakpoint.get(message);
  if (!copy) {
    const metadata = { ...message.metadata, cache_control: { type: "ephemeral" } };
    with_breakpoint.set(message, copy = frozenMessage({ ...message, metadata }));
  }
  return copy;
}

/** Returns the system prompt of the next request. The request fails when it throws or returns no text. */
export type SystemPromptFactory = () => string | Promise<string>;

/**
 * Resolves to the factory's prompt as a message.
 *
 * @throws {TypeError} when the factory returns no text; any error of the factory.
 */
export async function promptOf(factory: SystemPromptFactory): Promise<Message> {
  const content: unknown = await factory();
  if (typeof content !== "string") {
    throw new TypeError(
      `Cannot read the system prompt: the factory must return text: received ${typeof content}`,
    );
  }
  return frozenMessage({ role: "system", content, metadata: { source: "factory" } });
}
