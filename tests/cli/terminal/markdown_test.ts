import { fitMarkdown } from "../../../src/cli/terminal/markdown.ts";
import { assertEquals } from "../../assert.ts";

const fitted = (lines: readonly string[], columns: number) =>
  fitMarkdown(lines.join("\n"), columns).split("\n");

Deno.test("fitMarkdown() joins and breaks paragraphs and list items; headings start a text of their own", () => {
  assertEquals(
    fitted(["# A title", "one two three", "four", "", "- first item is", "  long", "2. second"], 12),
    ["# A title", "one two", "three four", "", "- first item", "  is long", "2. second"],
  );
});

Deno.test("fitMarkdown() does not change code, also in a list", () => {
  const code = ["- run", "", "  ```sh", "  echo a | b # a long line", "", "  | x |", "  ```", ""];
  assertEquals(fitted(code, 10), code);
});

Deno.test("fitMarkdown() lists the rows of a table that is too wide, with headings if there are several", () => {
  const pair = ["| key | meaning |", "| --- | ------- |", "| `a` | x \\| y is long |", "| `b` |         |"];
  assertEquals(fitted(pair, 80), pair);
  assertEquals(fitted(pair, 20), ["`a`", "    x | y is long", "`b`"]);
  const three = ["| key | meaning | default |", "| --- | --- | --- |", "| a | text | 1 |", "", "after"];
  assertEquals(fitted(three, 20), ["a", "    meaning: text", "    default: 1", "", "after"]);
});

Deno.test("fitMarkdown() keeps every word of a page", async () => {
  for (const page of ["plan", "settings", "modules"]) {
    const text = await Deno.readTextFile(new URL(`../../../src/docs/${page}.md`, import.meta.url));
    const words = (markdown: string) => markdown.match(/[\p{L}\p{N}_]+/gu) ?? [];
    const kept = new Set(words(fitMarkdown(text, 40)));
    const without_headings = text.replaceAll(/^\|.*\n(?=\| -)/gm, "");
    assertEquals(words(without_headings).filter((word) => !kept.has(word)), [], page);
  }
});
