import { assert, assertEquals } from "../assert.ts";
import type { JsonObject } from "../../src/sdk/json.ts";
import { formatLogLine } from "../../src/server/log_line.ts";

Deno.test("formatLogLine() returns a line of JSON for any value", () => {
  const cyclic: JsonObject = { level: "info", ts: "t", message: "m" };
  cyclic.self = cyclic;
  const wide = Object.fromEntries(
    Array.from({ length: 500 }, (_, index) => [`field ${index}`, "漢".repeat(50)]),
  );
  const deep = JSON.parse("[".repeat(900) + "]".repeat(900));
  const facts = {
    n: 10n,
    deep,
    wide,
    hostile: {
      toJSON: () => {
        throw new Error("no");
      },
    },
  };
  for (const fields of [cyclic, { ...facts, level: "info" }, { many: Array(50).fill(wide) }]) {
    const line = formatLogLine(fields as JsonObject);
    assert(!line.includes("\n") && new TextEncoder().encode(line).length < 16 * 1024);
    assertEquals(typeof JSON.parse(line), "object");
  }
});
