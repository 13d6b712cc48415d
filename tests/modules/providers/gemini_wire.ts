/** The wire format of the Gemini API, for tests. */
import type { JsonObject } from "preamp";
import * as module from "../../../modules/provider-gemini/mod.ts";
import type { ErrorKind, FakeAnswer, Vendor } from "./faults.ts";

const USAGE = { promptTokenCount: 10, candidatesTokenCount: 3, totalTokenCount: 13 };

/** Returns a response of the API, or a chunk of one. */
export function response(parts: JsonObject[], finishReason?: string, fields: JsonObject = {}): JsonObject {
  return {
    candidates: [{
      content: { parts, role: "model" },
      ...(finishReason === undefined ? {} : { finishReason }),
      index: 0,
    }],
    usageMetadata: USAGE,
    modelVersion: "gemini-3.8-flash",
    responseId: "resp_1",
    ...fields,
  };
}

/** Returns a chunk as the event of a stream, with the line ends that the API sends. */
export function event(chunk: JsonObject): string {
  return `data: ${JSON.stringify(chunk)}\r\n\r\n`;
}

/** Returns the body of an error. */
export function errorBody(
  code: number,
  status: string,
  message: string,
  details: JsonObject[] = [],
): JsonObject {
  return { error: { code, message, status, ...(details.length > 0 ? { details } : {}) } };
}

const ERRORS: Readonly<Record<ErrorKind, [code: number, status: string, message: string]>> = {
  rate_limit: [429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."],
  spend_cap: [429, "RESOURCE_EXHAUSTED", "Your project has exceeded its monthly spending cap."],
  auth: [400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."],
  internal: [500, "INTERNAL", "An internal error has occurred."],
  unavailable: [503, "UNAVAILABLE", "The model is overloaded. Please try again later."],
  overloaded: [529, "UNAVAILABLE", "Overloaded"],
};

function partsOf({ calls = [] }: FakeAnswer): JsonObject[] {
  return calls.map(({ id, name, arguments: args }) => ({
    functionCall: { id, name, args: parsed(args.join("")) },
  }));
}

function finishReason({ cut }: FakeAnswer): string {
  return cut ? "MAX_TOKENS" : "STOP";
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
export const GEMINI: Vendor = {
  name: "gemini",
  module,
  config: { first_byte_timeout_s: 30, idle_timeout_s: 30 },
  end_events: 1,
  empty_events: ['data: {"candidates":[]}', 'data: {"candidates":[{"index":0}]}'],
  closing: (text) => [[event(response([{ text }], "STOP"))]],
  stream_type: "text/event-stream",
  broken_event: 'data: {"candidates": [{"conte\r\n\r\n',
  error_event: event(errorBody(503, "UNAVAILABLE", "The model is overloaded.")),
  error: (kind) => {
    const [code, status, message] = ERRORS[kind];
    return { status: code, body: errorBody(code, status, message) };
  },
  whole: (answer) => {
    const { text = [] } = answer;
    const texts = text.length > 0 ? [{ text: text.join("") }] : [];
    return response([...texts, ...partsOf(answer)], finishReason(answer));
  },
  events: (answer) => {
    const { text = [] } = answer;
    return [
      event(response([])),
      ...text.map((delta) => event(response([{ text: delta }]))),
      ...partsOf(answer).map((part) => event(response([part]))),
      event(response([], finishReason(answer))),
    ];
  },
};
