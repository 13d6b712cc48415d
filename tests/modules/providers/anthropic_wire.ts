/** The wire format of the Messages API, for tests. */
import type { JsonObject } from "preamp";
import * as module from "../../../modules/provider-anthropic/mod.ts";
import type { ErrorKind, FakeAnswer, Vendor } from "./faults.ts";

const USAGE = {
  input_tokens: 10,
  output_tokens: 3,
  cache_read_input_tokens: 0,
  cache_creation_input_tokens: 0,
};

/** Returns a message of the API. */
export function message(content: JsonObject[], fields: JsonObject = {}): JsonObject {
  return {
    id: "msg_01",
    type: "message",
    role: "assistant",
    model: "claude-sonnet-5-5",
    content,
    stop_reason: content.some(({ type }) => type === "tool_use") ? "tool_use" : "end_turn",
    stop_sequence: null,
    usage: USAGE,
    ...fields,
  };
}

/** Returns an event in the form of the API. */
export function event(data: JsonObject): string {
  return `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** Returns the events of a streamed block. */
export function blockEvents(
  index: number,
  content_block: JsonObject,
  deltas: readonly JsonObject[],
): string[] {
  return [
    event({ type: "content_block_start", index, content_block }),
    ...deltas.map((delta) => event({ type: "content_block_delta", index, delta })),
    event({ type: "content_block_stop", index }),
  ];
}

/** Returns the events around streamed blocks. */
export function messageEvents(
  blocks: readonly string[],
  stop_reason: string,
  usage: JsonObject = {},
): string[] {
  return [
    event({ type: "message_start", message: message([], { stop_reason: null }) }),
    event({ type: "ping" }),
    ...blocks,
    event({
      type: "message_delta",
      delta: { stop_reason, stop_sequence: null },
      usage: { output_tokens: 3, ...usage },
    }),
    event({ type: "message_stop" }),
  ];
}

function stopReason({ calls = [], cut }: FakeAnswer): string {
  return cut ? "max_tokens" : calls.length > 0 ? "tool_use" : "end_turn";
}

const ERRORS: Readonly<Record<ErrorKind, [status: number, type: string, message: string]>> = {
  rate_limit: [429, "rate_limit_error", "This request would exceed the rate limit for your organization."],
  spend_cap: [
    429,
    "rate_limit_error",
    "You have reached your specified API usage limits: monthly spend limit.",
  ],
  auth: [401, "authentication_error", "invalid x-api-key"],
  internal: [500, "api_error", "Internal server error"],
  unavailable: [503, "api_error", "Service unavailable"],
  overloaded: [529, "overloaded_error", "Overloaded"],
};

/** The vendor of the fault matrix. */
export const ANTHROPIC: Vendor = {
  name: "anthropic",
  module,
  end_events: 2,
  spare_events: 1,
  closing: (text) => [messageEvents(blockEvents(0, { type: "text", text }, []), "end_turn")],
  stream_type: "text/event-stream; charset=utf-8",
  broken_event: 'event: content_block_delta\ndata: {"type": "content_blo\n\n',
  error_event: event({ type: "error", error: { type: "overloaded_error", message: "Overloaded" } }),
  error: (kind) => {
    const [status, type, message] = ERRORS[kind];
    return { status, body: { type: "error", error: { type, message }, request_id: "req_1" } };
  },
  whole: (answer) => {
    const { text = [], calls = [] } = answer;
    return message([
      ...(text.length > 0 ? [{ type: "text", text: text.join("") }] : []),
      ...calls.map(({ id, name, arguments: parts }) => ({
        type: "tool_use",
        id,
        name,
        input: JSON.parse(parts.join("")),
      })),
    ], { stop_reason: stopReason(answer) });
  },
  events: (answer) => {
    const { text = [], calls = [] } = answer;
    const offset = text.length > 0 ? 1 : 0;
    const blocks = [
      ...(text.length > 0
        ? blockEvents(
          0,
          { type: "text", text: "" },
          text.map((delta) => ({ type: "text_delta", text: delta })),
        )
        : []),
      ...calls.flatMap(({ id, name, arguments: parts }, index) =>
        blockEvents(
          index + offset,
          { type: "tool_use", id, name, input: {} },
          parts.map((partial_json) => ({ type: "input_json_delta", partial_json })),
        )
      ),
    ];
    return messageEvents(blocks, stopReason(answer));
  },
};
