/** Answers of the Responses and Chat Completions APIs as their servers send them, byte by byte. */
import type { JsonObject } from "preamp";

/** Returns a streamed answer; by default in one piece. */
export function sse(text: string): Response {
  return new Response(text, { headers: { "content-type": "text/event-stream; charset=utf-8" } });
}

/** Returns the bytes of events of the Responses API: each has its type as name, and a sequence number. */
export function responseEvents(events: readonly JsonObject[]): string {
  return events.map((event, sequence_number) =>
    `event: ${event.type}\ndata: ${JSON.stringify({ ...event, sequence_number })}\n\n`
  ).join("");
}

/** Returns the bytes of chunks of Chat Completions, with the end marker. */
export function chatChunks(chunks: readonly JsonObject[], end = "data: [DONE]\n\n"): string {
  return chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("") + end;
}

/** Usage of the Responses API. */
export const RESPONSE_USAGE = {
  input_tokens: 36,
  input_tokens_details: { cached_tokens: 12 },
  output_tokens: 87,
  output_tokens_details: { reasoning_tokens: 64 },
  total_tokens: 123,
};

/** Returns a response of the Responses API. */
export function response(output: readonly JsonObject[], fields: JsonObject = {}): JsonObject {
  return {
    id: "resp_67ccd2bed1ec8190",
    object: "response",
    created_at: 1795360000,
    status: "completed",
    error: null,
    incomplete_details: null,
    instructions: null,
    max_output_tokens: null,
    model: "gpt-6.1-terra",
    output,
    parallel_tool_calls: true,
    store: false,
    usage: RESPONSE_USAGE,
    ...fields,
  };
}

/** Returns an output message. */
export function outputMessage(text: string, fields: JsonObject = {}): JsonObject {
  return {
    id: "msg_67ccd2bf17f0819081ff3bb2cf6508e6",
    type: "message",
    status: "completed",
    role: "assistant",
    content: [{ type: "output_text", text, annotations: [], logprobs: [] }],
    ...fields,
  };
}

/** Returns a function call. */
export function functionCall(call_id: string, name: string, args: string): JsonObject {
  return {
    id: `fc_${call_id}`,
    type: "function_call",
    status: "completed",
    call_id,
    name,
    arguments: args,
  };
}

/** Returns a reasoning item. */
export function reasoning(summary: readonly string[], encrypted_content: string | null): JsonObject {
  return {
    id: "rs_6876cf02e0bc8192b74af0fb64b715ff06fa2fcced15a5ac",
    type: "reasoning",
    encrypted_content,
    summary: summary.map((text) => ({ type: "summary_text", text })),
  };
}

/** Returns the events of a response, with the text of its items in deltas of `size` characters. */
export function streamOf(output: readonly JsonObject[], fields: JsonObject = {}, size = 4): string {
  const started = response([], { status: "in_progress", usage: null });
  const ended = response(output, fields);
  return responseEvents([
    { type: "response.created", response: started },
    { type: "response.in_progress", response: started },
    ...output.flatMap((item, output_index) => itemEvents(item, output_index, size)),
    { type: `response.${ended.status}`, response: ended },
  ]);
}

function itemEvents(item: JsonObject, output_index: number, size: number): JsonObject[] {
  const at = { item_id: item.id, output_index };
  const deltas = (text: string, type: string, fields: JsonObject) =>
    pieces(text, size).map((delta) => ({ type: `${type}.delta`, ...at, ...fields, delta }));
  const parts: JsonObject[] = [];
  let empty: JsonObject = { ...item, status: "in_progress" };
  if (item.type === "message") {
    empty = { ...empty, content: [] };
    (item.content as JsonObject[]).forEach((part, content_index) => {
      const field = part.type === "refusal" ? "refusal" : "text";
      const name = part.type === "refusal" ? "refusal" : "output_text";
      const text = String(part[field]);
      parts.push(
        { type: "response.content_part.added", ...at, content_index, part: { ...part, [field]: "" } },
        ...deltas(text, `response.${name}`, { content_index }),
        { type: `response.${name}.done`, ...at, content_index, [field]: text },
        { type: "response.content_part.done", ...at, content_index, part },
      );
    });
  } else if (item.type === "reasoning") {
    empty = { ...item, summary: [] };
    (item.summary as JsonObject[]).forEach((part, summary_index) => {
      const name = "response.reasoning_summary";
      parts.push(
        { type: `${name}_part.added`, ...at, summary_index, part: { ...part, text: "" } },
        ...deltas(String(part.text), `${name}_text`, { summary_index }),
        { type: `${name}_text.done`, ...at, summary_index, text: part.text },
        { type: `${name}_part.done`, ...at, summary_index, part },
      );
    });
  } else if (item.type === "function_call") {
    empty = { ...empty, arguments: "" };
    parts.push(
      ...deltas(String(item.arguments), "response.function_call_arguments", {}),
      { type: "response.function_call_arguments.done", ...at, arguments: item.arguments },
    );
  }
  return [
    { type: "response.output_item.added", output_index, item: empty },
    ...parts,
    { type: "response.output_item.done", output_index, item },
  ];
}

function pieces(text: string, size: number): string[] {
  return text.match(new RegExp(`[^]{1,${size}}`, "gu")) ?? [];
}

/** Usage of Chat Completions. */
export const CHAT_USAGE = {
  prompt_tokens: 20,
  completion_tokens: 11,
  total_tokens: 31,
  prompt_tokens_details: { cached_tokens: 8, audio_tokens: 0 },
  completion_tokens_details: { reasoning_tokens: 5, audio_tokens: 0 },
};

/** Returns a chat completion with one choice. */
export function completion(message: JsonObject, finish_reason = "stop", fields: JsonObject = {}): JsonObject {
  return {
    id: "chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT",
    object: "chat.completion",
    created: 1795360000,
    model: "gpt-4.1",
    choices: [{
      index: 0,
      message: { role: "assistant", content: null, refusal: null, ...message },
      logprobs: null,
      finish_reason,
    }],
    usage: CHAT_USAGE,
    ...fields,
  };
}

/** Returns a chunk with one choice. */
export function chunk(
  delta: JsonObject,
  finish_reason: string | null = null,
  fields: JsonObject = {},
): JsonObject {
  return {
    id: "chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT",
    object: "chat.completion.chunk",
    created: 1795360000,
    model: "gpt-4.1",
    choices: [{ index: 0, delta, logprobs: null, finish_reason }],
    usage: null,
    ...fields,
  };
}

/** Returns the last chunk, which has the usage and no choice. */
export function usageChunk(usage: JsonObject = CHAT_USAGE): JsonObject {
  return { ...chunk({}), choices: [], usage };
}
