import { assert, assertEquals } from "../assert.ts";
import { estimateJsonBytes } from "../../src/sdk/json.ts";
import { estimateRecordBytes } from "../../src/store/memory.ts";

Deno.test("estimateJsonBytes() is near the bytes of a value's JSON, lists and nested objects included", () => {
  const text = "word ".repeat(200);
  for (const value of [text, [text, text], { a: text, b: [{ c: text }, text] }, [[[[text]]]]]) {
    const json = JSON.stringify(value).length;
    assert(Math.abs(estimateJsonBytes(value) - json) < json * 0.1, `${estimateJsonBytes(value)} for ${json}`);
  }
});

Deno.test("estimateJsonBytes() gives empty values a size, too", () => {
  assertEquals(
    [
      estimateJsonBytes(null),
      estimateJsonBytes(7),
      estimateJsonBytes(true),
      estimateJsonBytes(""),
      estimateJsonBytes([]),
      estimateJsonBytes({}),
    ].every((one) => one > 0),
    true,
  );
});

Deno.test("estimateRecordBytes() equals estimateJsonBytes(), and measures frozen fields once", () => {
  let reads = 0;
  const plan = Object.freeze({
    get name() {
      reads++;
      return "a plan";
    },
    tools: Object.freeze(["one", "two"]),
  });
  const record = { run_id: "run_1", plan, input: { n: 1 }, none: null };
  assertEquals([estimateRecordBytes(record), estimateRecordBytes({ ...record })], [
    estimateJsonBytes(record),
    estimateJsonBytes(record),
  ]);
  assertEquals(reads, 3); // estimateJsonBytes() twice, estimateRecordBytes() once
});
