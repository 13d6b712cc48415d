import { readGlob } from "../../../modules/files/glob.ts";
import { assert, assertEquals, assertThrows } from "../../assert.ts";
import { processorTime } from "../../support/busy_time.ts";

const CASES: [pattern: string, matching: string[], others: string[]][] = [
  ["*.ts", ["a.ts", "src/deep/a.ts", ".hidden.ts"], ["a.tsx", "ts", "a.ts/b"]],
  ["src/*.ts", ["src/a.ts"], ["src/deep/a.ts", "a.ts"]],
  ["./src/**", ["src/a", "src/deep/a.ts"], ["other/src/a"]],
  ["src/**/*.ts", ["src/a.ts", "src/x/y/a.ts"], ["src/a.js", "lib/a.ts"]],
  ["**/test/*", ["test/a", "x/y/test/b"], ["test/a/b", "tests/a"]],
  ["**", ["a", "a/b"], []],
  ["a?[0-9].{ts,m{d,js}}", ["ab1.ts", "ab9.md", "x/a_0.mjs"], ["ab.ts", "abc.ts", "ab1.js"]],
  ["[!a-c]*", ["d", "xa"], ["a", "cx"]],
  ["\\*.[ts", ["*.[ts"], ["a.[ts"]],
  ["app/[id]/*", ["app/[id]/a", "app/i/a"], ["app/x/a"]],
  ["[...all].tsx", ["[...all].tsx", "a.tsx"], ["all.tsx"]],
  ["[]a]", ["]", "a"], ["b"]],
  ["[\\]-]", ["]", "-"], ["\\"]],
  ["{{name}}/{a}.ts", ["{{name}}/a.ts", "name/{a}.ts"], ["x/a.ts"]],
  ["\\{a,b\\}", ["{a,b}"], ["a"]],
  ["/*.md", ["a.md"], ["b/a.md"]],
  ["./a.md", ["a.md"], ["b/a.md"]],
  ["src/", ["src/a", "src/b/c"], ["lib/src/a"]],
  ["!*.md", ["a.ts", "b/c.ts"], ["a.md", "b/a.md"]],
  ["!src/", ["a.ts", "lib/a"], ["src/a", "lib/src/b/c"]],
  ["!{a,b}/*", ["a", "c/d"], ["a/b", "b/c/d"]],
  ["?", ["é", "😀", "x/y"], ["ab"]],
  ["src//./a.ts", ["src/a.ts"], ["a.ts"]],
];

for (const [pattern, matching, others] of CASES) {
  Deno.test(`readGlob() matches paths with ${pattern}`, () => {
    const { test } = readGlob(pattern);
    assertEquals([...matching, ...others].filter(test), matching);
  });
}

Deno.test("readGlob() takes linear time, and refuses what grows", async () => {
  const path = `${"a".repeat(250)}/`.repeat(15) + "a".repeat(250);
  const took_ms = await processorTime(() => {
    for (const pattern of ["*a".repeat(400) + "b", "**/a*/".repeat(100) + "b", `${"**/*a*a".repeat(90)}/b`]) {
      assertEquals(readGlob(pattern).test(path), false);
    }
  });
  assert(took_ms < 1000, `${took_ms} ms`);
  for (const pattern of ["{a,b}".repeat(20), "a".repeat(2000), "{a,b", "{".repeat(900)]) {
    assertThrows(() => readGlob(pattern), Error, "pattern");
  }
});

Deno.test("readGlob() knows what all matching paths begin with, and which names it has", () => {
  const bases = {
    "*.ts": "",
    "a.ts": "",
    "./a.ts": "a.ts",
    "src/lib/*.ts": "src/lib",
    "src/lib/a.ts": "src/lib/a.ts",
    "/src/{a,b}/c": "src",
    "{src,lib}/a": "",
    "!src/a": "",
    "a/../b/[c]": "a/../b",
  };
  for (const [pattern, base] of Object.entries(bases)) assertEquals(readGlob(pattern).base, base, pattern);
  const { names } = readGlob("**/node_modules/{a,b}/*.js");
  assertEquals(["node_modules", "a", "b", "*.js", "c"].filter(names), ["node_modules", "a", "b"]);
  assertEquals(readGlob("!out").names("out"), false);
});

Deno.test("readGlob() refuses what would match nothing", () => {
  for (const pattern of ["@(a|b).ts", "*.+(ts|js)", "!(a).ts", "a{1..3}", ""]) {
    assertThrows(() => readGlob(pattern), Error, "pattern");
  }
  assert(readGlob("report (1).*").test("report (1).pdf"));
  assert(readGlob("(group)/*.tsx").test("(group)/a.tsx"));
});
