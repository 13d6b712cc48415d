/** Converts a call to a request body of the Responses API. */
import type OpenAI from "openai";
import { isObject, type JsonObject, type ToolSpec } from "preamp/base";
import type {
  AssistantPart,
  CallSettings,
  MediaPart,
  TextPart,
  ToolResultPart,
  UserPart,
  WireRequest,
} from "preamp/provider";
import {
  cacheKeyOf,
  effortOf,
  fileName,
  formatOf,
  functionParameters,
  namedText,
  nativeType,
  noteOnImage,
  type RequestOptions,
  samplingOf,
  type ToolChoice,
  toolFields,
} from "./request_options.ts";

type Body = OpenAI.Responses.ResponseCreateParams;
type Item = OpenAI.Responses.ResponseInputItem;
type Content = OpenAI.Responses.ResponseInputContent;

/** Minimum of `max_output_tokens`; the API refuses less. */
const MIN_OUTPUT_TOKENS = 16;

/** Returns the request of a call. Nothing is stored at OpenAI: every request contains the whole history. */
export function responsesRequest(call: CallSettings, options: RequestOptions): WireRequest {
  const { model, conversation, stop } = call;
  const { degradations } = options;
  const { format, instruction } = formatOf(call, options);
  const system = instruction ? [...conversation.system, text(instruction)] : conversation.system;
  if (stop && stop.length > 0) {
    degradations.add(`stop ${JSON.stringify(stop)}`, "the Responses API has no stop texts; use api: chat");
  }
  const { instructions, lead } = systemOf(system, options);
  const body: Body = {
    model,
    ...(instructions === undefined ? {} : { instructions }),
    input: [
      ...lead,
      ...conversation.turns.flatMap((turn) =>
        turn.role === "user" ? userItems(turn.parts, options) : assistantItems(turn.parts)
      ),
    ],
    max_output_tokens: Math.max(call.max_output_tokens, MIN_OUTPUT_TOKENS),
    store: false,
    ...samplingOf(call, options),
    ...reasoningOf(call, options),
    ...toolsOf(call, options),
    ...(format ? { text: { format } } : {}),
    ...cacheKeyOf(options),
    ...(call.stream && !options.refused.has("stream") ? { stream: true } : {}),
  };
  return { body: body as unknown as JsonObject, degradation: degradations.merged(), context: call };
}

function text(value: string): TextPart {
  return { type: "text", text: value };
}

/** Returns the system prompt: `instructions`, or a message where a cache breakpoint is needed. */
function systemOf(
  system: readonly TextPart[],
  options: RequestOptions,
): { instructions?: string; lead: Item[] } {
  if (system.length === 0) return { lead: [] };
  if (options.marks && system.some(({ cache }) => cache)) {
    return { lead: [{ role: "developer", content: system.map((part) => contentOf(part, options)) }] };
  }
  return { instructions: system.map((part) => part.text).join("\n\n"), lead: [] };
}

function userItems(parts: readonly UserPart[], options: RequestOptions): Item[] {
  const items: Item[] = [];
  const content: Content[] = [];
  for (const part of parts) {
    if (part.type === "tool_result") items.push(outputItem(part, options));
    else content.push(contentOf(part, options));
  }
  if (content.length > 0) items.push({ role: "user", content });
  return items;
}

function outputItem(part: ToolResultPart, options: RequestOptions): Item {
  const { tool_call_id: call_id, content, cache } = part;
  const parts = typeof content === "string" ? [text(content)] : content;
  const isPlain = typeof content === "string" && !(options.marks && cache && content.trim() !== "");
  return {
    type: "function_call_output",
    call_id,
    output: isPlain ? content : parts.map((one, index) => {
      const last = index === parts.length - 1 && cache;
      return contentOf(last ? { ...one, cache } : one, options);
    }),
  };
}

function contentOf(part: TextPart | MediaPart, options: RequestOptions): Content {
  const { marks } = options;
  const mark = marks && part.cache ? { prompt_cache_breakpoint: { mode: "explicit" as const } } : {};
  if (part.type === "text") return { type: "input_text", text: part.text, ...mark };
  const { media_type, data, url, file_id } = part;
  const content = namedText(part) ?? noteOnImage(part, options);
  if (content !== undefined) return { type: "input_text", text: content, ...mark };
  const data_url = data === undefined ? undefined : `data:${media_type};base64,${data}`;
  if (part.type === "image") {
    const image_url = data_url ?? url;
    return {
      type: "input_image",
      detail: "auto",
      ...(image_url === undefined ? { file_id: file_id ?? null } : { image_url }),
      ...mark,
    };
  }
  const source = data_url !== undefined
    ? { filename: fileName(part), file_data: data_url }
    : url !== undefined
    ? { file_url: url }
    : { file_id: file_id ?? null };
  return { type: "input_file", ...source, ...mark };
}

/**
 * Returns the items of an assistant turn. Items that this provider received are sent back unchanged. The API
 * refuses reasoning that nothing follows, for example of an answer that was cut off.
 */
function assistantItems(parts: readonly AssistantPart[]): Item[] {
  const items = parts.flatMap((part) => assistantItem(part) ?? []);
  while (items.at(-1)?.type === "reasoning") items.pop();
  return items;
}

function assistantItem(part: AssistantPart): Item | undefined {
  if (part.type === "native") {
    return isObject(part.block.item) ? part.block.item as unknown as Item : undefined; // kept from an answer
  }
  if (part.type === "tool_call") {
    const { id: call_id, name, input } = part;
    return { type: "function_call", call_id, name, arguments: JSON.stringify(input) };
  }
  const { phase } = part.block ?? {};
  return {
    role: "assistant",
    content: part.text,
    ...(phase === "commentary" || phase === "final_answer" ? { phase } : {}),
  };
}

function reasoningOf(call: CallSettings, options: RequestOptions): Pick<Body, "include" | "reasoning"> {
  const { refused, reasoning_summary: summary, own_host, traits: { reasoning: reasons } } = options;
  const effort = effortOf(call, options);
  if (!reasons && own_host) return {};
  const reasoning: JsonObject = {};
  if (effort !== undefined) reasoning.effort = effort;
  if (reasons && summary !== "none" && !refused.has("reasoning.summary")) reasoning.summary = summary;
  const isSent = Object.keys(reasoning).length > 0 && !refused.has("reasoning");
  return {
    ...(refused.has("include") ? {} : { include: ["reasoning.encrypted_content"] }),
    ...(isSent ? { reasoning: reasoning as NonNullable<Body["reasoning"]> } : {}), // an effort may be new
  };
}

function toolsOf(
  call: CallSettings,
  options: RequestOptions,
): Pick<Body, "tools" | "tool_choice" | "parallel_tool_calls"> {
  if (call.tools.length === 0) return {};
  return {
    tools: call.tools.map(toolOf),
    ...toolFields(call, options, (choice) => choiceOf(choice, call.tools)),
  };
}

function toolOf(spec: ToolSpec): OpenAI.Responses.Tool {
  const { name, description, parameters, ...native } = spec;
  if (nativeType(spec) !== undefined) return native as unknown as OpenAI.Responses.Tool; // the author's, as written
  return {
    strict: false, // the API would make optional parameters required
    ...native,
    type: "function",
    name,
    ...(description ? { description } : {}),
    parameters: functionParameters(parameters),
  };
}

function choiceOf(choice: ToolChoice, tools: readonly ToolSpec[]): NonNullable<Body["tool_choice"]> {
  if ("mode" in choice) return choice.mode;
  if ("own" in choice) return choice.own as unknown as NonNullable<Body["tool_choice"]>; // the caller's, as written
  const native = tools.find(({ name }) => name === choice.name);
  const type = native && nativeType(native);
  return type === undefined
    ? { type: "function", name: choice.name }
    : { type } as NonNullable<Body["tool_choice"]>;
}
