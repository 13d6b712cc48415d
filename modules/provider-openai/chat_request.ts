/** Converts a call to a request body of the Chat Completions API, also of servers that only resemble it. */
import type OpenAI from "openai";
import type { JsonObject, ToolSpec } from "preamp/base";
import type {
  AssistantPart,
  CallSettings,
  Conversation,
  MediaPart,
  TextPart,
  ToolResultPart,
  Turn,
  UserPart,
  WireRequest,
} from "preamp/provider";
import { effortMark, FORMS } from "./refusals.ts";
import {
  accepts,
  cacheKeyOf,
  effortOf,
  fileName,
  formatOf,
  type FormatRequest,
  functionParameters,
  namedText,
  nativeType,
  noteOnImage,
  type RequestOptions,
  samplingOf,
  type ToolChoice,
  toolFields,
} from "./request_options.ts";

type Body = OpenAI.Chat.ChatCompletionCreateParams;
type ChatMessage = OpenAI.Chat.ChatCompletionMessageParam;
type Content = OpenAI.Chat.ChatCompletionContentPart;
type AssistantTurn = Extract<Turn, { role: "assistant" }>;

/** Maximum number of stop texts; the API refuses more. */
const MAX_STOPS = 4;

export function chatRequest(call: CallSettings, options: RequestOptions): WireRequest {
  const { format, instruction } = formatOf(call, options);
  const effort = effortOf(withoutReasoningBesideTools(call, options), options);
  const body: Body = {
    model: call.model,
    messages: messagesOf(call, instruction, options),
    ...outputLimitOf(call, options),
    ...samplingOf(call, options),
    ...stopOf(call, options),
    ...(effort === undefined ? {} : { reasoning_effort: effort as NonNullable<Body["reasoning_effort"]> }),
    ...toolsOf(call, options),
    ...formatField(format),
    ...cacheKeyOf(options),
    ...streamOf(call, options),
  };
  return { body: body as unknown as JsonObject, degradation: options.degradations.merged(), context: call };
}

/** Returns a call with the effort `none` where it has tools that the server refuses beside reasoning. */
function withoutReasoningBesideTools(
  call: CallSettings,
  { refused, degradations }: RequestOptions,
): CallSettings {
  if (call.tools.length === 0 || !refused.has(FORMS.reasoning_with_tools)) return call;
  if (refused.has(effortMark("none"))) return call; // the error about the tools says what to do
  degradations.add("reasoning", "Chat Completions refuses it beside tools; use api: responses", "none");
  return { ...call, reasoning_effort: "none" };
}

function messagesOf(
  { conversation }: CallSettings,
  instruction: string | undefined,
  options: RequestOptions,
): ChatMessage[] {
  const turns = withoutMereReasoning(conversation.turns);
  const system: TextPart[] = instruction
    ? [...conversation.system, { type: "text", text: instruction }]
    : [...conversation.system];
  const with_calls = turnsWithCalls(turns);
  return [
    ...(system.length === 0 ? [] : [systemMessage(system, options)]),
    ...turns.flatMap((turn) =>
      turn.role === "user"
        ? userMessages(turn.parts, options)
        : [assistantMessage(turn.parts, with_calls.has(turn), options)]
    ),
  ];
}

/**
 * Returns turns without those of the assistant that have neither text nor calls, such as an answer that was
 * cut off while the model reasoned: DeepSeek and Mistral refuse a message without content. The turns around
 * one are joined, because some servers refuse two messages of the user in a row.
 */
function withoutMereReasoning(turns: Conversation["turns"]): Turn[] {
  const kept: Turn[] = [];
  for (const turn of turns) {
    const last = kept.at(-1);
    if (turn.role === "assistant" && turn.parts.every(({ type }) => type === "native")) continue;
    if (turn.role === "user" && last?.role === "user") {
      kept[kept.length - 1] = { role: "user", parts: [...last.parts, ...turn.parts] };
    } else kept.push(turn);
  }
  return kept;
}

/** Returns the turns of the assistant after the questions to which it made calls. */
function turnsWithCalls(turns: Conversation["turns"]): Set<Turn> {
  const groups: AssistantTurn[][] = [[]];
  for (const turn of turns) {
    if (turn.role === "assistant") groups.at(-1)!.push(turn); // there is one
    else if (turn.parts.some(({ type }) => type !== "tool_result")) groups.push([]);
  }
  const hasCalls = ({ parts }: AssistantTurn) => parts.some(({ type }) => type === "tool_call");
  return new Set(groups.filter((group) => group.some(hasCalls)).flat());
}

/** Other servers know the role `system` only. */
function systemMessage(system: TextPart[], { own_host, traits, marks }: RequestOptions): ChatMessage {
  const role = own_host && traits.reasoning ? "developer" : "system";
  const marked = marks && system.some(({ cache }) => cache);
  const content = marked
    ? system.map((part) => textContent(part, marks))
    : system.map((part) => part.text).join("\n\n");
  return { role, content };
}

/** The model's message between results and a question, for servers that need one; it may not be empty. */
const RECEIVED = "I have the results.";

/** Results must be the first messages after the calls, and contain text only: their images follow them. */
function userMessages(parts: readonly UserPart[], options: RequestOptions): ChatMessage[] {
  const messages: ChatMessage[] = [];
  const content: Content[] = [];
  for (const part of parts) {
    if (part.type === "tool_result") messages.push(resultMessage(part, content, options));
    else content.push(contentOf(part, options));
  }
  if (content.length === 0) return messages;
  if (messages.length > 0 && options.refused.has(FORMS.user_after_tool)) {
    messages.push({ role: "assistant", content: RECEIVED });
  }
  return [...messages, { role: "user", content: plainText(content) ?? content }];
}

/** Returns the text of content that is one plain text: some servers accept only that form. */
function plainText(content: readonly Content[]): string | undefined {
  if (!content.every((part) => part.type === "text" && part.prompt_cache_breakpoint === undefined)) {
    return undefined;
  }
  return content.map((part) => part.type === "text" ? part.text : "").join("\n\n");
}

function resultMessage(
  { tool_call_id, name, content, cache }: ToolResultPart,
  after: Content[],
  options: RequestOptions,
): ChatMessage {
  if (typeof content === "string") {
    const marked = options.marks && cache && content !== "";
    return {
      role: "tool",
      tool_call_id,
      content: marked ? [textContent({ type: "text", text: content, cache }, true)] : content,
    };
  }
  const texts = content.filter((part) => part.type === "text").map((part) => part.text);
  const media = content.filter((part) => part.type !== "text");
  if (media.length > 0) {
    texts.push("(The images and files of this result follow.)");
    after.push({ type: "text", text: `Images and files of the result of ${name} (${tool_call_id}):` });
    after.push(...media.map((part) => contentOf(part, options)));
  }
  return { role: "tool", tool_call_id, content: texts.join("\n\n") };
}

function textContent(part: TextPart, marks: boolean): OpenAI.Chat.ChatCompletionContentPartText {
  return { type: "text", text: part.text, ...markOf(part, marks) };
}

function markOf({ cache }: TextPart | MediaPart, marks: boolean) {
  return marks && cache ? { prompt_cache_breakpoint: { mode: "explicit" as const } } : {};
}

function contentOf(part: TextPart | MediaPart, options: RequestOptions): Content {
  const { marks, degradations } = options;
  if (part.type === "text") return textContent(part, marks);
  const { type, media_type, data, url, file_id, name } = part;
  const content = namedText(part) ?? noteOnImage(part, options);
  if (content !== undefined) return { type: "text", text: content, ...markOf(part, marks) };
  const data_url = data === undefined ? undefined : `data:${media_type};base64,${data}`;
  if (type === "image") {
    const source = data_url ?? url;
    if (source !== undefined) {
      return { type: "image_url", image_url: { url: source }, ...markOf(part, marks) };
    }
  } else if (data_url !== undefined) {
    return {
      type: "file",
      file: { filename: fileName(part), file_data: data_url },
      ...markOf(part, marks),
    };
  } else if (file_id !== undefined) return { type: "file", file: { file_id }, ...markOf(part, marks) };
  const address = url ?? file_id ?? "";
  degradations.add(
    `${type} ${address}`,
    "Chat Completions takes no such address; use api: responses",
    "its address as text",
  );
  return {
    type: "text",
    text: `[${type === "image" ? "Image" : "File"}: ${name ? `${name}, ` : ""}${address}]`,
  };
}

/**
 * Returns the message of an assistant turn. Reasoning is sent back in the field in which it came, and only
 * where the model made calls: servers such as DeepSeek's need it there, also after later questions, and
 * ignore it elsewhere. Some refuse messages without it, such as those of another provider; others refuse it.
 */
function assistantMessage(
  parts: readonly AssistantPart[],
  sendsReasoning: boolean,
  { refused }: RequestOptions,
): ChatMessage {
  const texts: string[] = [];
  const calls: OpenAI.Chat.ChatCompletionMessageToolCall[] = [];
  // DeepSeek and Moonshot take an empty text for a missing one
  const reasoning: JsonObject = refused.has(FORMS.without_reasoning) ? { reasoning_content: " " } : {};
  for (const part of parts) {
    if (part.type === "text") texts.push(part.text);
    else if (part.type === "tool_call") calls.push(toolCall(part));
    else if (sendsReasoning && !refused.has(FORMS.reasoning)) {
      Object.assign(reasoning, reasoningFields(part.block));
    }
  }
  const is_null = texts.length === 0 && calls.length > 0 && !refused.has(FORMS.null_content);
  return {
    role: "assistant",
    content: is_null ? null : texts.join("\n\n"),
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
    ...reasoning,
  };
}

function toolCall(
  { id, name, input, block }: Extract<AssistantPart, { type: "tool_call" }>,
): OpenAI.Chat.ChatCompletionMessageToolCall {
  const extra = block?.extra_content === undefined ? {} : { extra_content: block.extra_content };
  return { id, type: "function", function: { name, arguments: JSON.stringify(input) }, ...extra };
}

function reasoningFields({ field, thinking, details }: JsonObject): JsonObject {
  return {
    ...(typeof field === "string" && typeof thinking === "string" ? { [field]: thinking } : {}),
    ...(Array.isArray(details) ? { reasoning_details: details } : {}),
  };
}

/** OpenAI's reasoning models need `max_completion_tokens`; most other servers know `max_tokens` only. */
function outputLimitOf(
  { max_output_tokens }: CallSettings,
  { own_host, refused }: RequestOptions,
): Pick<Body, "max_tokens" | "max_completion_tokens"> {
  const names = ["max_completion_tokens", "max_tokens"] as const;
  const name = (own_host ? names : names.toReversed()).find((one) => !refused.has(one));
  return name === undefined ? {} : { [name]: max_output_tokens };
}

function stopOf({ stop, model }: CallSettings, options: RequestOptions): Pick<Body, "stop"> {
  if (!stop || stop.length === 0 || !accepts("stop", stop, options)) return {};
  const { own_host, traits, degradations } = options;
  if (own_host && traits.reasoning) {
    degradations.add(`stop ${JSON.stringify(stop)}`, `${model} does not accept stop texts`);
    return {};
  }
  const left_out = stop.slice(MAX_STOPS);
  if (own_host && left_out.length > 0) {
    degradations.add(`stop ${JSON.stringify(left_out)}`, `the API accepts at most ${MAX_STOPS} stop texts`);
    return { stop: stop.slice(0, MAX_STOPS) };
  }
  return { stop: [...stop] };
}

function toolsOf(
  call: CallSettings,
  options: RequestOptions,
): Pick<Body, "tools" | "tool_choice" | "parallel_tool_calls"> {
  if (call.tools.length === 0) return {};
  return {
    tools: call.tools.map((spec) => toolOf(spec, options)),
    ...toolFields(call, options, choiceOf),
  };
}

/** Chat Completions has no native tools: they are offered as functions. */
function toolOf(spec: ToolSpec, { degradations }: RequestOptions): OpenAI.Chat.ChatCompletionTool {
  const { name, description, parameters, strict } = spec;
  const native = nativeType(spec);
  if (native !== undefined) {
    degradations.add(
      `tool ${name} as ${native}`,
      "Chat Completions has no native tools; use api: responses",
      "a function",
    );
  }
  return {
    type: "function",
    function: {
      name,
      ...(description ? { description } : {}),
      parameters: functionParameters(parameters),
      ...(typeof strict === "boolean" ? { strict } : {}),
    },
  };
}

function choiceOf(choice: ToolChoice): NonNullable<Body["tool_choice"]> {
  if ("mode" in choice) return choice.mode;
  if ("name" in choice) return { type: "function", function: { name: choice.name } };
  return choice.own as unknown as NonNullable<Body["tool_choice"]>; // the caller's, as written
}

function formatField(format: FormatRequest["format"]): Pick<Body, "response_format"> {
  if (!format) return {};
  if (format.type === "json_object") return { response_format: format };
  const { name, schema, strict } = format;
  return { response_format: { type: "json_schema", json_schema: { name, schema, strict } } };
}

function streamOf(
  { stream }: CallSettings,
  { refused }: RequestOptions,
): { stream?: true; stream_options?: { include_usage: true } } {
  if (!stream || refused.has("stream")) return {};
  return {
    stream: true,
    ...(refused.has("stream_options") ? {} : { stream_options: { include_usage: true } }),
  };
}
