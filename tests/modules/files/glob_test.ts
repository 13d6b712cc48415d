import { globMatcher } from "../../../modules/files/glob.ts";
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
];

for (const [pattern, matching, others] of CASES) {
  Deno.test(`globMatcher() matches paths with ${pattern}`, () => {
    const test = globMatcher(pattern);
    assertEquals([...matching, ...others].filter(test), matching);
  });
}

Deno.test("globMatcher() takes linear time, and refuses what grows", async () => {
  const path = `${"a".repeat(250)}/`.repeat(15) + "a".repeat(250);
  const took_ms = await processorTime(() => {
    for (const pattern of ["*a".repeat(400) + "b", "**/a*/".repeat(100) + "b", `${"**/*a*a".repeat(90)}/b`]) {
      assertEquals(globMatcher(pattern)(path), false);
    }
  });
  assert(took_ms < 1000, `${took_ms} ms`);
  for (const pattern of ["{a,b}".repeat(20), "a".repeat(2000), "{a,b", "{".repeat(900)]) {
    assertThrows(() => globMatcher(pattern), Error, "pattern");
  }
});
