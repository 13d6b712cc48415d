/** `preamp source …`: where a module comes from, over what an operator's plan says. */
import { assertEquals, assertMatch, assertStringIncludes } from "../assert.ts";
import type { Result } from "./after_effects.ts";
import { serveModules } from "./module_server.ts";
import { runCommand, startServer } from "./program.ts";

const TOOL = (output: string) =>
  `export const mount = () => ({ name: "calculator", description: "d", input_schema: { type: "object" }, execute: () => "${output}" });`;

const PLAN = `session: {orchestrator: loop-basic, context: context-simple}
providers: [provider-mock]
tools: [{module: tool-x, source: ./theirs.ts}]
`;

interface Place extends AsyncDisposable {
  folder: string;
  write(name: string, text: string): Promise<void>;
  run(...args: string[]): Promise<Result>;
}

async function place(): Promise<Place> {
  const folder = await Deno.makeTempDir();
  const write = (name: string, text: string) => Deno.writeTextFile(`${folder}/${name}`, text);
  await write("plan.yaml", PLAN);
  for (const name of ["theirs", "mine", "users"]) await write(`${name}.ts`, TOOL(name));
  return {
    folder,
    write,
    run: (...args) => runCommand(args, { cwd: folder, env: { PREAMP_HOME: `${folder}/home` } }),
    [Symbol.asyncDispose]: () => Deno.remove(folder, { recursive: true }),
  };
}

/** Returns what the tool of the plan answered. */
async function outputOf(at: Place): Promise<string> {
  const { code, stdout, stderr } = await at.run(
    "run",
    "-p",
    "plan.yaml",
    "--output-format=json-trace",
    "What is 6 × 7?",
  );
  assertEquals(code, 0, stderr);
  const { events } = JSON.parse(stdout);
  return events.find(({ event }: { event: string }) => event === "tool:post").data.result.output;
}

Deno.test("source add takes a module from elsewhere; the project's word goes over the user's, remove takes it back", async () => {
  await using at = await place();
  assertEquals(await outputOf(at), "theirs");
  const added = await at.run("source", "add", "--user", "tool-x", "./users.ts");
  assertEquals([added.code, added.stdout], [
    0,
    `tool-x: file://${await Deno.realPath(at.folder)}/users.ts\n`,
  ]);
  assertEquals(await outputOf(at), "users");
  assertEquals((await at.run("source", "add", "tool-x", "./mine.ts")).code, 0);
  assertEquals(await outputOf(at), "mine");
  const listed = JSON.parse((await at.run("source", "list", "--json")).stdout);
  assertEquals(listed.data.map(({ id, source, scope }: Record<string, string>) => [id, source, scope]), [
    ["tool-x", "./mine.ts", "project"],
  ]);
  assertMatch((await at.run("source", "list")).stdout, /^tool-x +project +file:\/\/.*\/mine\.ts$/m);
  assertEquals((await at.run("source", "remove", "tool-x")).code, 0);
  assertEquals((await at.run("source", "remove", "--user", "tool-x")).code, 0);
  assertEquals(await outputOf(at), "theirs");
});

Deno.test("plan check reports a module with a source override", async () => {
  await using at = await place();
  await at.run("source", "add", "tool-x", "./mine.ts");
  const { code, stdout } = await at.run("plan", "check", "plan.yaml");
  assertEquals(code, 0);
  assertMatch(
    stdout,
    /tools\[0\] .*warning: Module "tool-x" comes from "\.\/mine\.ts", not from the plan's source/,
  );
});

Deno.test("plan check reports the URL that a source was rewritten to", async () => {
  await using at = await place();
  const source = "git+https://github.com/org/repo@v1.2.0#subdirectory=tools/x";
  const url = "https://raw.githubusercontent.com/org/repo/v1.2.0/tools/x/mod.ts";
  await at.write("plan.yaml", PLAN.replace("./theirs.ts", JSON.stringify(source)));
  const { code, stdout } = await at.run("plan", "check", "plan.yaml");
  assertEquals(code, 0);
  assertStringIncludes(stdout, `plan.yaml  tools[0].source  ${source} is ${url}\n`);
  const [checked] = JSON.parse((await at.run("plan", "check", "--json", "plan.yaml")).stdout).data;
  assertEquals(checked.sources, [{ path: "tools[0].source", module: "tool-x", source, url }]);
});

Deno.test("source add and remove refuse what cannot be, and say what to write", async () => {
  await using at = await place();
  for (
    const [args, text] of [
      [["add", "tool-x"], "write preamp source add <id> <url>"],
      [["add", "tool x", "./mine.ts"], "id of a module"],
      [["add", "tool-x", "zip+https://example.com/a.zip"], "archives are not supported"],
      [["add", "tool-x", "lodash"], "use the URL of an ES module"],
      [["remove", "tool-y"], ".preamp/sources.yaml has no override"],
    ] as const
  ) {
    const { code, stderr } = await at.run("source", ...args);
    assertEquals([args, code], [args, 2]);
    assertStringIncludes(stderr, text);
  }
});

Deno.test("a broken file of sources is named with line and column, and nothing runs without it", async () => {
  await using at = await place();
  await Deno.mkdir(`${at.folder}/.preamp`);
  await at.write(".preamp/sources.yaml", "sources:\n  tool-x: [1]\n");
  const untrusted = await at.run("run", "-p", "plan.yaml", "What is 6 × 7?");
  assertEquals(untrusted.code, 0, untrusted.stderr);
  assertEquals((await at.run("trust")).code, 0);
  const ran = await at.run("run", "-p", "plan.yaml", "What is 6 × 7?");
  assertEquals([ran.code, ran.stdout], [3, ""]);
  assertStringIncludes(ran.stderr, ".preamp/sources.yaml:2:");
  const listed = await at.run("source", "list");
  assertEquals(listed.code, 3);
  assertStringIncludes(listed.stderr, "must be text");
});

Deno.test("a file of sources of the user's home that cannot be read is named", async () => {
  await using at = await place();
  await Deno.mkdir(`${at.folder}/home/sources.yaml`, { recursive: true });
  const { code, stderr } = await at.run("run", "-p", "plan.yaml", "What is 6 × 7?");
  assertEquals(code, 3);
  assertStringIncludes(stderr, "sources.yaml of $PREAMP_HOME");
});

Deno.test("a caller's plan is not touched by the operator's sources", async () => {
  await using server = await serveModules();
  await using at = await place();
  await at.run("source", "add", "tool-calculator", `${server.url}modules/tool-units/mod.ts`);
  await using program = await startServer([], { cwd: at.folder, env: { PREAMP_HOME: `${at.folder}/home` } });
  const plan = {
    session: { orchestrator: "loop-basic", context: "context-simple" },
    providers: ["provider-mock"],
    tools: ["tool-calculator"],
  };
  const { status, body } = await program.post("/v1/runs", { prompt: "What is 6 × 7?", plan });
  assertEquals([status, body.output_text, server.requests], [200, "6 × 7 is 42.", []]);
});

Deno.test("an author tries a module under a named plan: source add file://$(pwd), run --profile dev, plan explain", async () => {
  await using at = await place();
  const dev = `${PLAN.split("\ntools")[0]}\ntools: [tool-mine]\n`; // no source: it is the author's to say
  await Deno.mkdir(`${at.folder}/home/plans`, { recursive: true });
  await at.write("home/plans/dev.yaml", dev);
  await at.write("mod.ts", TOOL("from the author's folder"));
  const unknown = await at.run("run", "--profile", "dev", "What is 6 × 7?");
  assertEquals([unknown.code, unknown.stdout], [3, ""]);
  assertStringIncludes(unknown.stderr, "home/plans/dev.yaml:3:9  tools[0]");
  assertEquals((await at.run("source", "add", "tool-mine", `file://${at.folder}`)).code, 0);
  const run = await at.run("run", "--profile", "dev", "What is 6 × 7?");
  assertEquals(run.code, 0, run.stderr);
  assertMatch(run.stderr, /^called calculator \{.*\} = from the author's folder \(\d+ ms\)$/m);
  const explained = await at.run("plan", "explain", "home/plans/dev.yaml");
  assertMatch(explained.stdout, /^tool-mine +tool +process +1 file/m);
  assertStringIncludes(explained.stdout, "source_overridden");
});
