import { assertEquals } from "../assert.ts";
import { millisecondsOf, timestamp } from "../../src/sdk/timestamp.ts";

Deno.test("timestamp() formats each point in time, independent of earlier calls", () => {
  assertEquals(
    [0, 0, 1_795_288_408_453, 0].map(timestamp),
    [
      "1970-01-01T00:00:00.000Z",
      "1970-01-01T00:00:00.000Z",
      "2026-11-21T19:13:28.453Z",
      "1970-01-01T00:00:00.000Z",
    ],
  );
});

Deno.test("millisecondsOf() reads the text of timestamp(), also an earlier one", () => {
  const texts = [0, 1_795_288_408_453].map(timestamp);
  assertEquals(texts.map(millisecondsOf), [0, 1_795_288_408_453]);
});
