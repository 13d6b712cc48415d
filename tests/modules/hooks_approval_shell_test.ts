import fc from "fast-check";
import { assert, assertEquals } from "../assert.ts";
import { compileGlob } from "../../modules/hooks-approval/glob.ts";
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
  const word = fc.string({ unit: "binary", maxLength: 8 }).filter((text) => !text.includes("\0"));
  fc.assert(
    fc.property(fc.array(word, { minLength: 1, maxLength: 6 }), (words) => {
      const text = words.map((each) => `'${each.replaceAll("'", `'\\''`)}'`).join(" ");
      const reading = readShell(text);
      assertEquals(reading.commands.map((command) => command.map((each) => each.text)), [words]);
      assert(reading.plain);
    }),
    { examples: [[["a\nb", "", "it's"]]] },
  );
});

Deno.test("readShell() reads 32 KiB of hostile text in under 5 s", () => {
  for (const piece of ["$(", "`", '"$(', "${x:-", "a &>", "\\`", "<(", "'\"", "(", "a;", "* "]) {
    const started = performance.now();
    readShell(piece.repeat(Math.floor(32_768 / piece.length)));
    const elapsed_ms = performance.now() - started;
    assert(elapsed_ms < 5_000, `${piece} took ${elapsed_ms} ms`); // a few ms; quadratic time would be minutes
  }
});

Deno.test("compileGlob() matches whole texts by *, ? and \\", () => {
  const cases: [string, string, boolean][] = [
    ["abc", "abc", true],
    ["abc", "abcd", false],
    ["a*", "a", true],
    ["a*", "ab/c", true],
    ["a*", "ba", false],
    ["*", "", true],
    ["**", "x", true],
    ["?", "", false],
    ["a?c", "abc", true],
    ["a?c", "ac", false],
    ["*b*d", "abcd", true],
    ["*b*d", "abdc", false],
    ["a\\*c", "a*c", true],
    ["a\\*c", "abc", false],
    ["a\\", "a\\", true],
    ["refund_*", "refund_", true],
    ["[ab]", "a", false],
    ["[ab]", "[ab]", true],
  ];
  for (const [pattern, text, expected] of cases) {
    assertEquals([pattern, text, compileGlob(pattern)(text)], [pattern, text, expected]);
  }
});

/** The definition of a glob, one table cell per prefix of pattern and text: slow, and plain to see. */
function matchesByDefinition(pattern: string, text: string): boolean {
  let row = [true, ...Array.from(text, () => false)];
  for (const character of pattern) {
    const next = [character === "*" && row[0] === true];
    for (let at = 1; at <= text.length; at++) {
      next[at] = character === "*"
        ? next[at - 1] === true || row[at] === true
        : row[at - 1] === true && (character === "?" || character === text[at - 1]);
    }
    row = next;
  }
  return row[text.length] === true;
}

Deno.test("compileGlob() agrees with the definition, across the words of its bit set (property)", () => {
  const pattern = fc.string({ unit: fc.constantFrom("a", "b", "*", "?"), maxLength: 100 });
  const text = fc.string({ unit: fc.constantFrom("a", "b"), maxLength: 100 });
  const pair = fc.oneof(
    fc.tuple(pattern, text),
    text.map((each) => [each.replaceAll("ab", "*").replaceAll("bb", "?b"), each] as const), // ones that match
  );
  fc.assert(fc.property(pair, ([glob, candidate]) => {
    assertEquals(compileGlob(glob)(candidate), matchesByDefinition(glob, candidate));
  }));
});

Deno.test("compileGlob() takes time linear in the text when pattern and text are made to backtrack", () => {
  const glob = compileGlob("*a".repeat(127) + "*b");
  const started = performance.now();
  assertEquals(glob("a".repeat(32_768)), false);
  const elapsed_ms = performance.now() - started;
  assert(elapsed_ms < 500, `took ${elapsed_ms} ms`);
});
