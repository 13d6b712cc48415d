/**
 * What the vendors' APIs refuse in a request: roles, pairs of calls and results, empty content, reasoning
 * that nothing follows. Each function fails for a body that breaks a documented rule.
 */
import { isObject, type JsonObject } from "preamp";
import type { OllamaMessage } from "../../../modules/provider-ollama/request.ts";
import { assert, assertEquals, assertMatch } from "../../assert.ts";

/** The signature that Google documents for calls that the model did not make. */
const NO_SIGNATURE = "skip_thought_signature_validator";

interface Part extends JsonObject {
  text?: string;
  thoughtSignature?: string;
  functionCall?: { id?: string; name: string; args: unknown };
  functionResponse?: { id?: string; name: string; response: unknown };
}

/** A message of the Gemini API. */
export interface Content {
  role: string;
  parts: Part[];
}

const NAME = /^[a-zA-Z0-9_-]{1,64}$/;

/** Checks the body of the Messages API. */
export function checkAnthropic(body: JsonObject): void {
  const messages = joined(body.messages as AnthropicMessage[]);
  const blocks = messages.flatMap(({ content }) => content);
  const system = body.system as JsonObject[] ?? [];
  assertEquals(
    messages.map(({ role }) => role),
    messages.map((_, index) => index % 2 === 0 ? "user" : "assistant"),
  );
  assert(messages.at(-1)!.role === "user", "ends with an assistant turn: newer models refuse it");
  const marked = [...body.tools as JsonObject[] ?? [], ...system, ...blocks].filter((one) =>
    one.cache_control
  );
  assert(marked.length <= 4, `${marked.length} breakpoints`);
  assert(marked.every((block) => !isThinking(block)));
  const ids = blocks.flatMap(({ type, id }) => type === "tool_use" ? [String(id)] : []);
  assertEquals(new Set(ids).size, ids.length);
  assert(ids.every((id) => /^[a-zA-Z0-9_-]+$/.test(id)));
  messages.forEach(({ role, content }, index) => {
    assert(content.length > 0);
    const calls = content.filter(({ type }) => type === "tool_use");
    if (role === "assistant") assert(!isThinking(content.at(-1)!), "ends with thinking");
    else assert(content.every((block) => block.type !== "tool_use" && !isThinking(block)));
    const results = messages[index + 1]?.content.slice(0, calls.length) ?? [];
    assertEquals(results.map(({ tool_use_id }) => tool_use_id), calls.map(({ id }) => id));
    const all = content.filter(({ type }) => type === "tool_result");
    const before = messages[index - 1]?.content.filter(({ type }) => type === "tool_use") ?? [];
    assertEquals(all.length, before.length);
  });
  for (const block of [...system, ...blocks]) checkAnthropicBlock(block);
  assert(JSON.stringify(body).isWellFormed());
}

interface AnthropicMessage {
  role: string;
  content: JsonObject[];
}

/** Joins consecutive messages of one role, as the API does. */
function joined(messages: readonly AnthropicMessage[]): AnthropicMessage[] {
  const list: AnthropicMessage[] = [];
  for (const { role, content } of messages) {
    assert(content.length > 0, "a message without content");
    const last = list.at(-1);
    if (last?.role === role) last.content.push(...content);
    else list.push({ role, content: [...content] });
  }
  return list;
}

function isThinking({ type }: JsonObject): boolean {
  return type === "thinking" || type === "redacted_thinking";
}

function checkAnthropicBlock(block: JsonObject): void {
  const { type, text, name, input, source, provider } = block;
  assertEquals(provider, undefined);
  if (type === "text") assert(String(text).trim() !== "", "text blocks must have text");
  else if (type === "tool_use") {
    assert(/^[a-zA-Z0-9_-]{1,128}$/.test(String(name)) && isObject(input));
  } else if (type === "image" || type === "document") {
    const { type: kind } = source as JsonObject;
    assert(["base64", "url", "text", "file"].includes(String(kind)));
  } else if (type === "thinking") assert(typeof block.thinking === "string" && block.signature);
  else if (type === "redacted_thinking") assert(block.data);
  else if (type === "tool_result") {
    const { content } = block;
    if (Array.isArray(content)) content.forEach(checkAnthropicBlock);
  } else assert(/^server_tool_use$|_tool_result$/.test(String(type)), `unexpected ${type}`);
}

/** Checks the body of the Responses API. */
export function checkResponses({ input, instructions }: JsonObject): void {
  assert(instructions === undefined || String(instructions).trim() !== "");
  const items = input as JsonObject[];
  const open = new Set<unknown>();
  const seen = new Set<unknown>();
  for (const [index, item] of items.entries()) {
    if (item.type === "function_call") {
      assertMatch(String(item.call_id), NAME);
      assertMatch(String(item.name), NAME);
      assert(!seen.has(item.call_id));
      JSON.parse(String(item.arguments));
      seen.add(item.call_id);
      open.add(item.call_id);
    } else if (item.type === "function_call_output") {
      assert(open.delete(item.call_id));
      if (typeof item.output !== "string") checkContent(item.output, "input_text");
    } else if (item.type === "reasoning") {
      assert(item.encrypted_content, "reasoning that is not stored needs its content");
      const next = items.slice(index).find(({ type }) => type !== "reasoning");
      const is_own = next?.role === "assistant" ||
        (next?.role === undefined && next?.type !== "function_call_output");
      assert(next && is_own, "reasoning without the item that follows it");
    } else if (item.role === undefined) assertMatch(String(item.type), /_call$/);
    // an answer's text may follow its calls: items keep the order in which the API gave them
    else if (item.role === "assistant") assert(String(item.content).trim() !== "");
    else {
      assertEquals(open.size, 0);
      assert(["user", "developer", "system"].includes(String(item.role)));
      if (item.role === "user") checkContent(item.content, "input_text");
    }
  }
  assertEquals(open.size, 0);
  assert(items.at(-1)?.role === "user" || items.at(-1)?.type === "function_call_output");
}

/** Checks the body of Chat Completions, as its strictest servers do. */
export function checkChat({ messages }: JsonObject): void {
  const list = messages as JsonObject[];
  const seen = new Set<unknown>();
  let open: unknown[] = [];
  let previous: unknown;
  for (const [index, message] of list.entries()) {
    const { role, content, tool_calls, tool_call_id } = message;
    if (role === "tool") {
      assertEquals(open.shift(), tool_call_id);
      assertEquals(typeof content, "string");
      previous = role;
      continue;
    }
    assertEquals(open, []);
    assert(role !== previous, `two messages of the ${role} in a row`);
    previous = role;
    if (role === "system") {
      assertEquals(index, 0);
      assert(String(content).trim() !== "");
    } else if (role === "assistant") {
      const calls = (tool_calls ?? []) as { id: string; function: { name: string; arguments: string } }[];
      for (const call of calls) {
        assertMatch(call.id, NAME);
        assertMatch(call.function.name, NAME);
        assert(!seen.has(call.id));
        JSON.parse(call.function.arguments);
        seen.add(call.id);
      }
      assert(calls.length > 0 || typeof content === "string" && content !== "", "no content and no calls");
      open = calls.map(({ id }) => id);
    } else {
      assertEquals(role, "user");
      if (typeof content === "string") assert(content.trim() !== "");
      else checkContent(content, "text");
    }
  }
  assertEquals(open, []);
  assert(["user", "tool"].includes(String(list.at(-1)?.role)));
}

function checkContent(content: unknown, text_type: string): void {
  assert(Array.isArray(content) && content.length > 0);
  for (const part of content) if (part.type === text_type) assert(part.text.trim() !== "");
}

const KINDS = [
  "text",
  "functionCall",
  "functionResponse",
  "inlineData",
  "fileData",
  "executableCode",
] as const;

/** Checks the contents of `generateContent`; `signs`: whether the first call of a turn needs a signature. */
export function checkGemini(body: JsonObject, signs: boolean): void {
  const contents = joinedContents(body.contents as Content[]);
  assertEquals(
    contents.map(({ role }) => role),
    contents.map((_, index) => index % 2 === 0 ? "user" : "model"),
  );
  assertEquals(contents.at(-1)!.role, "user");
  contents.forEach(({ role, parts }, index) => {
    assert(parts.length > 0);
    for (const part of parts) checkPart(part, role);
    const calls = parts.flatMap(({ functionCall }) => functionCall ?? []);
    const answers = contents[index + 1]?.parts.flatMap(({ functionResponse }) => functionResponse ?? []) ??
      [];
    if (role === "model") {
      assertEquals(answers.map(({ id, name }) => [id, name]), calls.map(({ id, name }) => [id, name]));
      const first = parts.find(({ functionCall }) => functionCall);
      if (signs && first) assert(first.thoughtSignature, "the first call has no signature");
      if (!signs) assert(parts.every(({ thoughtSignature }) => thoughtSignature !== NO_SIGNATURE));
    }
  });
  assertEquals(contents[0]!.parts.some(({ functionResponse }) => functionResponse), false);
}

/** Joins consecutive messages of one role, as the API does. */
function joinedContents(contents: readonly Content[]): Content[] {
  const list: Content[] = [];
  for (const { role, parts } of contents) {
    assert(parts.length > 0);
    if (list.at(-1)?.role === role) list.at(-1)!.parts.push(...parts);
    else list.push({ role, parts: [...parts] });
  }
  return list;
}

function checkPart(part: Part, role: Content["role"]): void {
  const kinds = KINDS.filter((kind) => (part as JsonObject)[kind] !== undefined);
  assertEquals(kinds.length, 1, JSON.stringify(part));
  if (part.functionCall) assertEquals([role, typeof part.functionCall.args], ["model", "object"]);
  if (part.functionResponse) assertEquals([role, typeof part.functionResponse.response], ["user", "object"]);
  if (part.text === undefined) return;
  assert(part.text.trim() !== "" || part.thoughtSignature !== undefined, "a text that is empty");
  assert(part.text.isWellFormed());
}

/** Checks the messages of `/api/chat`. */
export function checkOllama(body: JsonObject): void {
  const messages = body.messages as OllamaMessage[];
  const [first] = messages;
  const turns = first?.role === "system" ? messages.slice(1) : messages;
  assertEquals(turns[0]?.role, "user");
  assert(turns.at(-1)?.role === "user" || turns.at(-1)?.role === "tool");
  /** Calls without a result yet. */
  let open: string[] = [];
  for (const message of turns) {
    assert(message.content.isWellFormed());
    if (message.role === "tool") {
      assertEquals(message.tool_call_id, open.shift());
      assert(message.tool_name);
      continue;
    }
    assertEquals(open, []);
    assert(message.role === "user" || message.role === "assistant");
    assert(message.content !== "" || message.images || message.tool_calls || message.thinking);
    open = (message.tool_calls ?? []).map(({ id }) => id);
    for (const image of message.images ?? []) Uint8Array.fromBase64(image);
  }
  assertEquals(open, []);
}
