import { cli } from "../../../src/cli/mod.ts";
import { findCommand } from "../../../src/cli/commands.ts";
import { EXIT } from "../../../src/cli/errors.ts";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "../../assert.ts";
import { temporaryFolder } from "../../support/folder.ts";
import { fakeIo } from "../../support/io.ts";

/** Runs a command line that is wrong usage; resolves to its first line. */
async function refused(line: string, cwd?: URL): Promise<string> {
  const io = fakeIo({ ...(cwd ? { cwd } : {}), stdin: "" });
  assertEquals([line, await cli(line.split(" "), io)], [line, EXIT.usage], io.stderr);
  return io.stderr.split("\n")[0]!;
}

const ELSEWHERE: readonly (readonly [line: string, advice: RegExp])[] = [
  ["login", /preamp provider list/],
  ["auth login", /preamp provider list/],
  ["provider add openai", /preamp provider list/],
  ["mcp add files npx x", /tool-mcp.*preamp docs tool-mcp/],
  ["upgrade", /preamp version/],
  ["update", /preamp version/],
  ["install tool-x", /preamp docs modules/],
  ["agents", /preamp run -p FILE/],
  ["resume", /preamp run --session last/],
  ["models", /preamp provider models/],
  ["exec hi", /preamp run/],
  ["server", /preamp serve/],
  ["validate plan.yaml", /preamp plan check/],
  ["config set a b", /preamp config example/],
];

for (const [line, advice] of ELSEWHERE) {
  Deno.test(`preamp ${line} is answered with what does the same here`, async () => {
    const text = await refused(line);
    assertMatch(text, advice);
    for (const [, words = ""] of text.matchAll(/preamp ([a-z]+(?: [a-z]+)?)/g)) {
      assert(findCommand(words.split(" ")), `preamp ${words} is no command`);
    }
  });
}

Deno.test("a sentence that begins with such a word is answered with how to run a prompt too", async () => {
  assertStringIncludes(await refused("add two numbers for me"), "preamp run 'add two numbers for me'");
  assertStringIncludes(await refused("Compute this"), "preamp run 'Compute this'");
  assertStringIncludes(await refused("serv"), 'did you mean "serve"?');
});

Deno.test("a file or a URL where another one belongs is answered with what to write", async () => {
  await using folder = await temporaryFolder();
  const cwd = new URL(`file://${folder.path}/`);
  await Deno.writeTextFile(`${folder.path}/there`, "");
  for (
    const [line, advice] of [
      ["init plan.yaml", "init takes a folder"],
      ["init a/agent.ts", "preamp init a/agent"],
      ["init there", "init takes a folder"],
      ["init https://github.com/org/repo", "init downloads nothing"],
      ["run -p https://example.com/plan.yaml hi", 'curl -fLO "https://example.com/plan.yaml"'],
      ["plan check https://example.com/plan.yaml", 'curl -fLO "https://example.com/plan.yaml"'],
      ["run -p github.com/org/repo/plan.yaml hi", "curl"],
      ["module validate github.com/org/repo/mod.ts", "git+https://github.com/org/repo#subdirectory=mod.ts"],
    ] as const
  ) {
    assertStringIncludes(await refused(line, cwd), advice);
  }
  assertEquals((await Array.fromAsync(Deno.readDir(folder.path))).map(({ name }) => name), ["there"]);
  await Deno.mkdir(`${folder.path}/my.py`);
  assertEquals(await cli(["init", "my.py"], fakeIo({ cwd })), EXIT.done);
  const plan = "session: {orchestrator: loop-basic, context: context-simple}\nproviders: [provider-mock]\n";
  await Deno.writeTextFile(`${folder.path}/plan.yaml`, plan);
  assertEquals(await cli(["plan", "check", new URL("plan.yaml", cwd).href], fakeIo({ cwd })), EXIT.done);
});
