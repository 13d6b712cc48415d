/** Runs the commands of README.md and of src/docs/quickstart.md, except `deno task compile`. */
import { assert, assertEquals, assertMatch } from "../assert.ts";
import { fakeVendor } from "../modules/providers/fake_vendor.ts";
import { argumentsOf, type Page, readPage } from "./page.ts";
import { ROOT, runCommand, runProgram, startServer } from "./program.ts";
import { WIRES } from "./provider_wires.ts";
import { shell } from "./shell.ts";
import { temporaryFolder } from "../support/folder.ts";

const README = await readPage("README.md");
const QUICKSTART = await readPage("src/docs/quickstart.md");
/** The pages of the first steps, by the name for a test. */
const FIRST_STEPS = { "README.md": README, "src/docs/quickstart.md": QUICKSTART };
const { blocks, command } = README;

async function withPlan({ blocks }: Page, use: (folder: string) => Promise<void>): Promise<void> {
  await using temporary = await temporaryFolder();
  const folder = temporary.path;
  await Deno.writeTextFile(`${folder}/plan.yaml`, `${blocks("yaml")[0]}\n`);
  await use(folder);
}

for (const [name, page] of Object.entries(FIRST_STEPS)) {
  Deno.test(`${name} begins with a command that answers`, async () => {
    const [first = ""] = page.blocks("sh");
    const ran = await runProgram(argumentsOf(first));
    assertEquals([ran.code, ran.stdout], [0, "6 × 7 is 42.\n"], ran.stderr);
    assert(page.text.includes(ran.stdout.trim()));
  });

  Deno.test(`${name} posts a plan of the reader's own when the server has started`, () =>
    withPlan(page, async (folder) => {
      await using server = await startServer();
      const curl = page.command("--data-binary").replace("http://127.0.0.1:8484", server.url);
      const run = JSON.parse(await shell(curl, { cwd: folder, env: { KEY: server.key } }));
      assertEquals([run.status, run.tool_call_count], ["completed", 1]);
      assertMatch(run.output_text, /84/);
    }));

  Deno.test(`${name} runs on a real model, here on a server with its API`, async () => {
    const { vendor, env } = WIRES["Anthropic"]!;
    await using server = fakeVendor(vendor, [{ text: ["12 * (3 + 4) is 84."] }]);
    const ran = await runProgram(argumentsOf(page.command(" run -m ")), { env: env(server.url) });
    assertEquals([ran.code, ran.stdout], [0, "12 * (3 + 4) is 84.\n"], ran.stderr);
  });

  Deno.test(`${name} explains a plan before it runs`, () =>
    withPlan(page, async (folder) => {
      const [, , file = ""] = argumentsOf(page.command("plan explain "));
      const here = file === "plan.yaml" ? { cwd: folder } : {};
      const explained = await runCommand(["plan", "explain", file], here);
      assertEquals([explained.code, explained.stderr], [0, ""]);
    }));

  Deno.test(`${name} writes a plan and a tool of one's own, runs and tests them`, async () => {
    await using temporary = await temporaryFolder();
    const here = (text: string) => text.replaceAll("/tmp/my-agent", `${temporary.path}/my-agent`);
    const block = page.blocks("sh").find((text) => text.includes(" init "))!;
    const [make, init, run, test] = block.split("\n").map(here);
    await shell(make!);
    assertEquals((await runProgram(argumentsOf(init!))).code, 0);
    const ran = await runProgram(argumentsOf(run!));
    assertEquals([ran.code, ran.stdout], [0, "Ada has been greeted.\n"], ran.stderr);
    assertMatch(await shell(test!.replace("deno test", `'${Deno.execPath()}' test`)), /\d\d passed/);
  });
}

Deno.test("src/docs/quickstart.md shows the events of its first stream with the numbers that they have", async () => {
  await using server = await startServer();
  const response = await server.fetch("/v1/runs", {
    method: "POST",
    headers: { "content-type": "application/json", accept: "text/event-stream" },
    body: JSON.stringify({ prompt: "What is 6 × 7?" }),
  });
  const shown = QUICKSTART.blocks("").flatMap((block) =>
    [...block.matchAll(/"seq":(\d+),"event":"([^"]+)"/g)].map(([, seq, event]) => `${seq} ${event}`)
  );
  assertEquals(shown.length, 2);
  const seen: string[] = [];
  for await (const text of response.body!.pipeThrough(new TextDecoderStream())) {
    seen.push(
      ...[...text.matchAll(/"seq":(\d+),"event":"([^"]+)"/g)].map(([, seq, event]) => `${seq} ${event}`),
    );
    if (text.includes("awaiting_approval")) break;
  }
  assertEquals(seen.filter((event) => shown.includes(event)), shown);
});

Deno.test("src/docs/quickstart.md lists providers, checks the plan and runs it without a server", () =>
  withPlan(QUICKSTART, async (folder) => {
    const { command } = QUICKSTART;
    const env = WIRES["Anthropic"]!.env("http://127.0.0.1:9");
    const listed = await runProgram(argumentsOf(command("provider list")), { env });
    assertMatch(listed.stdout, /^anthropic +set +ANTHROPIC_API_KEY/m);
    const checked = await runCommand(argumentsOf(command("plan check")), { cwd: folder });
    assertEquals(checked.code, 0, checked.stderr);
    const ran = await runProgram(argumentsOf(command(" run -p plan.yaml")), { cwd: folder });
    assertEquals(ran.code, 0, ran.stderr);
    assertMatch(ran.stdout, /84/);
  }));

Deno.test("README.md shows a plan that checks without a warning and runs, its variable set or not", async () => {
  await using temporary = await temporaryFolder();
  const folder = temporary.path;
  await Deno.writeTextFile(`${folder}/plan.yaml`, blocks("yaml")[1]!);
  const at = (env: Record<string, string>) => ({ cwd: folder, env });
  const checked = await runProgram(["plan", "check", "plan.yaml"], at({}));
  assertEquals(checked.code, 0, checked.stdout + checked.stderr);
  assertEquals(checked.stdout.includes("warning"), false, checked.stdout);
  for (const env of [{}, { MAX_TOKENS: "64000" }]) {
    const ran = await runProgram(["run", "-p", "plan.yaml", "How is it?"], at(env));
    assertEquals([ran.code, ran.stdout], [0, "It is fine.\n"], ran.stderr);
    assertMatch(ran.stderr, /\$0\.00/);
  }
  const unfit = await runProgram(["plan", "check", "plan.yaml"], at({ MAX_TOKENS: "a lot" }));
  assert(unfit.code !== 0, unfit.stdout);
  assertMatch(
    unfit.stdout + unfit.stderr,
    /plan\.yaml:3:\d+ +session\.context\.config\.max_tokens .*\$\{MAX_TOKENS\}/,
  );
});

Deno.test("README.md lists the flags of serve", async () => {
  const { code, stdout } = await runCommand(argumentsOf(command("help serve")));
  assertEquals(code, 0);
  for (const flag of ["--port", "--no-auth", "--store", "--config", "--limits.max_cost_usd"]) {
    assert(stdout.includes(flag), flag);
  }
});

Deno.test("README.md names tasks and files that are there, and src/docs/architecture.md folders", async () => {
  const { tasks } = JSON.parse(await Deno.readTextFile(`${ROOT}deno.json`));
  for (const [, task] of README.text.matchAll(/`deno task ([a-z:]+)`/g)) assert(tasks[task!], `task ${task}`);
  const links = [...README.text.matchAll(/\]\(([^)]+)\)/g)].map(([, link]) => link!);
  const { text } = await readPage("src/docs/architecture.md");
  const folders = [...text.matchAll(/^\| `((?:src|modules|plans|tests|main)[^`]*)` +\|/gm)]
    .map(([, folder]) => folder!);
  assert(folders.length > 10);
  for (const path of [...links, ...folders]) await Deno.stat(ROOT + path.split("#", 1)[0]);
});

Deno.test("README.md explains and runs the plan that is locked down", async () => {
  const [make, explain, run] = ["mkdir -p", "plan explain plans/locked", "run -p plans/"].map(command);
  await using temporary = await temporaryFolder();
  const folder = temporary.path;
  await shell(make!.replaceAll("/tmp/", `${folder}/`), { cwd: folder });
  assertMatch(await Deno.readTextFile(`${folder}/preamp-notes/garden.txt`), /ferns/);
  const explained = await runCommand(argumentsOf(explain!));
  assertEquals(explained.code, 0, explained.stderr);
  assertMatch(explained.stdout, /^ +net +127\.0\.0\.1:8484/m);
  const ran = await runProgram(argumentsOf(run!), { env: { PREAMP_HOME: `${folder}/home` } });
  assertEquals(
    [ran.code, ran.stdout],
    [0, "Each tool did what it was granted, and nothing else.\n"],
    ran.stderr,
  );
});
