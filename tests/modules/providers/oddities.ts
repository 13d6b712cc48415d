/**
 * Oddities of servers and gateways that the fault matrix has beside faults: each leaves the answer whole, so
 * that every provider must read it with one request.
 */
import { textOf } from "preamp";
import { isObject, type JsonObject } from "preamp";
import { assert, assertEquals } from "../../assert.ts";
import type { FakeAnswer, Fault, Replies, Result, Vendor } from "./faults.ts";

const TEXT = ["Grüße an ", "die Welt."];
const CALL = { id: "call_a", name: "lookup", arguments: ['{"key":', '"ä"}'] };

/** Data of events that carry no part of an answer. */
const KEEP_ALIVES = [
  ": comment",
  "data:",
  "data: {}",
  "data: null",
  "data: ping",
  "data: [KEEPALIVE]",
  'data: {"type":"keepalive","sequence_number":3}',
  'event: ping\ndata: {"type":"ping"}',
  'event: heartbeat\ndata: {"status":"processing","message":"still here"}',
];

type Change = (event: JsonObject) => void;

/** Returns an event with its data changed; of other events, the event. */
function changed(event: string, change: Change): string {
  const begin = event.search(/\{/);
  const text = event.slice(begin).trimEnd();
  if (begin === -1) return event;
  const data = JSON.parse(text);
  change(data);
  return event.slice(0, begin) + JSON.stringify(data) + event.slice(begin + text.length);
}

/** Calls `visit` with every object in a value. */
function eachObject(value: unknown, visit: Change): void {
  if (Array.isArray(value)) value.forEach((item) => eachObject(item, visit));
  if (!isObject(value)) return;
  visit(value);
  Object.values(value).forEach((item) => eachObject(item, visit));
}

const COUNT = /(tokens|TokenCount|_eval_count)$/;

/** Returns a change of every count of tokens. */
function counts(change: (count: number) => unknown): Change {
  return (event) =>
    eachObject(event, (fields) => {
      for (const key of Object.keys(fields)) {
        if (COUNT.test(key) && typeof fields[key] === "number") fields[key] = change(fields[key]);
      }
    });
}

function without(...keys: string[]): Change {
  return (event) =>
    eachObject(event, (fields) => {
      for (const key of keys) delete fields[key];
    });
}

const NO_PLACES = without("index", "output_index", "content_index", "summary_index", "item_id");

const FACTS: Change = (event) =>
  eachObject(event, (fields) => {
    for (const key of ["created", "created_at"]) if (key in fields) fields[key] = "2026-11-20T08:52:19Z";
    for (const key of ["service_tier", "system_fingerprint"]) fields[key] = null;
  });

function withText(): FakeAnswer {
  return { text: TEXT };
}

/** Returns the events before those of an answer's content, of the content, and after it. */
function partsOf(vendor: Vendor, answer: FakeAnswer): [string[], string[], string[]] {
  const all = vendor.events(answer);
  const empty = vendor.events({});
  const end = all.length - (vendor.closing_events ?? vendor.end_events);
  const begin = all.findIndex((event, index) => event !== empty[index]);
  return [all.slice(0, begin), all.slice(begin, end), all.slice(end)];
}

/** Checks that an answer is the text, in its deltas too. */
function isText({ response, deltas }: Result): void {
  assertEquals(textOf(response!.content), TEXT.join(""));
  const streamed = deltas.filter(({ block_type }) => block_type === "text").map(({ delta }) => delta).join(
    "",
  );
  if (deltas.length > 0) assertEquals(streamed, TEXT.join(""));
}

function isOneCall({ response }: Result): void {
  const calls = response!.tool_calls?.map(({ name, arguments: input }) => [name, input]);
  assertEquals(calls, [["lookup", { key: "ä" }]]);
  assertEquals(response!.content.filter(({ type }) => type === "tool_call").length, 1);
}

/** Returns an oddity in which every event of an answer is changed. */
function odd(
  name: string,
  change: Change,
  answer: FakeAnswer = withText(),
  check: (result: Result) => void = isText,
): Fault {
  return {
    name,
    replies: ({ vendor, streams, stream, whole }) => {
      if (streams) return [stream(answer, (events) => events.map((event) => changed(event, change)))];
      const body = structuredClone(vendor.whole(answer));
      change(body);
      return [whole(answer, () => [JSON.stringify(body)])];
    },
    end: { requests: 1, check },
  };
}

/** Returns an oddity of streams. */
function oddStream(
  name: string,
  events: (vendor: Vendor) => readonly string[] | undefined,
  check: (result: Result) => void = isText,
): Fault {
  const replies = ({ stream, vendor }: Replies) => {
    const odd = events(vendor);
    return odd === undefined ? null : [stream(withText(), () => odd)];
  };
  return { name, replies, end: { requests: 1, check }, only: "stream" };
}

const THOUGHT = ["<thi", "nk>\nHm", "m.\n</th", "ink>\n\n"];

export const ODDITIES: readonly Fault[] = [
  oddStream(
    "keep-alives as data, before and between the events",
    (vendor) => {
      const all = [...KEEP_ALIVES, ...(vendor.empty_events ?? [])].map((text) => `${text}\n\n`);
      return vendor.events(withText()).flatMap((event) => [...all, event]);
    },
  ),
  odd("the time of the answer as text, and other facts as null", FACTS),
  odd("error: null in every event", (event) => event.error = null),
  odd("counts of tokens as texts", counts(String), withText(), (result) => {
    isText(result);
    const { input_tokens, output_tokens, estimated } = result.response!.usage!;
    assert(
      input_tokens >= 10 && output_tokens >= 3 && estimated === undefined,
      `${input_tokens}, ${output_tokens}`,
    );
  }),
  odd("counts of tokens that are words", counts(() => "n/a"), withText(), (result) => {
    isText(result);
    const { input_tokens, output_tokens, estimated } = result.response!.usage!;
    assert(input_tokens > 0 && output_tokens > 0 && estimated === true, `${input_tokens}, ${output_tokens}`);
  }),
  odd("no usage", without("usage", "usageMetadata", "prompt_eval_count", "eval_count")),
  odd("usage that is a text", (event) =>
    eachObject(event, (fields) => {
      for (const key of ["usage", "usageMetadata"]) if (fields[key]) fields[key] = "none";
    })),
  odd("text without the places of its parts", NO_PLACES),
  odd("a call without its place", NO_PLACES, { calls: [CALL] }, isOneCall),
  odd("two calls without their places", NO_PLACES, {
    calls: [CALL, { id: "call_b", name: "lookup", arguments: ['{"key":', '"b"}'] }],
  }, ({ response }) => {
    assertEquals(response!.tool_calls?.map(({ arguments: input }) => input.key), ["ä", "b"]);
  }),
  {
    name: "a finished call sent twice",
    replies: ({ vendor, streams, stream, whole }) => {
      const answer = { calls: [CALL] };
      if (!streams) return [whole({ calls: [CALL, CALL] }, (text) => [text])];
      const [begin, content, end] = partsOf(vendor, answer);
      return [stream(answer, () => [...begin, ...content, ...content, ...end])];
    },
    end: { requests: 1, check: isOneCall },
  },
  ...[0, 1].map((index) =>
    oddStream(`text only in a closing event (${index + 1})`, ({ closing }) => closing?.(TEXT.join(""))[index])
  ),
  oddStream("no event after the one that ends the answer", (vendor) => {
    const { spare_events = 0 } = vendor;
    return vendor.events(withText()).slice(0, spare_events === 0 ? Infinity : -spare_events);
  }),
  {
    name: "a connection that breaks after the end of the answer",
    replies: ({ vendor, stream }) => {
      const { spare_events = 0 } = vendor;
      const kept = vendor.events(withText()).slice(0, spare_events === 0 ? Infinity : -spare_events);
      return [{ ...stream(withText(), () => kept), end: "cut" }];
    },
    end: { requests: 1, check: isText },
    only: "stream",
  },
  oddStream("an error and a broken event after the end of the answer", (vendor) => {
    const { spare_events = 0 } = vendor;
    const all = vendor.events(withText());
    const late = ['data: {"error":{"message":"cannot count tokens","code":500}}\n\n', vendor.broken_event];
    return all.toSpliced(all.length - spare_events, 0, ...late);
  }),
  {
    name: "reasoning in tags at the beginning of the text",
    replies: ({ vendor, answer }) => vendor.think_tags ? [answer({ text: [...THOUGHT, ...TEXT] })] : null,
    end: {
      requests: 1,
      check: (result) => {
        isText(result);
        assertEquals(result.response!.content.map(({ type, thinking }) => [type, thinking]), [
          ["thinking", "Hmm."],
          ["text", undefined],
        ]);
      },
    },
  },
];
