import { assert, assertEquals } from "../assert.ts";
import { estimateJsonBytes } from "../../src/sdk/json.ts";

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
