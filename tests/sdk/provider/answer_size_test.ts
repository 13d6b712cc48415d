import { AnswerSize } from "../../../src/sdk/provider/answer_size.ts";
import { assertEquals, assertMatch } from "../../assert.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const many = (count: number) => bytes("{},".repeat(count));

Deno.test("AnswerSize counts the bytes of all chunks", () => {
  const size = new AnswerSize(10, "text/event-stream");
  assertEquals(size.add(bytes("12345")), undefined);
  assertEquals(size.add(bytes("67890")), undefined);
  assertMatch(String(size.add(bytes("1"))), /at most 10 bytes \(limits\.max_answer_bytes\)/);
});

Deno.test("AnswerSize counts the values of one event, wherever its chunks and lines end", () => {
  const stream = () => new AnswerSize(1e9, "text/event-stream");
  for (const end of ["\n\n", "\r\n\r\n"]) {
    const size = stream();
    for (let event = 0; event < 9; event++) {
      assertEquals([size.add(many(90_000)), size.add(bytes(end))], [undefined, undefined]);
    }
  }
  const lines = stream();
  assertEquals(lines.add(many(90_000)), undefined);
  assertEquals(lines.add(bytes("\ndata: ")), undefined); // the same event
  assertMatch(String(lines.add(many(90_000))), /one event may have at most 200000 values/);
});

Deno.test("AnswerSize takes each line for an event in NDJSON, and the whole of an answer in JSON", () => {
  const add = (media_type: string) => {
    const size = new AnswerSize(1e9, media_type);
    return [size.add(many(90_000)), size.add(bytes("\n")), size.add(many(90_000))].at(-1);
  };
  assertEquals(add("application/x-ndjson"), undefined);
  assertMatch(String(add("application/json")), /values/);
});
