import { cli } from "../../../src/cli/mod.ts";
import { EXIT } from "../../../src/cli/errors.ts";
import { assertEquals, assertMatch, assertStringIncludes } from "../../assert.ts";
import { fakeIo } from "../../support/io.ts";

async function docs(...words: string[]) {
  const io = fakeIo();
  const code = await cli(["docs", ...words], io);
  return { code, stdout: io.stdout, stderr: io.stderr };
}

Deno.test("preamp docs WORDS prints the sections that answer a question, and the answer itself", async () => {
  for (
    const [question, answer] of [
      ["keep a tool in a folder", "permissions: { read:"],
      ["bound cost", "max_cost_usd"],
      ["rotate a key", "retires_at"],
      ["come from Amplifier", "Mount plans, module ids"],
      ["test a plan", "preamp plan check"],
    ] as const
  ) {
    const { code, stdout } = await docs(...question.split(" "));
    assertEquals(code, EXIT.done, question);
    assertMatch(stdout, /^## /, question);
    assertStringIncludes(stdout, answer);
  }
});

Deno.test("preamp docs WORD prints a page of that name, else what has the word", async () => {
  assertMatch((await docs("plan")).stdout, /^# The mount plan/);
  assertMatch((await docs("rollback")).stdout, /^- .+: `preamp docs [a-z-]+`/m);
});

Deno.test("words that no section has are said to be nowhere", async () => {
  const { code, stderr } = await docs("qqqq", "zzzz");
  assertEquals(code, EXIT.usage);
  assertStringIncludes(stderr, "preamp docs lists all pages");
  assertStringIncludes((await docs("qqqqzzzz")).stderr, "preamp docs lists all pages");
});
