/** The wire formats of the Responses API and of Chat Completions, for tests that every provider shares. */
import type { JsonObject } from "preamp";
import * as module from "../../../modules/provider-openai/mod.ts";
import type { ErrorKind, FakeAnswer, Vendor } from "../providers/faults.ts";
import {
  chatChunks,
  chunk,
  completion,
  functionCall,
  outputMessage,
  response,
  responseEvents,
  streamOf,
  usageChunk,
} from "./wire.ts";

const ERRORS: Readonly<
  Record<ErrorKind, [status: number, code: string | null, type: string, message: string]>
> = {
  rate_limit: [
    429,
    "rate_limit_exceeded",
    "requests",
    "Rate limit reached for gpt-6.1-terra in organization org-1 on requests per min (RPM): Limit 3, Used 3, Requested 1.",
  ],
  spend_cap: [
    429,
    "insufficient_quota",
    "insufficient_quota",
    "You exceeded your current quota, please check your plan and billing details.",
  ],
  auth: [401, "invalid_api_key", "invalid_request_error", "Incorrect API key provided: sk-canar*******7890."],
  internal: [
    500,
    null,
    "server_error",
    "The server had an error while processing your request. Sorry about that!",
  ],
  unavailable: [503, null, "server_error", "The server is currently unavailable."],
  overloaded: [529, null, "overloaded_error", "The engine is currently overloaded, please try again later."],
};

const error: Vendor["error"] = (kind) => {
  const [status, code, type, message] = ERRORS[kind];
  return { status, body: { error: { message, type, param: null, code } } };
};

const VENDOR = { module, base_path: "/v1", stream_type: "text/event-stream; charset=utf-8", error };

/** Returns the events of a stream as texts. */
function eventsOf(text: string): string[] {
  return text.split(/(?<=\n\n)/);
}

function outputOf({ text = [], calls = [], cut }: FakeAnswer): JsonObject[] {
  const status = cut ? "incomplete" : "completed";
  return [
    ...(text.length > 0 ? [outputMessage(text.join(""))] : []),
    ...calls.map((call) => ({ ...functionCall(call.id, call.name, call.arguments.join("")), status })),
  ];
}

function fieldsOf({ cut }: FakeAnswer): JsonObject {
  return cut ? { status: "incomplete", incomplete_details: { reason: "max_output_tokens" } } : {};
}

/** The Responses API. */
export const RESPONSES: Vendor = {
  ...VENDOR,
  name: "openai",
  api: "Responses",
  config: { api: "responses" },
  whole: (answer) => response(outputOf(answer), fieldsOf(answer)),
  events: (answer) => eventsOf(streamOf(outputOf(answer), fieldsOf(answer), 8)),
  // output_text.done, content_part.done, output_item.done, response.completed
  end_events: 4,
  closing_events: 1,
  think_tags: true,
  closing: (text) => {
    const item = outputMessage(text);
    const [created, in_progress, completed] = eventsOf(streamOf([])) as [string, string, string];
    const done = responseEvents([{ type: "response.output_item.done", output_index: 0, item }]);
    const whole = eventsOf(streamOf([item])).at(-1)!;
    return [[created, in_progress, done, completed], [created, in_progress, whole]];
  },
  broken_event: 'event: response.output_text.delta\ndata: {"type": "response.outp\n\n',
  error_event: responseEvents([{
    type: "error",
    code: "server_error",
    message: "The server had an error",
    param: null,
  }]),
};

function chatCalls({ calls = [] }: FakeAnswer): JsonObject[] {
  return calls.map(({ id, name, arguments: parts }, index) => ({
    index,
    id,
    type: "function",
    function: { name, arguments: parts.join("") },
  }));
}

function finishOf({ calls = [], cut }: FakeAnswer): string {
  return cut ? "length" : calls.length > 0 ? "tool_calls" : "stop";
}

/** Chat Completions. */
export const CHAT: Vendor = {
  ...VENDOR,
  name: "openai",
  api: "Chat Completions",
  whole: (answer) =>
    completion(
      { content: answer.text?.join("") ?? null, ...(answer.calls ? { tool_calls: chatCalls(answer) } : {}) },
      finishOf(answer),
    ),
  events: (answer) =>
    eventsOf(chatChunks([
      chunk({ role: "assistant", content: "" }),
      ...(answer.text ?? []).map((content) => chunk({ content })),
      ...(answer.calls ?? []).flatMap(({ id, name, arguments: parts }, index) => [
        chunk({ tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }] }),
        ...parts.map((part) => chunk({ tool_calls: [{ index, function: { arguments: part } }] })),
      ]),
      chunk({}, finishOf(answer)),
      usageChunk(),
    ])),
  // the chunks of the finish_reason and of the usage, and [DONE]
  end_events: 3,
  spare_events: 2,
  think_tags: true,
  empty_events: [
    'data: {"id":"","choices":[],"prompt_filter_results":[{"prompt_index":0}]}',
    `data: ${JSON.stringify(usageChunk())}`,
  ],
  closing: (text) => {
    const { choices: [choice], ...fields } = chunk({}, "stop") as { choices: [JsonObject] };
    return [
      eventsOf(chatChunks([{ ...fields, choices: [{ ...choice, message: { content: text } }] }])),
      eventsOf(chatChunks([chunk({ role: "assistant", content: [{ type: "text", text }] }, "stop")])),
    ];
  },
  broken_event: 'data: {"id": "chatcmpl-1", "cho\n\n',
  error_event: `data: ${
    JSON.stringify({ error: { message: "Overloaded", type: "server_error", code: 503 } })
  }\n\n`,
};
