import fc from "fast-check";
import { readShell } from "../../modules/shell/commands.ts";
import { assert, assertEquals } from "../assert.ts";
import { processorTime } from "../support/busy_time.ts";
import { propertyOptions } from "../support/cases.ts";
import { ANY_CHARACTER } from "../support/characters.ts";
import { SHELL_TEXTS } from "../support/hostile_inputs.ts";

const textsOf = (text: string) => readShell(text).commands.map(({ words }) => words.map((word) => word.text));

Deno.test("readShell() returns the words of a plain command without quotes", () => {
  const text = `git commit -m 'it''s "so"' "a \\"b\\" \\x" c\\ d ''`;
  const words = ["git", "commit", "-m", 'its "so"', 'a "b" \\x', "c d", ""];
  const { plain, certain } = readShell(text);
  assertEquals([textsOf(text), plain, certain], [[words], words, true]);
});

Deno.test("readShell() returns every command in the text, and null for words that are computed at run time", () => {
  const text = `A=1 x "$(y 'z')" $v >out 2>&1 2>/dev/null | w a* ~`;
  assertEquals(
    textsOf(text).sort(),
    [["y", "z"], ["A=1"], ["x", null, null], [">", "out"], ["w", null, null]].sort(),
  );
  const { commands, plain, certain } = readShell(text);
  assertEquals(commands.find(({ words }) => words[0]?.text === "x")?.words.map(({ splits }) => splits), [
    false,
    false,
    true,
  ]);
  assertEquals([plain, certain], [null, true]);
});

Deno.test("readShell() returns the commands of every kind of syntax", () => {
  const cases: [text: string, commands: (string | null)[][]][] = [
    ["if a; then b; elif c; then d; else e; fi", [["a"], ["b"], ["c"], ["d"], ["e"]]],
    ["for x in 1 $(a); do b; done; while c; do d; done", [["a"], ["b"], ["c"], ["d"]]],
    ["case $(a) in $(b)) c;; esac", [["a"], ["b"], ["c"]]],
    ["f() { a; }; function g { b; }", [["function", "f"], ["a"], ["function", "g"], ["b"]]],
    ["(a; { b; }) && ! c || time d & coproc e", [["a"], ["b"], ["c"], ["d"], ["e"]]],
    ['cat <(a) ${x:-$(b)} `c \\`d\\`` ${ e; } "$(f)"', [
      ["cat", null, null, null, null, null],
      ["a"],
      ["b"],
      [
        "c",
        null,
      ],
      ["d"],
      ["e"],
      ["f"],
    ]],
    ["X=$(a) Y+=2", [["X=$"], ["a"], ["Y+=2"]]],
    ["[[ -v x ]] && ((x)) && echo $((x))", [["[["], ["(("], ["echo", null], ["(("]]],
    ["cat <<E\n$(a)\nE\ncat <<'E'\n$(b)\nE", [["cat"], ["a"], ["cat"]]],
    ["a < in > out &>> both >| new", [["a"], ["<", "in"], [">", "out"], [">", "both"], [">", "new"]]],
    ["a &>c d", [["a", "d"], ["d"], [">", "c"]]],
    ["ls # a; b", [["ls"]]],
  ];
  for (const [text, commands] of cases) assertEquals([text, textsOf(text)], [text, commands]);
});

Deno.test("readShell() is not certain when the text is incomplete, or runs what variables contain", () => {
  const texts = ["'", '"', "`", "$(", "${", "$'", "<(x", "\\", "a <<E", "# x", "", "a\0b", "a )"];
  texts.push(
    "$(".repeat(999),
    "echo ${x@P}",
    "echo ${!x}",
    "(('a'))",
    "echo $((a[1]))",
    "{ bash; } <<< 'rm x'",
    "a".repeat(40_000),
  );
  for (const text of texts) assertEquals([text, readShell(text).certain], [text, false]);
});

Deno.test("readShell() returns what a command reads", () => {
  const inputOf = (text: string) =>
    readShell(text).commands.find(({ words }) => words[0]?.text === "sh")?.input;
  assertEquals(inputOf("sh"), undefined);
  assertEquals(inputOf("sh <<< 'rm x'"), "rm x");
  assertEquals(inputOf("sh <<E\nrm x\nE"), "rm x\n");
  for (
    const text of [
      "a | sh",
      "sh < x",
      'sh <<< "$X"',
      "sh <<E\n$X\nE",
      "sh 3<<<a",
      "sh <<<a <<<b",
      "a |& sh -s",
    ]
  ) {
    assertEquals([text, inputOf(text)], [text, null]);
  }
});

Deno.test("readShell() returns the original words of any quoted list", () => {
  const word = fc.string({ unit: ANY_CHARACTER, maxLength: 8 }).filter((text) => !text.includes("\0"));
  fc.assert(
    fc.property(fc.array(word, { minLength: 1, maxLength: 6 }), (words) => {
      const text = words.map((each) => `'${each.replaceAll("'", `'\\''`)}'`).join(" ");
      assertEquals(textsOf(text), [words]);
    }),
    { ...propertyOptions(100, 300, 3000), examples: [[["a\nb", "", "it's"]]] },
  );
});

Deno.test("readShell() reads 32 KiB of hostile text", async () => {
  for (const text of SHELL_TEXTS) {
    const took_ms = await processorTime(() => {
      assertEquals([text.slice(0, 9), typeof readShell(text).certain], [text.slice(0, 9), "boolean"]);
    });
    assert(took_ms < 500, `${text.slice(0, 9)}: ${took_ms} ms`);
  }
});
