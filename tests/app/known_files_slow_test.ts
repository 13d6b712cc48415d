/** Files that a session has read, when the tools of files run in a sandbox. */
import { cli } from "../../src/cli/mod.ts";
import { assert, assertEquals, assertMatch } from "../assert.ts";
import { filesPlan, read, task, write } from "../support/file_plans.ts";
import { temporaryFolder } from "../support/folder.ts";
import { fakeIo } from "../support/io.ts";

const SOURCE = new URL("../../modules/tool-filesystem/mod.ts", import.meta.url).href;

Deno.test("a sandboxed tool-filesystem knows what was read in earlier turns and by sub-agents", async () => {
  await using place = await temporaryFolder();
  const path = await Deno.realPath(place.path);
  const script = [
    ...[read("a.txt"), task("reader"), "read"],
    ...[write("b.txt", "x\n"), write("a.txt", "from memory\n"), write("c.txt", "x\n"), "written"],
  ];
  const agents = { reader: [read("b.txt"), "read"] };
  const plan = filesPlan(path, script, agents, { module: "tool-files", source: SOURCE });
  for (const name of ["a", "b", "c"]) await Deno.writeTextFile(`${path}/${name}.txt`, "one\n");
  await Deno.writeTextFile(`${path}/plan.json`, JSON.stringify(plan));
  const run = async (session: string) => {
    const io = fakeIo({ cwd: new URL(`file://${path}/`), env: { PREAMP_HOME: `${path}/home` } });
    await cli(["run", "-p", "plan.json", "--session", session, "--output-format", "json-trace", "go"], io);
    return JSON.parse(io.stdout);
  };
  const { run: { isolation } } = await run("new");
  assertEquals(isolation["tool-files"], "process");
  await Deno.writeTextFile(`${path}/a.txt`, "mine\n");
  const { events } = await run("last");
  const results = (events as { event: string; data: { tool_name?: string } }[])
    .filter(({ event, data }) => /^tool:(post|error)$/.test(event) && data.tool_name === "write");
  assertMatch(JSON.stringify(results[1]), /a\.txt has changed since it was read/);
  assertMatch(JSON.stringify(results[2]), /c\.txt exists and was not read/);
  assert(!/was not read/.test(JSON.stringify(results[0]))); // its sub-agent has
  const texts = await Promise.all(["a", "c"].map((name) => Deno.readTextFile(`${path}/${name}.txt`)));
  assertEquals(texts, ["mine\n", "one\n"]);
});
