/** The events of a streamed answer, wherever the network cuts it. */
import * as fc from "fast-check";
import { readEvents } from "preamp/provider";
import { assertEquals } from "../../assert.ts";

/** Resolves to the events of a body that arrives in parts of some bytes. */
async function eventsIn(text: string, size = text.length): Promise<[name: string, text: string][]> {
  const bytes = new TextEncoder().encode(text);
  const parts = Array.from(
    { length: Math.ceil(bytes.length / size) },
    (_, at) => bytes.slice(at * size, at * size + size),
  );
  const events = await Array.fromAsync(readEvents(ReadableStream.from(parts)));
  return events.map(({ name, text }) => [name, text]);
}

const NOISE = [
  ": comment\n\n",
  "data:\n\n",
  "data: ping\n\n",
  "data: null\n\n",
  "data: [KEEPALIVE]\n\n",
  "event: ping\n\n",
  "id: 7\nretry: 10\n\n",
  "\n",
  "keep-alive\n",
];

Deno.test("readEvents() yields the same events with any line ends, in any parts, between any keep-alives", async () => {
  const value = fc.dictionary(fc.string({ unit: "grapheme" }), fc.string({ unit: "grapheme" }));
  const given = fc.record({
    values: fc.array(value, { minLength: 1, maxLength: 4 }),
    noise: fc.array(fc.constantFrom(...NOISE), { maxLength: 6 }),
    end: fc.constantFrom("\n", "\r\n", "\r"),
    size: fc.integer({ min: 1, max: 20 }),
    lines: fc.boolean(),
  });
  await fc.assert(fc.asyncProperty(given, async ({ values, noise, end, size, lines }) => {
    const texts = values.map((value) => JSON.stringify(value));
    const events = texts.map((text, index) =>
      `${noise[index] ?? ""}${lines ? `${text}\n` : `event: e\ndata: ${text}\n\n`}`
    );
    const body = [...events, ...noise].join("").replaceAll("\n", end);
    assertEquals(await eventsIn(body, size), texts.map((text) => [lines ? "" : "e", text]));
  }));
});

Deno.test("readEvents() joins data of several lines, and yields an event that is broken", async () => {
  assertEquals(await eventsIn('data: {"a":\ndata: 1}\n\ndata: {"b\n\n{"c\n'), [
    ["", '{"a":\n1}'],
    ["", '{"b'],
    ["", '{"c'],
  ]);
});

Deno.test("readEvents() yields a last event without its line end only if it is whole", async () => {
  const cut: [string, string[]][] = [
    ['data: {"a":1}', ['{"a":1}']],
    ['data: {"a":1}\n', ['{"a":1}']],
    ['data: {"a":', []],
    ['{"a":1}', ['{"a":1}']],
    ['{"a":', []],
  ];
  for (const [text, expected] of cut) {
    assertEquals((await eventsIn(text)).map(([, event]) => event), expected, text);
  }
});

Deno.test("readEvents() ends at [DONE], without waiting for the end of the connection", async () => {
  let cancelled = false;
  const body = new ReadableStream({
    start: (controller) => controller.enqueue(new TextEncoder().encode('data: {"a":1}\n\ndata: [DONE]\n\n')),
    cancel: () => void (cancelled = true),
  });
  assertEquals((await Array.fromAsync(readEvents(body))).length, 1);
  assertEquals(cancelled, true);
});
