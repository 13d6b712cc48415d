/** The server without permission to start processes: what it still loads, and what it says of the rest. */
import { assertEquals, assertMatch, assertStringIncludes } from "../assert.ts";
import { temporaryFolder } from "../support/folder.ts";
import { serveFiles } from "../support/loader.ts";
import { type Json, ROOT, runProgram } from "./program.ts";

/** Runs a command with every permission but `run`. */
async function withoutRun(
  args: string[],
  cwd: string,
): Promise<{ code: number; stdout: string; stderr: string }> {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [
      ...["run", "--quiet", "--no-prompt", "--cached-only", "--config", `${ROOT}deno.json`],
      ...["--allow-net=127.0.0.1", "--allow-read", "--allow-write", "--allow-env", `${ROOT}main.ts`],
      ...args,
    ],
    cwd,
    env: { PREAMP_HOME: `${cwd}/home`, NO_COLOR: "1" },
  }).output();
  const decoder = new TextDecoder();
  return { code, stdout: decoder.decode(stdout), stderr: decoder.decode(stderr) };
}

const HOOK = `import { z } from "zod";
import { word } from "./word.ts";
export async function mount(coordinator: any) {
  z.string().parse(word);
  coordinator.hooks.register("prompt:submit", () => Promise.resolve({ action: "inject_context", context_injection: word }));
}`;

Deno.test("without --allow-run, modules that modules.inline trusts are bundled here, and bundles need no bundler", async () => {
  await using temporary = await temporaryFolder();
  const folder = temporary.path;
  await using server = serveFiles({
    "hooks/mod.ts": HOOK,
    "hooks/word.ts": `export const word: string = "plum";`,
  });
  const plan = async (source: string): Promise<void> =>
    await Deno.writeTextFile(
      `${folder}/plan.json`,
      JSON.stringify({
        session: { orchestrator: "loop-basic", context: "context-simple" },
        providers: ["provider-mock"],
        hooks: [{ module: "hooks-word", source }],
      }),
    );
  const run = async (...flags: string[]): Promise<Json> => {
    const args = ["run", "-p", "plan.json", "--output-format", "json-trace", ...flags, "hello"];
    const { code, stdout, stderr } = await withoutRun(args, folder);
    return { code, stderr, ...(code === 0 ? JSON.parse(stdout) : {}) };
  };
  const trusted = ["--modules.inline", server.url];
  await plan(`${server.url}hooks/mod.ts`);
  // a module that this host refuses is explained, read or not, and said to be refused
  const unread = await withoutRun(["plan", "explain", "plan.json", "--json"], folder);
  assertEquals(unread.code, 0, unread.stderr);
  const { modules, warnings: said }: Json = JSON.parse(unread.stdout);
  const own = modules.find(({ module }: Json) => module === "hooks-word");
  assertEquals([own.isolation, own.url, own.integrity, own.permissions.wanted], [
    "process",
    `${server.url}hooks/mod.ts`,
    null,
    null,
  ]);
  const warning = said.find(({ code }: Json) => code === "isolation_unavailable");
  assertEquals(warning.path, "hooks[0]");
  assertMatch(warning.message, /"hooks-word" is refused on this host: .*; read its code and vendor it/);

  const first = await run(...trusted);
  assertEquals([first.code, first.run?.isolation["hooks-word"]], [0, "inline"], first.stderr);
  const mounted = first.events.filter(({ event }: Json) => event === "module:mounted");
  assertEquals(mounted.map(({ data }: Json) => data.module_id).includes("hooks-word"), true);

  const explained = await withoutRun([
    "plan",
    "explain",
    "plan.json",
    "--output-format",
    "json",
    ...trusted,
  ], folder);
  assertEquals(explained.code, 0, explained.stderr);
  const { warnings } = JSON.parse(explained.stdout);
  assertEquals(warnings.some(({ code }: Json) => code === "bundler_in_process"), true);

  const refused = await run();
  assertEquals(refused.code === 0, false);
  assertMatch(
    refused.stderr,
    /in tier "process": this process may not start and watch children: it needs --allow-run/,
  );
  assertStringIncludes(refused.stderr, "vendor it with preamp plan vendor --inline");

  const bundled = await runProgram(["module", "bundle", "-o", "bundle.js", `${server.url}hooks/mod.ts`], {
    cwd: folder,
  });
  assertEquals(bundled.code, 0, bundled.stderr);
  server.files["bundle.js"] = await Deno.readTextFile(`${folder}/bundle.js`);
  await plan(`${server.url}bundle.js`);
  const second = await run(...trusted);
  assertEquals([second.code, second.run?.isolation["hooks-word"]], [0, "inline"], second.stderr);

  const hash = await withoutRun(["module", "hash", `${server.url}bundle.js`], folder); // trusted by nothing
  assertMatch(hash.stdout, /^sha256-/, hash.stderr);
  const source = await withoutRun(["module", "hash", `${server.url}hooks/mod.ts`], folder);
  assertStringIncludes(source.stderr, "this process may not start itself");
});
