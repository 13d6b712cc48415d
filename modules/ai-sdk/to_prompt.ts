/** Converts a call to the options of the AI SDK's LanguageModel specification, version 4. */
import type {
  LanguageModelV4CallOptions,
  LanguageModelV4FilePart,
  LanguageModelV4FunctionTool,
  LanguageModelV4Message,
  LanguageModelV4ProviderTool,
  LanguageModelV4TextPart,
  LanguageModelV4ToolResultPart,
  SharedV4ProviderOptions,
} from "@ai-sdk/provider";
import { isObject, type JsonObject, type ToolSpec } from "preamp/base";
import {
  type AssistantPart,
  type CachedPart,
  type CallSettings,
  type Conversation,
  type Degradations,
  type MediaPart,
  textOfFile,
  type TextPart,
  type ToolResultPart,
  type UserPart,
} from "preamp/provider";
import type { Names } from "./names.ts";
import type { Vendor } from "./vendor.ts";

type Effort = NonNullable<LanguageModelV4CallOptions["reasoning"]>;
type Format = NonNullable<LanguageModelV4CallOptions["responseFormat"]>;
type Messages = LanguageModelV4Message[];
type Assistant = Extract<LanguageModelV4Message, { role: "assistant" }>["content"][number];
type User = LanguageModelV4TextPart | LanguageModelV4FilePart;
type Tool = LanguageModelV4FunctionTool | LanguageModelV4ProviderTool;

const EFFORTS: ReadonlySet<string> = new Set(["none", "minimal", "low", "medium", "high", "xhigh", "max"]);
/** Types of a block that only its own vendor understands. */
export const CALL_BLOCK = "provider_tool_call";
export const RESULT_BLOCK = "provider_tool_result";

/** What the request of one call depends on. */
export interface PromptContext {
  readonly vendor: Vendor;
  readonly names: Names;
  /** Receives what the request leaves out. */
  readonly degradations: Degradations;
}

/**
 * Returns the options of a call.
 *
 * @param format Form of the answer in the place of the call's own.
 */
export function toOptions(
  call: CallSettings,
  context: PromptContext,
  format?: Format,
): LanguageModelV4CallOptions {
  const { vendor, names, degradations } = context;
  const { tools, stop, temperature, top_p, reasoning_effort: effort } = call;
  const own = vendor.options?.(call, degradations) ?? {};
  const responseFormat = format ?? own.responseFormat ?? formatOf(call, vendor);
  const offered = tools.flatMap((tool) => toTools(tool, context));
  const options: LanguageModelV4CallOptions = {
    prompt: toPrompt(instructed(call, responseFormat, vendor), {
      ...context,
      mark: vendor.breakpoint?.(call.model),
    }),
    maxOutputTokens: call.max_output_tokens,
    ...(temperature === undefined ? {} : { temperature }),
    ...(top_p === undefined ? {} : { topP: top_p }),
    ...(stop && stop.length > 0 ? { stopSequences: stop.filter((text) => text.trim() !== "") } : {}),
    ...(effort !== undefined && EFFORTS.has(effort) ? { reasoning: effort as Effort } : {}),
    ...(offered.length > 0 ? { tools: offered, ...choiceOf(call, names) } : {}),
    ...own,
    ...(responseFormat === undefined ? {} : { responseFormat }),
  };
  if (options.stopSequences?.length === 0) delete options.stopSequences; // packages warn of any list
  return options;
}

function formatOf({ response_format: format }: CallSettings, vendor: Vendor): Format | undefined {
  if (format === undefined || format.type === "text") return undefined;
  if (format.type === "json") return { type: "json" };
  const schema = format.schema as JsonObject;
  return { type: "json", name: nameOf(schema), schema: vendor.schema?.(schema) ?? schema };
}

function nameOf({ title }: JsonObject): string {
  const name = typeof title === "string" ? title.replace(/[^a-zA-Z0-9_-]/g, "_").slice(0, 64) : "";
  return name || "answer";
}

/** Returns the conversation with an instruction for the part of a format that the request does not state. */
function instructed(
  { conversation, response_format: wanted }: CallSettings,
  format: Format | undefined,
  { instructs }: Vendor,
): Conversation {
  if (!instructs || !wanted || wanted.type === "text" || format?.type === "json" && format.schema) {
    return conversation;
  }
  // OpenAI refuses JSON without a schema when no message contains the word
  if (wanted.type === "json" && /json/i.test(JSON.stringify(conversation))) return conversation;
  const schema = wanted.type === "json_schema"
    ? ` It must match this JSON Schema:\n${JSON.stringify(wanted.schema)}`
    : "";
  const text = `Answer with JSON alone: no other text, no code fence.${schema}`;
  return { ...conversation, system: [...conversation.system, { type: "text", text }] };
}

interface Context extends PromptContext {
  /** Option that marks the end of a cached prefix. */
  readonly mark: JsonObject | undefined;
}

function toPrompt({ system, turns }: Conversation, context: Context): Messages {
  const unpaired = unpairedBlocks(turns);
  const isPaired = (part: AssistantPart) => part.type !== "native" || !unpaired.has(part.block);
  const messages = systemMessages(system, context);
  for (const turn of turns) {
    const last = messages.at(-1);
    const added = turn.role === "assistant"
      ? assistantMessages(turn.parts.filter(isPaired), context)
      : userMessages(turn.parts, context);
    // nothing may be left of the turn between them, and some servers refuse two messages of the user in a row
    if (last?.role === "user" && added[0]?.role === "user") {
      last.content = joined([...last.content, ...added.shift()!.content as User[]], context);
    }
    messages.push(...added);
  }
  keepBreakpoints(messages, context);
  return messages;
}

/**
 * Returns the blocks of the vendor's own tools that it refuses: calls without a result, such as those of an
 * answer that was cut off, and results without a call, such as after a compaction. Beside calls of the plan's
 * tools in the last answer, the result is in the next answer.
 */
function unpairedBlocks(turns: Conversation["turns"]): ReadonlySet<JsonObject> {
  const open = new Map<unknown, JsonObject>();
  const unpaired = new Set<JsonObject>();
  for (const { parts } of turns) {
    for (const part of parts) {
      if (part.type !== "native") continue;
      if (part.block.type === CALL_BLOCK) open.set(part.block.id, part.block);
      else if (part.block.type === RESULT_BLOCK && !open.delete(part.block.id)) unpaired.add(part.block);
    }
  }
  const last = turns.findLast(({ role }) => role === "assistant")?.parts ?? [];
  const is_pending = last.some(({ type }) => type === "tool_call");
  for (const block of open.values()) {
    if (!is_pending || !last.some((part) => part.type === "native" && part.block === block)) {
      unpaired.add(block);
    }
  }
  return unpaired;
}

/**
 * Returns the system prompt: one message unless a breakpoint is in it, because many servers take one only.
 */
function systemMessages(parts: readonly TextPart[], context: Context): Messages {
  const { mark } = context;
  if (parts.length === 0) return [];
  if (!mark || !parts.some(({ cache }) => cache)) {
    return [{ role: "system", content: parts.map(({ text }) => text).join("\n\n") }];
  }
  return parts.map((part) => ({ role: "system", content: part.text, ...cached(part, context) }));
}

/** Returns texts as one where no breakpoint needs them apart: some servers take a text only. */
function joined(parts: readonly User[], { mark }: Context): User[] {
  if (mark) return [...parts];
  const list: User[] = [];
  for (const part of parts) {
    const last = list.at(-1);
    if (part.type === "text" && last?.type === "text") {
      list[list.length - 1] = { ...last, text: `${last.text}\n\n${part.text}` };
    } else list.push(part);
  }
  return list;
}

function userMessages(parts: readonly UserPart[], context: Context): Messages {
  const results: LanguageModelV4ToolResultPart[] = [];
  const after: (TextPart | MediaPart)[] = [];
  for (const part of parts) {
    if (part.type === "tool_result") results.push(toResult(part, after, context));
    else after.push(part);
  }
  const content = joined(after.map((part) => toContent(part, context)), context);
  return [
    ...(results.length > 0 ? [{ role: "tool" as const, content: results }] : []),
    ...(content.length > 0 ? [{ role: "user" as const, content }] : []),
  ];
}

/** @param after Receives images and files of a result for an API whose results are texts. */
function toResult(
  part: ToolResultPart,
  after: (TextPart | MediaPart)[],
  context: Context,
): LanguageModelV4ToolResultPart {
  const { tool_call_id: toolCallId, name, content, is_error } = part;
  const media = typeof content === "string" ? [] : content.filter(({ type }) => type !== "text");
  const texts = typeof content === "string"
    ? [content]
    : content.flatMap((one) => one.type === "text" ? [one.text] : []);
  const apart = media.length > 0 && context.vendor.is_chat === true;
  if (apart) {
    texts.push("(The images and files of this result follow.)");
    after.push(
      { type: "text", text: `Images and files of the result of ${name} (${toolCallId}):` },
      ...media,
    );
  }
  return {
    type: "tool-result",
    toolCallId,
    toolName: context.names.toolIn(name),
    output: typeof content === "string" || media.length === 0 || apart
      ? { type: is_error ? "error-text" : "text", value: texts.join("\n\n") }
      : { type: "content", value: toContents(content, context) },
    ...(media.length > 0 || texts.some((text) => text.trim() !== "") ? cached(part, context) : {}),
  };
}

/** Returns the parts of a result; for an API with one text a result, its texts are one part at the start. */
function toContents(content: readonly (TextPart | MediaPart)[], context: Context): User[] {
  const parts = content.map((one) => toContent(one, context));
  if (!context.vendor.one_text_result) return parts;
  const texts = parts.flatMap((part) => part.type === "text" ? [part.text] : []);
  const text = texts.length === 0 ? "(The result has no text.)" : texts.join("\n");
  return [{ type: "text", text }, ...parts.filter(({ type }) => type !== "text")];
}

function toContent(part: TextPart | MediaPart, context: Context): User {
  if (part.type === "text") return { type: "text", text: part.text, ...cached(part, context) };
  const { vendor, degradations } = context;
  const { type, name, data, url, file_id } = part;
  const mediaType = mediaTypeOf(part);
  const file_text = textOfFile(part);
  if (file_text !== undefined) {
    const text = `<file${name === undefined ? "" : ` name=${JSON.stringify(name)}`}>\n${file_text}\n</file>`;
    return { type: "text", text, ...cached(part, context) };
  }
  const { media, urls = media, takes_ids = false } = vendor;
  const is_read = data !== undefined
    ? media.test(mediaType)
    : url !== undefined
    ? urls.test(mediaType)
    : takes_ids;
  if (!is_read) {
    const what = `${type} ${name ?? url ?? file_id ?? mediaType}`;
    const form = data !== undefined
      ? mediaType
      : url !== undefined
      ? `${mediaType} by its address`
      : "ids of files";
    const text = degradations.addUnreadable(what, `the API does not take ${form}`);
    return { type: "text", text, ...cached(part, context) };
  }
  return {
    type: "file",
    mediaType,
    data: data !== undefined
      ? { type: "data", data }
      : url !== undefined
      ? { type: "url", url: new URL(url) }
      : { type: "reference", reference: { [vendor.key]: file_id ?? "" } },
    ...(name === undefined ? {} : { filename: name }),
    ...cached(part, context),
  };
}

/** Beginning of a PDF file in base64. */
const PDF = "JVBERi";
/** Types by the ends of addresses; others are taken for JPEG, which no vendor checks. */
const EXTENSIONS: Readonly<Record<string, string>> = {
  jpg: "jpeg",
  jpeg: "jpeg",
  png: "png",
  gif: "gif",
  webp: "webp",
};

function mediaTypeOf({ type, media_type, data, url = "" }: MediaPart): string {
  if (data?.startsWith(PDF)) return "application/pdf";
  if (media_type !== undefined) return media_type;
  if (type === "file") return "application/pdf";
  const extension = /\.([a-z]{3,4})(?:[?#]|$)/i.exec(url)?.[1]?.toLowerCase() ?? "";
  return `image/${Object.hasOwn(EXTENSIONS, extension) ? EXTENSIONS[extension] : "jpeg"}`;
}

/** Thinking at the end is that of an answer that was cut off; vendors refuse it. */
export function assistantMessages(parts: readonly AssistantPart[], context: Context): Messages {
  const all = parts.flatMap((part) => assistantPart(part, context) ?? []);
  const content = all.slice(0, all.findLastIndex(({ type }) => type !== "reasoning") + 1);
  return content.length === 0 ? [] : [{ role: "assistant", content }];
}

function assistantPart(part: AssistantPart, context: Context): Assistant | undefined {
  switch (part.type) {
    case "text": {
      const { type: _, text: __, citations: ___, ...own } = fieldsOf(part.block);
      return { type: "text", text: part.text, ...options(part, own, context) };
    }
    case "tool_call": {
      const { id: toolCallId, name, input } = part;
      const { type: _, id: __, name: ___, input: ____, ...own } = fieldsOf(part.block);
      const toolName = context.names.toolIn(name);
      return { type: "tool-call", toolCallId, toolName, input, ...options(part, own, context) };
    }
    default:
      return nativePart(fieldsOf(part.block), context);
  }
}

/** Returns the part of a block that the reader of answers kept. */
function nativePart(block: JsonObject, context: Context): Assistant | undefined {
  const { type, id, name, input, result, thinking, data, ...own } = block;
  const metadata = options({}, own, context);
  if (type === "thinking") return { type: "reasoning", text: String(thinking ?? ""), ...metadata };
  if (type === "redacted_thinking") {
    return { type: "reasoning", text: "", ...options({}, { redactedData: data }, context) };
  }
  const call = { toolCallId: String(id), toolName: String(name) };
  if (context.vendor.is_chat) return undefined;
  if (type === CALL_BLOCK) return { type: "tool-call", ...call, input, providerExecuted: true, ...metadata };
  if (type !== RESULT_BLOCK) return undefined;
  return { type: "tool-result", ...call, output: { type: "json", value: result as never }, ...metadata };
}

/** Returns the fields of a stored block under today's names: histories of version 0.1 have others. */
function fieldsOf(block: JsonObject = {}): JsonObject {
  const { item, extra_content, signature, field: _, details: __, ...fields } = block;
  const google = isObject(extra_content) && isObject(extra_content.google) ? extra_content.google : block;
  const { thought_signature } = google;
  delete fields.thought_signature;
  if (isObject(item)) { // of OpenAI's Responses
    return { ...fields, itemId: item.id, reasoningEncryptedContent: item.encrypted_content };
  }
  return {
    ...fields,
    ...(thought_signature === undefined ? {} : { thoughtSignature: thought_signature }),
    ...(signature === undefined
      ? {}
      : { signature, ...(block.type === "thinking" ? { thoughtSignature: signature } : {}) }),
  };
}

/** Returns the options of a part: its own fields from the answer, and its cache breakpoint. */
function options(
  { cache }: CachedPart,
  own: JsonObject,
  { vendor: { key }, mark }: Context,
): { providerOptions?: SharedV4ProviderOptions } {
  const fields = { ...own, ...(cache ? mark : {}) };
  return Object.keys(fields).length > 0 ? { providerOptions: { [key]: fields as never } } : {};
}

function cached(part: CachedPart, context: Context): { providerOptions?: SharedV4ProviderOptions } {
  return options(part, {}, context);
}

/** Keeps the first breakpoint and the last three: the package would leave out the last ones. */
function keepBreakpoints(messages: Messages, { vendor: { key }, mark = {} }: Context): void {
  const [name] = Object.keys(mark);
  if (name === undefined) return;
  const parts = messages.flatMap((message): { providerOptions?: SharedV4ProviderOptions }[] =>
    message.role === "system" ? [message] : message.content as { providerOptions?: SharedV4ProviderOptions }[]
  );
  const of_system = messages.findLastIndex(({ role, providerOptions }) =>
    role === "system" && providerOptions?.[key]?.[name]
  );
  const marked = parts.filter((part, index) => index !== of_system && part.providerOptions?.[key]?.[name]);
  for (const { providerOptions } of marked.slice(0, of_system === -1 ? -4 : -3)) {
    delete providerOptions![key]![name];
  }
}

/**
 * Returns a tool of a plan. One with a `type` of its own is the vendor's: `web_search_20260318` is
 * `anthropic.web_search_20260318`; so is one with a field of `native_tools`.
 */
function toTools(tool: ToolSpec, { vendor, names, degradations }: PromptContext): Tool[] {
  const { name, description, parameters: _, type, strict, ...fields } = tool;
  const is_native = typeof type === "string" && type !== "custom" && type !== "function";
  if (is_native && vendor.is_chat) {
    const reason = "Chat Completions has no native tools; use api: responses";
    degradations.add(`tool ${name} as ${type}`, reason, "a function");
  } else if (is_native) {
    return [{ type: "provider", id: `${vendor.key}.${type}`, name, args: camelCase(fields) }];
  }
  const native = vendor.native_tools?.filter((key) => fields[key] !== undefined) ?? [];
  if (native.length > 0) {
    return native.map((key) => {
      const id = key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
      return { type: "provider", id: `${vendor.key}.${id}`, name: id, args: fields[key] as JsonObject };
    });
  }
  return [{
    type: "function",
    name: names.toolIn(name),
    ...(description ? { description } : {}),
    inputSchema: names.schemaIn(tool),
    ...(typeof strict === "boolean" ? { strict } : {}),
  }];
}

function camelCase(fields: JsonObject): JsonObject {
  const camel = (key: string) => key.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
  return Object.fromEntries(
    Object.entries(fields).map(([key, value]) => [camel(key), isObject(value) ? camelCase(value) : value]),
  );
}

/** Returns the choice among the tools from its name, or from the object of a vendor. */
function choiceOf(
  { tool_choice: choice }: CallSettings,
  names: Names,
): Pick<LanguageModelV4CallOptions, "toolChoice"> {
  if (choice === undefined) return {};
  const { type, name, function: called } = isObject(choice) ? choice : { type: choice };
  const tool = isObject(called) ? called.name : name;
  if (typeof tool === "string") return { toolChoice: { type: "tool", toolName: names.toolIn(tool) } };
  if (type === "any" || type === "required") return { toolChoice: { type: "required" } };
  if (type === "auto" || type === "none") return { toolChoice: { type } };
  return typeof choice === "string" ? { toolChoice: { type: "tool", toolName: names.toolIn(choice) } } : {};
}
