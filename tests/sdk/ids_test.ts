import { assertEquals, assertMatch } from "../assert.ts";
import { newId, printableId } from "../../src/sdk/ids.ts";

Deno.test("newId() returns different ids of 22 letters and digits after the prefix", () => {
  const ids = Array.from({ length: 1000 }, () => newId("run"));
  for (const id of ids) assertMatch(id, /^run_[0-9A-Za-z]{22}$/);
  assertEquals(new Set(ids).size, ids.length);
});

Deno.test("printableId() returns at most 80 printable characters", () => {
  assertEquals(printableId(`a\n\u001bé${"x".repeat(100)}`), `a???${"x".repeat(76)}`);
});
