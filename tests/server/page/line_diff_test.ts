/** The difference of two texts by lines. */
import { lineDiff } from "../../../src/server/page/app/state/line_diff.ts";
import { assertEquals } from "../../assert.ts";

Deno.test("lineDiff() shows changed lines with their neighbours", () => {
  const lines = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
  const from = lines.join("\n");
  assertEquals(lineDiff(from, `${from}\n`), "");
  assertEquals(lineDiff(from, from.replace("e", "E\nE2")), "@@\n c\n d\n-e\n+E\n+E2\n f\n g\n@@");
  assertEquals(lineDiff(from, from.replace("a\n", "")), "-a\n b\n c\n@@");
  assertEquals(lineDiff(from, `${from}\nk`), "@@\n i\n j\n+k");
  assertEquals(lineDiff("", "a"), "-\n+a");
});

Deno.test("lineDiff() keeps the lines that both have, and each text can be read from it", () => {
  const from = "x\na\nb\nc\ny";
  const to = "x\nb\nc\nd\na\ny";
  const diff = lineDiff(from, to).split("\n");
  const side = (sign: string) =>
    diff.filter((line) => line[0] === " " || line[0] === sign).map((line) => line.slice(1));
  assertEquals([side("-").join("\n"), side("+").join("\n")], [from, to]);
  assertEquals(diff.filter((line) => line[0] === " "), [" x", " b", " c", " y"]);
});

Deno.test("lineDiff() of texts with too many lines replaces all lines in between", () => {
  const many = (word: string) => Array.from({ length: 3_000 }, (_, line) => `${word} ${line}`).join("\n");
  const diff = lineDiff(many("a"), many("b")).split("\n");
  assertEquals([diff.length, diff[0], diff[3_000]], [6_000, "-a 0", "+b 0"]);
});
