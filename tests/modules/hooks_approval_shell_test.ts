import fc from "fast-check";
import { assert, assertEquals } from "../assert.ts";
import { propertyOptions } from "../support/cases.ts";
import { ANY_CHARACTER } from "../support/characters.ts";
import { SHELL_TEXTS } from "../support/hostile_inputs.ts";
import { readShell } from "../../modules/hooks-approval/shell.ts";

Deno.test("readShell() returns the words of a plain command without quotes", () => {
  const { commands, plain, certain } = readShell(`git commit -m 'it''s "so"' "a \\"b\\" \\x" c\\ d ''`);
  assertEquals(commands.map((words) => words.map((word) => word.text)), [
    ["git", "commit", "-m", 'its "so"', 'a "b" \\x', "c d", ""],
  ]);
  assertEquals([plain, certain], [true, true]);
});

Deno.test("readShell() returns every command in the text, and null for words that are computed at run time", () => {
  const { commands, plain, certain } = readShell(`A=1 x "$(y 'z')" $v >out | w a*`);
  assertEquals(commands.map((words) => words.map((word) => word.text)), [
    ["y", "z"],
    ["A=1", "x", null, null],
    ["w", null],
  ]);
  assertEquals(commands[1]?.map((word) => word.splits), [false, false, false, true]);
  assertEquals(commands[1]?.map((word) => word.assigns), [true, false, false, false]);
  assertEquals([plain, certain], [false, true]);
});

Deno.test("readShell() returns both readings of &>, which shells parse differently", () => {
  assertEquals(readShell("a b &>c d").commands.map((words) => words.map((word) => word.text)), [["d"], [
    "a",
    "b",
    "d",
  ]]);
});

Deno.test("readShell() is not certain when the text is incomplete or nested too deeply", () => {
  const texts = [
    "'",
    '"',
    "`",
    "$(",
    "${",
    "$'",
    "<(x",
    "\\",
    "a <<E",
    "# x",
    "$(case x in a) b;; esac)",
    "$(".repeat(99),
  ];
  for (const text of texts) assertEquals([text, readShell(text).certain], [text, false]);
});

Deno.test("readShell() returns the original words of any quoted list", () => {
  const word = fc.string({ unit: ANY_CHARACTER, maxLength: 8 }).filter((text) => !text.includes("\0"));
  fc.assert(
    fc.property(fc.array(word, { minLength: 1, maxLength: 6 }), (words) => {
      const text = words.map((each) => `'${each.replaceAll("'", `'\\''`)}'`).join(" ");
      const reading = readShell(text);
      assertEquals(reading.commands.map((command) => command.map((each) => each.text)), [words]);
      assert(reading.plain);
    }),
    { ...propertyOptions(100, 300, 3000), examples: [[["a\nb", "", "it's"]]] },
  );
});

Deno.test("readShell() reads 32 KiB of hostile text", () => {
  for (const text of SHELL_TEXTS) {
    assertEquals([text.slice(0, 9), typeof readShell(text).certain], [text.slice(0, 9), "boolean"]);
  }
});
