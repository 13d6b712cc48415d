import * as fc from "fast-check";
import { GrowingText } from "../../src/sdk/growing_text.ts";
import { assertEquals } from "../assert.ts";

Deno.test("GrowingText is the joined text, whatever the parts and whenever it is read", () => {
  const parts = fc.array(fc.oneof(fc.string(), fc.string({ minLength: 3_000, maxLength: 9_000 })));
  fc.assert(fc.property(parts, fc.integer({ min: 1, max: 5 }), (all, every) => {
    const text = new GrowingText();
    for (const [index, part] of all.entries()) {
      text.append(part);
      if (index % every === 0) assertEquals(text.value, all.slice(0, index + 1).join(""));
    }
    assertEquals(text.value, all.join(""));
  }));
});

Deno.test("GrowingText keeps texts of many parts in a small heap", async () => {
  const script = `
    import { GrowingText } from "${import.meta.resolve("../../src/sdk/growing_text.ts")}";
    const texts = Array.from({ length: 64 }, () => new GrowingText());
    for (let part = 0; part < 40_000; part++) for (const text of texts) text.append("word ");
    console.log(texts.every(({ value }) => value.length === 200_000));`;
  const { stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["eval", "--no-check", "--v8-flags=--max-old-space-size=48", script], // as trees they take 80 MB
    stderr: "null",
  }).output();
  assertEquals(new TextDecoder().decode(stdout), "true\n");
});
