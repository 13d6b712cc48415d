/** The wire format of an Ollama server, for tests. */
import type { JsonObject } from "preamp";
import * as module from "../../../modules/provider-ollama/mod.ts";
import type { ErrorKind, FakeAnswer, Vendor } from "./faults.ts";

const COUNTERS = {
  total_duration: 4_883_583_458,
  load_duration: 1_334_875,
  prompt_eval_count: 10,
  prompt_eval_duration: 342_546_000,
  eval_count: 3,
  eval_duration: 4_535_599_000,
};

/** Returns an object of a response. */
export function chunk(message: JsonObject, done_reason?: string, fields: JsonObject = {}): JsonObject {
  return {
    model: "qwen3:8b",
    created_at: "2026-11-20T08:52:19.385406455Z",
    message: { role: "assistant", content: "", ...message },
    ...(done_reason === undefined ? { done: false } : { done: true, done_reason, ...COUNTERS }),
    ...fields,
  };
}

/** Returns an object as a line of a stream. */
export function line(object: JsonObject): string {
  return `${JSON.stringify(object)}\n`;
}

const ERRORS: Readonly<Record<ErrorKind, [status: number, message: string]>> = {
  rate_limit: [429, "too many requests, please try again later"],
  spend_cap: [429, "you have reached your weekly usage limit, upgrade for higher limits"],
  auth: [401, "unauthorized"],
  internal: [500, "llama runner process has terminated: exit status 2"],
  unavailable: [503, "server busy, please try again. maximum pending requests exceeded"],
  overloaded: [529, "overloaded"],
};

function callsOf({ calls = [] }: FakeAnswer): JsonObject {
  if (calls.length === 0) return {};
  return {
    tool_calls: calls.map(({ id, name, arguments: args }, index) => ({
      id,
      function: { index, name, arguments: parsed(args.join("")) },
    })),
  };
}

function doneReason({ cut }: FakeAnswer): string {
  return cut ? "length" : "stop";
}

/** Returns arguments as an object; text that is not JSON, of a call that was cut off, as it is. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** The vendor of the fault matrix. */
export const OLLAMA: Vendor = {
  name: "ollama",
  module,
  config: { first_byte_timeout_s: 30, idle_timeout_s: 30 },
  end_events: 1,
  think_tags: true,
  empty_events: ['{"model":"qwen3:8b","message":null}'],
  closing: (text) => [[line(chunk({ content: text }, "stop"))]],
  stream_type: "application/x-ndjson",
  broken_event: '{"model":"qwen3:8b","mess\n',
  error_event: line({ error: "llama runner process has terminated" }),
  error: (kind) => {
    const [status, error] = ERRORS[kind];
    return { status, body: { error } };
  },
  whole: (answer) => chunk({ content: (answer.text ?? []).join(""), ...callsOf(answer) }, doneReason(answer)),
  events: (answer) => [
    line(chunk({})),
    ...(answer.text ?? []).map((content) => line(chunk({ content }))),
    ...(answer.calls ? [line(chunk(callsOf(answer)))] : []),
    line(chunk({}, doneReason(answer))),
  ],
};
