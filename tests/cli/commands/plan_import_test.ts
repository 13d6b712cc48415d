import { cli } from "../../../src/cli/mod.ts";
import { parseDocument } from "../../../src/plan/parse/parse.ts";
import { assertEquals, assertMatch, assertStringIncludes } from "../../assert.ts";
import { inFolder } from "../../support/folder.ts";
import { fakeIo } from "../../support/io.ts";

const BUNDLE = `---
bundle: { name: root, description: Small }
session: { orchestrator: loop-basic, context: context-simple }
providers: [{ module: provider-mock, config: { responses: [Hello.] } }]
tools: [{ module: tool-todo }, { module: tool-lsp }]
agents: { include: ["root:helper"] }
---
Be brief. @root:notes.md
`;

async function inBundle(body: (cwd: URL) => Promise<void>): Promise<void> {
  await inFolder(async (path) => {
    const cwd = new URL(`file://${path}/`);
    await Deno.mkdir(new URL("agents/", cwd));
    await Deno.writeTextFile(new URL("bundle.md", cwd), BUNDLE);
    await Deno.writeTextFile(new URL("notes.md", cwd), "Notes.");
    await Deno.writeTextFile(
      new URL("agents/helper.md", cwd),
      "---\nname: helper\ndescription: Helps\n---\nYou help.\n",
    );
    await body(cwd);
  });
}

Deno.test("plan import prints a plan with its origins, and a report", async () => {
  await inBundle(async (cwd) => {
    const io = fakeIo({ cwd });
    assertEquals(await cli(["plan", "import", "."], io), 0, io.stderr);
    assertStringIncludes(io.stdout, "# from agents/helper.md, included by bundle.md\n");
    assertMatch(io.stderr, /^\.: 4 modules run here, 1 does not: tool-lsp\n/);
    assertStringIncludes(io.stderr, "warning: tool-lsp of bundle.md is left out: ");
    const { data } = await parseDocument(io.stdout);
    assertEquals(data.description, "Small");
    const json = fakeIo({ cwd });
    assertEquals(await cli(["plan", "import", "bundle.md", "--json"], json), 0);
    assertEquals(JSON.parse(json.stdout).plan, data);
  });
});

Deno.test("plan import --strict writes nothing when something is missing", async () => {
  await inBundle(async (cwd) => {
    const io = fakeIo({ cwd });
    assertEquals(await cli(["plan", "import", "bundle.md", "--strict", "-o", "plan.yaml"], io), 3);
    assertStringIncludes(io.stderr, "error: Cannot import it with --strict: 1 warning");
    assertEquals(await Deno.stat(new URL("plan.yaml", cwd)).catch(() => null), null);
  });
});

Deno.test("plan import writes a plan that runs, and never over another file", async () => {
  await inBundle(async (cwd) => {
    const io = fakeIo({ cwd });
    assertEquals(await cli(["plan", "import", "bundle.md", "-o", "out/plan.yaml"], io), 0, io.stderr);
    const again = fakeIo({ cwd });
    assertEquals(await cli(["plan", "import", "bundle.md", "-o", "out/plan.yaml"], again), 2);
    assertStringIncludes(again.stderr, "it exists");
    assertEquals(
      await cli(["plan", "import", "bundle.md", "-o", "out/plan.yaml", "--update"], fakeIo({ cwd })),
      0,
    );
    for (const plan of ["out/plan.yaml", "bundle.md"]) {
      const run = fakeIo({ cwd });
      assertEquals(await cli(["run", "-p", plan, "Hi"], run), 0, run.stderr);
      assertEquals(run.stdout, "Hello.\n");
    }
  });
});

Deno.test("plan import writes long texts beside the plan", async () => {
  await inBundle(async (cwd) => {
    await Deno.writeTextFile(new URL("notes.md", cwd), "A long text of ${LETTERS}. ".repeat(9_000));
    const io = fakeIo({ cwd });
    assertEquals(await cli(["plan", "import", "bundle.md"], io), 2);
    assertStringIncludes(io.stderr, "name a file with -o");
    const run = fakeIo({ cwd });
    await Deno.writeTextFile(
      new URL("agents/helper.md", cwd),
      `---\nname: helper\n---\n${"Help. ".repeat(9_000)}`,
    );
    assertEquals(await cli(["plan", "check", "bundle.md"], run), 3);
    assertStringIncludes(run.stdout, "preamp plan import -o plan.yaml writes them beside a plan");
    const written = fakeIo({ cwd });
    assertEquals(await cli(["plan", "import", "bundle.md", "-o", "plan.yaml"], written), 0, written.stderr);
    assertStringIncludes(written.stdout, "1 text in plan.files/");
    assertStringIncludes(
      await Deno.readTextFile(new URL("plan.files/system.md", cwd)),
      "text of ${LETTERS}. A",
    );
    const check = fakeIo({ cwd });
    assertEquals(await cli(["plan", "check", "plan.yaml"], check), 0, check.stdout);
  });
});

const HARBOR = new URL("../../fixtures/bundles/harbor/bundle.md", import.meta.url);

Deno.test("run uses a whole bundle: files, a shell, an agent and a skill", async () => {
  await inFolder(async (path) => {
    await Deno.writeTextFile(`${path}/berths.txt`, "1 Albatros\n2 free\n");
    const io = fakeIo({ cwd: new URL(`file://${path}/`) });
    assertEquals(
      await cli(["run", "-p", HARBOR.pathname, "--yes", "Which berth is free?"], io),
      0,
      io.stderr,
    );
    assertEquals(io.stdout, "Berth 2 is free.\n");
    for (
      const said of ["2 free", "1. Look up the day.", "Berth 2 is free, says", "2 berths.txt (exit code 0)"]
    ) {
      assertStringIncludes(io.stderr, said);
    }
  });
});

Deno.test("run --mode holds the gate of a mode that a bundle brings", async () => {
  await inFolder(async (path) => {
    await Deno.writeTextFile(`${path}/berths.txt`, "2 free\n");
    const io = fakeIo({ cwd: new URL(`file://${path}/`) });
    assertEquals(
      await cli(["run", "-p", HARBOR.pathname, "--mode", "careful", "--yes", "Which berth?"], io),
      0,
      io.stderr,
    );
    assertMatch(io.stderr, /skill .*the mode careful/);
    assertMatch(io.stderr, /delegate .*the mode careful/);
    assertEquals(io.stderr.includes("Look up the day"), false);
    assertStringIncludes(io.stderr, "1 berths.txt (exit code 0)");
  });
});

Deno.test("plan check says what a file of Amplifier is that is no plan", async () => {
  await inBundle(async (cwd) => {
    await Deno.writeTextFile(new URL("recipe.yaml", cwd), "name: r\nsteps: [{ id: a }]\n");
    const io = fakeIo({ cwd });
    assertEquals(await cli(["plan", "check", "recipe.yaml", "notes.md", "agents/helper.md"], io), 3);
    assertMatch(io.stdout, /recipe\.yaml {2}Cannot make a plan of recipe\.yaml: it is a recipe of Amplifier/);
    assertMatch(io.stdout, /Cannot make a plan of notes\.md: it is a text without the keys/);
    assertMatch(io.stdout, /^agents\/helper\.md: ok/m);
  });
});
