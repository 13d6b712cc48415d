import fc from "fast-check";
import { compileGlob, compileModelGlob, hasWildcard } from "../../src/sdk/glob.ts";
import { assertEquals } from "../assert.ts";
import { GLOBS } from "../support/hostile_inputs.ts";

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

/** Matches by the definition: one table cell for each prefix of pattern and text. */
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

Deno.test("compileGlob() agrees with the definition of a glob", () => {
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

for (const [name, { pattern, text }] of Object.entries(GLOBS)) {
  Deno.test(`compileGlob() takes at most pattern × text steps: ${name}`, () => {
    assertEquals(compileGlob(pattern)(text), false); // exponential time would never end
  });
}

Deno.test("hasWildcard() finds * and ?", () => {
  assertEquals(["a-1", "a-*", "a-?"].map(hasWildcard), [false, true, true]);
});

Deno.test("compileModelGlob() knows one digit, and no case", () => {
  const models = ["Claude-Opus-4", "claude-opus-x", "claude-opus-41", "gpt-5"];
  const found = (pattern: string) => models.filter(compileModelGlob(pattern) ?? (() => false));
  assertEquals(found("claude-opus-[0-9]"), ["Claude-Opus-4"]);
  assertEquals(found("CLAUDE-opus-[0-9]*"), ["Claude-Opus-4", "claude-opus-41"]);
  assertEquals(found("*-[0-9]"), ["Claude-Opus-4", "gpt-5"]);
  assertEquals(compileModelGlob("gpt-5"), undefined);
});
