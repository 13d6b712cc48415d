import fc from "fast-check";
import { assertEquals } from "../../assert.ts";
import { sseFrame, sseRetry } from "../../../src/server/streaming/sse.ts";

/** Parses SSE text as specified by WHATWG HTML §9.2.6. */
function parse(text: string): { id: string; event: string; data: string }[] {
  const events = [];
  let id = "", event = "", data: string[] = [];
  for (const line of text.split(/\r\n|\r|\n/)) {
    if (line === "") {
      if (data.length > 0) events.push({ id, event, data: data.join("\n") });
      event = "";
      data = [];
      continue;
    }
    const colon = line.indexOf(":");
    const name = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "id") id = value;
    if (name === "event") event = value;
    if (name === "data") data.push(value);
  }
  return events;
}

Deno.test("sseFrame() writes id, event and data and ends with an empty line", () => {
  assertEquals(sseFrame({ id: 18, event: "tool:pre", data: "{}" }), "id: 18\nevent: tool:pre\ndata: {}\n\n");
  assertEquals(sseFrame({ data: "a\nb" }), "data: a\ndata: b\n\n");
  assertEquals(sseRetry(1000), "retry: 1000\n\n");
});

Deno.test("sseFrame() is parsed as exactly one event for any name and data", () => {
  fc.assert(fc.property(
    fc.nat(),
    fc.string({ unit: fc.constantFrom("a", "\n", "\r", "\0", ":", " ", "é", "\u2028", "data: x") }),
    fc.string({ unit: fc.constantFrom("a", "\n", "\r", ":", " ", "😀", "\u2028", "event: x") }),
    (id, event, data) => {
      const [read, ...rest] = parse(sseFrame({ id, event: `x${event}`, data }));
      assertEquals(rest, []);
      assertEquals(read?.id, String(id));
      assertEquals(read?.data, data.replaceAll(/\r\n|\r/g, "\n"));
    },
  ));
});

Deno.test("sseFrame() removes line breaks from a name", () => {
  assertEquals(
    sseFrame({ event: "x\ndata: forged", data: "{}" }),
    "event: x\ufffddata: forged\ndata: {}\n\n",
  );
});
