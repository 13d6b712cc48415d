/** The documentation ships with the program: on the command line and over HTTP, from source and compiled. */
import { assertEquals, assertStringIncludes } from "../assert.ts";
import { ROOT, runProgram, startServer } from "./program.ts";

Deno.test("docs and GET /docs show the pages of src/docs and of the built-in modules", async () => {
  const page = await Deno.readTextFile(`${ROOT}src/docs/plan.md`);
  const { code, stdout } = await runProgram(["docs", "plan"]);
  assertEquals([code, stdout.trim()], [0, page.trim()]);
  await using server = await startServer();
  const read = async (path: string) => await (await server.fetch(path)).text();
  assertEquals((await read("/docs/plan")).trim(), page.trim());
  assertStringIncludes(await read("/docs/tool-todo"), "# tool-todo");
  const index = await read("/llms.txt");
  for (const name of ["plan", "architecture", "tool-todo"]) assertStringIncludes(index, `(docs/${name})`);
});

Deno.test("docs without the right to read files says that it needs it", async () => {
  const args = ["run", "--no-prompt", "--allow-env", `${ROOT}main.ts`, "docs", "plan"];
  const { code, stderr } = await new Deno.Command(Deno.execPath(), { args }).output();
  assertEquals(code, 2);
  assertStringIncludes(
    new TextDecoder().decode(stderr),
    'Cannot find page "plan": the program has no files of it',
  );
});
