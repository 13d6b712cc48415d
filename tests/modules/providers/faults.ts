/**
 * The fault matrix of providers: each fault and each oddity of a server in each situation of a call, with the
 * end that every provider must reach. {@link testFaults} registers one test for each cell of a vendor.
 */
import type { ChatRequest, ChatResponse, JsonObject, LLMError, Module, StreamDelta } from "preamp";
import { textOf } from "preamp";
import { FakeClock, TestCoordinator } from "preamp/testing";
import { assert, assertEquals } from "../../assert.ts";
import { ODDITIES } from "./oddities.ts";
import { rawServer, type Reply } from "./raw_server.ts";

/** An answer in no vendor's format. */
export interface FakeAnswer {
  /** Deltas of the text. */
  readonly text?: readonly string[];
  /** Tool calls; `arguments` are deltas of the JSON text. */
  readonly calls?: readonly { id: string; name: string; arguments: readonly string[] }[];
  /** Whether the answer was cut off at the maximum of tokens. */
  readonly cut?: boolean;
}

/** Kinds of errors that a server answers with. */
export type ErrorKind = "rate_limit" | "spend_cap" | "auth" | "internal" | "unavailable" | "overloaded";

/** A vendor's wire format, for the matrix. */
export interface Vendor {
  /** Name of the provider, such as `anthropic`. */
  readonly name: string;
  /** Name of the API in the tests, for a provider with several; default `name`. */
  readonly api?: string;
  readonly module: Module;
  /** Config beside `api_key` and `base_url`. */
  readonly config?: JsonObject;
  /** Path after the server's address in `base_url`; default none. */
  readonly base_path?: string;
  /** Returns the body of an answer that is not streamed. */
  whole(answer: FakeAnswer): JsonObject;
  /** Returns the events of a streamed answer as texts; the first one has no delta. */
  events(answer: FakeAnswer): string[];
  /** Number of events at the end of which at least one is needed for a complete answer. */
  readonly end_events: number;
  /** Number of events after those of the content; default `end_events`. */
  readonly closing_events?: number;
  /** Number of events at the end without which an answer is complete; default none. */
  readonly spare_events?: number;
  /** Events of this API without a part of an answer. */
  readonly empty_events?: readonly string[];
  /** Whether reasoning in tags is read. */
  readonly think_tags?: boolean;
  /** Returns streams whose text is in a closing event only. */
  closing?(text: string): readonly (readonly string[])[];
  readonly stream_type: string;
  /** Returns status and body of an error. */
  error(kind: ErrorKind): { status: number; body: JsonObject };
  /** An event with an error that may pass, such as an overload; absent when streams have no such event. */
  readonly error_event?: string;
  /** An event that is not JSON. */
  readonly broken_event: string;
}

const ASK: ChatRequest = { messages: [{ role: "user", content: "Greet the world." }] };
const TOOLS: ChatRequest["tools"] = [{
  name: "lookup",
  parameters: { type: "object", properties: { key: { type: "string" } } },
}];

/** Situations of a call. */
const SITUATIONS: Readonly<Record<string, { request: ChatRequest; stream: boolean }>> = {
  "first call": { request: ASK, stream: false },
  "after a tool": {
    request: {
      messages: [
        ...ASK.messages,
        {
          role: "assistant",
          content: [{ type: "tool_call", id: "call_1", name: "lookup", input: { key: "a" } }],
          tool_calls: [{ id: "call_1", name: "lookup", tool: "lookup", arguments: { key: "a" } }],
        },
        { role: "tool", tool_call_id: "call_1", name: "lookup", content: "found" },
      ],
      tools: TOOLS,
    },
    stream: false,
  },
  "streaming": { request: { ...ASK, tools: TOOLS }, stream: true },
};

/** Text with characters of one to four bytes, in two deltas. */
const TEXT = ["Grüße an die 世", "界! 👋🏽 Ende."];
const ANSWER: FakeAnswer = { text: TEXT };
const CALL = { id: "call_a", name: "lookup", arguments: ['{"key":', '"ä"}'] };

/** The end of a call. */
interface End {
  /** Requests that the server receives. */
  requests: number;
  /** Type of the failure; absent when the call succeeds. */
  error?: LLMError["type"];
  /** Least seconds of the waits. */
  wait_s?: number;
  check?(result: Result & { response: ChatResponse }): void;
}

export interface Fault {
  name: string;
  /** Replies of the server; after them it answers well. */
  replies(server: Replies): Reply[] | null;
  end: End;
  only?: "whole" | "stream";
}

const AGAIN: End = { requests: 2 };

const FAULTS: readonly Fault[] = [
  {
    name: "429 with retry-after",
    replies: ({ error }) => [error("rate_limit", { "retry-after": "7" })],
    end: { requests: 2, wait_s: 7 },
  },
  { name: "429 without retry-after", replies: ({ error }) => [error("rate_limit")], end: AGAIN },
  {
    name: "429 for as long as it asks",
    replies: ({ error }) => [error("rate_limit"), error("rate_limit"), error("rate_limit")],
    end: { requests: 3, error: "RateLimitError" },
  },
  {
    name: "429 with a retry-after beyond the run's time",
    replies: ({ error }) => [error("rate_limit", { "retry-after": "3600" })],
    end: { requests: 1, error: "RateLimitError" },
  },
  { name: "500", replies: ({ error }) => [error("internal")], end: AGAIN },
  { name: "503", replies: ({ error }) => [error("unavailable")], end: AGAIN },
  { name: "529", replies: ({ error }) => [error("overloaded")], end: AGAIN },
  {
    name: "an error with status 200",
    replies: ({ error }) => [{ ...error("unavailable"), status: 200 }],
    end: AGAIN,
  },
  {
    name: "503 three times",
    replies: ({ error }) => [error("unavailable"), error("unavailable"), error("unavailable")],
    end: { requests: 3, error: "ProviderUnavailableError" },
  },
  {
    name: "401",
    replies: ({ error }) => [error("auth")],
    end: { requests: 1, error: "AuthenticationError" },
  },
  {
    name: "spend cap",
    replies: ({ error }) => [error("spend_cap")],
    end: { requests: 1, error: "QuotaExceededError" },
  },
  { name: "connection closed before the headers", replies: () => [{}], end: AGAIN },
  {
    name: "connection closed in the body",
    replies: ({ whole }) => [{ ...whole(ANSWER, (text) => [text.slice(0, text.length / 2)]), end: "cut" }],
    end: AGAIN,
    only: "whole",
  },
  {
    name: "connection closed in the body, twice",
    replies: ({ whole }) => {
      const reply: Reply = { ...whole(ANSWER, (text) => [text.slice(0, text.length / 2)]), end: "cut" };
      return [reply, reply];
    },
    end: { requests: 2, error: "StreamError" },
    only: "whole",
  },
  {
    name: "connection closed in the first event",
    replies: ({ stream }) => [{ ...stream(ANSWER, ([first]) => [first!.slice(0, 20)]), end: "cut" }],
    end: AGAIN,
    only: "stream",
  },
  {
    name: "connection closed in an event after a delta",
    replies: ({ stream }) => [{ ...stream(ANSWER, (events) => inMiddle(events)), end: "cut" }],
    end: { requests: 1, error: "StreamError" },
    only: "stream",
  },
  {
    name: "characters in halves",
    replies: ({ whole, stream, streams }) => [
      streams ? stream(ANSWER, (events) => bytesOf(events.join(""))) : whole(ANSWER, bytesOf),
    ],
    end: { requests: 1 },
  },
  {
    name: "invalid JSON",
    replies: ({ whole }) => [whole(ANSWER, (text) => [`${text.slice(0, 30)}\n`])],
    end: AGAIN,
    only: "whole",
  },
  {
    name: "invalid JSON before a delta",
    replies: ({ stream, vendor }) => [stream(ANSWER, ([first]) => [first!, vendor.broken_event])],
    end: AGAIN,
    only: "stream",
  },
  {
    name: "invalid JSON after a delta",
    replies: ({ stream, vendor }) => [
      stream(ANSWER, (events) => events.toSpliced(-vendor.end_events, Infinity, vendor.broken_event)),
    ],
    end: { requests: 1, error: "StreamError" },
    only: "stream",
  },
  {
    name: "no end marker, before a delta",
    replies: ({ stream }) => [stream(ANSWER, ([first]) => [first!])],
    end: AGAIN,
    only: "stream",
  },
  {
    name: "no end marker, after a delta",
    replies: ({ stream, vendor }) => [stream(ANSWER, (events) => events.slice(0, -vendor.end_events))],
    end: { requests: 1, error: "StreamError" },
    only: "stream",
  },
  { name: "silence before the headers", replies: () => [{ end: "stall" }], end: { requests: 2, wait_s: 30 } },
  {
    name: "silence before a delta",
    replies: ({ stream }) => [{ ...stream(ANSWER, ([first]) => [first!]), end: "stall" }],
    end: { requests: 2, wait_s: 30 },
    only: "stream",
  },
  {
    name: "silence after a delta",
    replies: ({ stream, vendor }) => [
      { ...stream(ANSWER, (events) => events.slice(0, -vendor.end_events)), end: "stall" },
    ],
    end: { requests: 1, error: "LLMTimeoutError", wait_s: 30 },
    only: "stream",
  },
  {
    name: "a response without end",
    replies: ({ vendor, whole, stream, streams }) => {
      const reply = streams ? stream(ANSWER, () => []) : whole(ANSWER, () => []);
      const body = () => streams ? vendor.events(ANSWER).slice(0, 1).join("") : " ".repeat(10_000);
      return [{ ...reply, body }];
    },
    end: { requests: 1, error: "LLMError" },
  },
  {
    name: "error event before a delta",
    replies: ({ stream, vendor: { error_event } }) =>
      error_event === undefined ? null : [stream(ANSWER, ([first]) => [first!, error_event])],
    end: AGAIN,
    only: "stream",
  },
  {
    name: "error event after a delta",
    replies: ({ stream, vendor: { error_event, end_events } }) =>
      error_event === undefined
        ? null
        : [stream(ANSWER, (events) => events.toSpliced(-end_events, Infinity, error_event))],
    end: { requests: 1, error: "ProviderUnavailableError" },
    only: "stream",
  },
  {
    name: "arguments of a tool call cut off by the maximum of tokens",
    replies: (
      { answer },
    ) => [answer({ calls: [{ ...CALL, arguments: CALL.arguments.slice(0, 1) }], cut: true })],
    end: {
      requests: 1,
      check: ({ response }) => {
        assertEquals(response.finish_reason, "length");
        assertEquals(
          response.tool_calls?.map(({ name, arguments: input, invalid_arguments }) => ({
            name,
            input,
            invalid_arguments,
          })),
          [{ name: "lookup", input: {}, invalid_arguments: '{"key":' }],
        );
      },
    },
    only: "stream",
  },
  {
    name: "a tool call without end marker",
    replies: (
      { stream, vendor },
    ) => [stream({ calls: [CALL] }, (events) => events.slice(0, -vendor.end_events))],
    end: { requests: 1, error: "StreamError" },
    only: "stream",
  },
  {
    name: "tool calls with the same id",
    replies: ({ answer }) => [answer({ calls: [CALL, { ...CALL, arguments: ['{"key":"b"}'] }] })],
    end: {
      requests: 1,
      check: ({ response }) =>
        assertEquals(response.tool_calls?.map(({ arguments: input }) => input), [{ key: "ä" }, { key: "b" }]),
    },
  },
];

/** Makes replies of one vendor in one situation. */
export class Replies {
  constructor(readonly vendor: Vendor, readonly streams: boolean) {}

  readonly error = (kind: ErrorKind, headers: Record<string, string> = {}): Reply => {
    const { status, body } = this.vendor.error(kind);
    return {
      status,
      headers: { "content-type": "application/json", ...headers },
      body: [JSON.stringify(body)],
    };
  };

  readonly whole = (
    answer: FakeAnswer,
    parts: (text: string) => readonly (string | Uint8Array)[],
  ): Reply => ({
    status: 200,
    headers: { "content-type": "application/json" },
    body: parts(JSON.stringify(this.vendor.whole(answer))),
  });

  readonly stream = (
    answer: FakeAnswer,
    parts: (events: string[]) => readonly (string | Uint8Array)[],
  ): Reply => ({
    status: 200,
    headers: { "content-type": this.vendor.stream_type },
    body: parts(this.vendor.events(answer)),
  });

  /** Returns a reply without a fault. */
  readonly answer = (answer: FakeAnswer): Reply =>
    this.streams ? this.stream(answer, (events) => events) : this.whole(answer, (text) => [text]);
}

/** Returns the events without their end, the last one broken off in its middle. */
function inMiddle(events: readonly string[]): string[] {
  const kept = events.slice(0, Math.ceil(events.length / 2) + 1);
  const last = kept.pop()!;
  return [...kept, last.slice(0, last.length / 2)];
}

/** Returns the bytes of a text in parts of 5, which divide many of its characters. */
function bytesOf(text: string): Uint8Array[] {
  const bytes = new TextEncoder().encode(text);
  return Array.from(
    { length: Math.ceil(bytes.length / 5) },
    (_, index) => bytes.subarray(5 * index, 5 * index + 5),
  );
}

/** Registers the tests of a vendor. */
export function testFaults(vendor: Vendor): void {
  for (const [situation, { request, stream }] of Object.entries(SITUATIONS)) {
    const replies = new Replies(vendor, stream);
    for (const fault of [...FAULTS, ...ODDITIES]) {
      if (fault.only !== undefined && (fault.only === "stream") !== stream) continue;
      const given = fault.replies(replies);
      if (given === null) continue;
      Deno.test(`${vendor.api ?? vendor.name}, ${situation}: ${fault.name}`, async () => {
        const result = await call(vendor, [...given, replies.answer(ANSWER)], request, stream);
        checkEnd(result, fault.end);
      });
    }
  }
}

export interface Result {
  response?: ChatResponse;
  error?: LLMError;
  deltas: StreamDelta[];
  requests: JsonObject[];
  waited_s: number;
  events: string[];
}

function checkEnd(result: Result, end: End): void {
  const { response, error, deltas, requests, waited_s, events } = result;
  assertEquals(
    { type: error?.type, requests: requests.length },
    { type: end.error, requests: end.requests },
    error?.message,
  );
  assert(waited_s >= (end.wait_s ?? 0), `waited ${waited_s} s`);
  assertEquals(events.filter((event) => event === "provider:retry").length, end.requests - 1);
  const streamed = deltas.filter(({ block_type }) => block_type === "text").map(({ delta }) => delta).join(
    "",
  );
  if (!response) {
    assert(TEXT.join("").startsWith(streamed), `streamed ${JSON.stringify(streamed)}`); // nothing doubled
    return;
  }
  const { input_tokens, output_tokens, total_tokens, cache_read_tokens = 0, cache_write_tokens = 0 } =
    response
      .usage!; // of a provider
  assertEquals(input_tokens + output_tokens, total_tokens);
  assert(cache_read_tokens + cache_write_tokens <= input_tokens);
  if (end.check) return end.check({ ...result, response });
  assertEquals(textOf(response.content), TEXT.join(""));
  if (deltas.length > 0) assertEquals(streamed, TEXT.join(""));
}

async function call(
  vendor: Vendor,
  replies: Reply[],
  request: ChatRequest,
  stream: boolean,
): Promise<Result> {
  const clock = new FakeClock();
  const coordinator = new TestCoordinator({ clock, limits: { max_answer_bytes: 200_000 } });
  await using server = rawServer(replies, () => setTimeout(() => void clock.advanceToNext(), 20));
  coordinator.hooks.register("provider:retry", (_event, { delay }) => {
    setTimeout(() => void clock.advance(Number(delay) * 1000), 0);
    return null;
  });
  await vendor.module.mount(coordinator, {
    api_key: "sk-canary-1234567890",
    base_url: server.url + (vendor.base_path ?? ""),
    timeout_s: 60,
    ...vendor.config,
  });
  const provider = coordinator.providers[vendor.name]!; // mounted above
  const deltas: StreamDelta[] = [];
  const options = stream ? { onDelta: (delta: StreamDelta) => deltas.push(delta) } : {};
  const outcome = await provider.complete(request, options).then(
    (response) => ({ response }),
    (error) => ({ error }),
  );
  const events = coordinator.hooks.events.map(([event]) => event);
  return { ...outcome, deltas, requests: server.requests, waited_s: clock.monotonic() / 1000, events };
}
