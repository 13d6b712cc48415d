import fc from "fast-check";
import { assertEquals } from "../../assert.ts";
import { sseFrame, sseRetry } from "../../../src/server/streaming/sse_format.ts";

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
  assertEquals(sseFrame(18, "tool:pre", { a: "b\nc" }), 'id: 18\nevent: tool:pre\ndata: {"a":"b\\nc"}\n\n');
  assertEquals(sseRetry(1000), "retry: 1000\n\n");
});

Deno.test("sseFrame() is parsed as exactly one event for any name and data", () => {
  fc.assert(fc.property(
    fc.nat(),
    fc.string({ unit: fc.constantFrom("a", "\n", "\r", "\0", ":", " ", "é", "\u2028", "data: x") }),
    fc.string({ unit: fc.constantFrom("a", "\n", "\r", ":", " ", "😀", "\u2028", "event: x") }),
    (id, event, text) => {
      const [read, ...rest] = parse(sseFrame(id, `x${event}`, { text }));
      assertEquals(rest, []);
      assertEquals(read?.id, String(id));
      assertEquals(JSON.parse(read?.data ?? ""), { text });
    },
  ));
});

Deno.test("sseFrame() removes line breaks from a name", () => {
  assertEquals(sseFrame(1, "x\ndata: forged", {}), "id: 1\nevent: x\ufffddata: forged\ndata: {}\n\n");
});
