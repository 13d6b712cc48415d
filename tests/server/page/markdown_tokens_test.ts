/** Markdown that grows while it is read. */
import fc from "fast-check";
import { assertEquals } from "../../assert.ts";
import { NOTHING, read } from "../../../src/server/page/app/ui/markdown_tokens.ts";
import { propertyOptions } from "../../support/cases.ts";

const PARTS = [
  "# Title\n",
  "Some *text* with `code`, ",
  "[a link](https://a.example) ",
  "and [one][ref]\n",
  "\n",
  "\n\n",
  "- item\n",
  "  - nested\n",
  "1. first\n",
  "- [x] task\n",
  "> quote\n",
  "```ts\n",
  "const a = 1;\n",
  "    indented\n",
  "| a | b |\n",
  "|---|---|\n",
  "===\n",
  "---\n",
  "[ref]: https://b.example\n",
  "<div>\n",
  "</div>\n",
  "\r\n",
  "**bold",
  "** ",
  " ",
  "\t",
];

Deno.test("read() of a growing text is read() of the whole text", () => {
  const texts = fc.array(fc.tuple(fc.constantFrom(...PARTS), fc.nat(3)), { maxLength: 150, size: "max" });
  fc.assert(
    fc.property(texts, (parts) => {
      let text = "";
      let reading = NOTHING;
      for (const [part, wait] of parts) {
        text += part;
        if (wait === 0) reading = read(text, reading);
      }
      assertEquals(read(text, reading).tokens, read(text, NOTHING).tokens);
    }),
    propertyOptions(100, 1_000, 10_000),
  );
});
