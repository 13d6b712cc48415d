import { RecentMap } from "../../src/sdk/recent_map.ts";
import { assertEquals } from "../assert.ts";

Deno.test("RecentMap keeps its limits and drops the least recently used", () => {
  const map = new RecentMap<number>({ max_entries: 2, max_size: 100, sizeOf: (_value, key) => key.length });
  map.set("a", 1);
  map.set("b", 1);
  map.get("a");
  map.set("c", 1);
  assertEquals(["a", "b", "c"].map((key) => map.get(key)), [1, undefined, 1]);
  map.set("d".repeat(99), 1);
  assertEquals([map.size, map.get("d".repeat(99))], [2, 1]);
  map.set("e".repeat(101), 1);
  assertEquals(map.get("e".repeat(101)), undefined);
});

Deno.test("RecentMap counts a value that is replaced once, and forgets one that became too large", () => {
  const map = new RecentMap<string>({ max_size: 10, sizeOf: (value) => value.length });
  for (const value of ["12345678", "1234567890", "12"]) map.set("a", value);
  map.set("b", "12345678");
  assertEquals([map.get("a"), map.get("b")], ["12", "12345678"]);
  map.set("a", "12345678901");
  assertEquals([map.get("a"), map.size], [undefined, 1]);
});
