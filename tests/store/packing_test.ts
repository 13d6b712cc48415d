import { type EntryRow, pack, packFirst, pageOfTexts } from "../../src/store/packing.ts";
import { assert, assertEquals } from "../assert.ts";

const rowOf = (seq: number, json: string): EntryRow => {
  const packed = pack(json);
  return { seq, json: packed ? "" : json, packed };
};

Deno.test("packFirst() ends a row with the entry with which its texts reach 256 KiB, however small they are packed", () => {
  const texts = Array.from(
    { length: 40 },
    (_, n) => n % 4 === 0 ? "{}" : JSON.stringify("x".repeat(100_000)),
  );
  const rows = texts.map((text, n) => rowOf(n + 1, text));
  const found: string[] = [];
  let parts = 0;
  for (let after = 0;; parts++) {
    const part = packFirst(rows.slice(after));
    if (part === null) break;
    const { last, count, packed } = part;
    assertEquals(count, last - after);
    assert(texts.slice(after, last - 1).join("").length < 262_144);
    assert(packed !== null);
    found.push(...pageOfTexts([{ seq: last, json: "", packed }], after, 1_000));
    after = last;
  }
  assertEquals(found, texts);
  assertEquals(parts, 10);
});

Deno.test("packFirst() leaves short texts, and rows that are packed", () => {
  assertEquals(packFirst([rowOf(1, "{}"), rowOf(2, "{}")]), { last: 2, count: 2, packed: null });
  assertEquals(packFirst([rowOf(1, JSON.stringify("x".repeat(10_000)))]), {
    last: 1,
    count: 1,
    packed: null,
  });
  assertEquals(packFirst([]), null);
});
