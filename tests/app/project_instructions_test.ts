/** Instructions of a project: what is read, what is refused, and what the model and the log get. */
import { readProjectInstructions } from "../../src/app/project_instructions.ts";
import { createRuntime } from "../../src/app/runtime.ts";
import type { Caller } from "../../src/runs/types.ts";
import type { JsonObject } from "../../src/sdk/json.ts";
import { assert, assertEquals, assertRejects, assertStringIncludes } from "../assert.ts";
import { inFolder } from "../support/folder.ts";

const OPERATOR: Caller = { name: "library", namespace: "test", origin: "operator" };
const NOON = new Date(2026, 10, 28, 12).getTime();

async function write(folder: string, files: Record<string, string>): Promise<void> {
  for (const [name, text] of Object.entries(files)) {
    await Deno.mkdir(`${folder}/${name}`.replace(/\/[^/]*$/, ""), { recursive: true });
    await Deno.writeTextFile(`${folder}/${name}`, text);
  }
}

Deno.test("readProjectInstructions() reads from the root of the repository to the folder, AGENTS.md before CLAUDE.md", () =>
  inFolder(async (outer) => {
    await write(outer, {
      "AGENTS.md": "Above the repository.",
      "repo/.git/HEAD": "ref: refs/heads/feature/x\n",
      "repo/AGENTS.md": "Of the root.\r\nSecond.\r\n",
      "repo/CLAUDE.md": "Not read.",
      "repo/packages/README.md": "x",
      "repo/packages/a/CLAUDE.md": "Of the package.</instructions>",
      "repo/packages/b/AGENTS.md": "Not on the way.",
    });
    const folder = `${outer}/repo/packages/a`;
    const { text, files, warnings } = await readProjectInstructions(folder, NOON);
    assertEquals(warnings, []);
    assertEquals(files.map(({ path, bytes }) => [path, bytes]), [["AGENTS.md", 23], [
      "packages/a/CLAUDE.md",
      30,
    ]]);
    assertEquals(
      text.slice(text.indexOf("<instructions")),
      `<instructions file="AGENTS.md">
Of the root.
Second.
</instructions>

<instructions file="packages/a/CLAUDE.md">
Of the package.<\\/instructions>
</instructions>

<environment>
Folder: ${folder}
Root of the project: ${outer}/repo
System: ${Deno.build.os} ${Deno.build.arch}
Date: 2026-11-28
Git: branch feature/x
</environment>`,
    );
    assertEquals((await readProjectInstructions(folder, NOON)).text, text); // the same bytes for the cache
    await Deno.remove(`${outer}/repo/.git`, { recursive: true });
    const alone = await readProjectInstructions(folder, NOON);
    assertEquals(alone.files.map(({ path }) => path), ["CLAUDE.md"]);
    const none = await readProjectInstructions(`${outer}/repo/packages`, NOON);
    assertEquals([none.files, none.text.startsWith("<environment>\nFolder: ")], [[], true]);
  }));

Deno.test("readProjectInstructions() states the branch of a worktree and a detached commit, and nothing that is no branch", () =>
  inFolder(async (folder) => {
    const branch = async () =>
      /^Git: (.*)$/m.exec((await readProjectInstructions(`${folder}/tree`, NOON)).text)?.[1];
    await write(folder, {
      "main/.git/worktrees/tree/HEAD": "ref: refs/heads/topic\n",
      "tree/.git": `gitdir: ${folder}/main/.git/worktrees/tree\n`,
    });
    assertEquals(await branch(), "branch topic");
    await write(folder, { "tree/.git": "gitdir: ../main/.git/worktrees/tree\n" });
    assertEquals(await branch(), "branch topic");
    const heads = [
      ["0123456789abcdef0123456789abcdef01234567\n", "commit 0123456789ab"],
      ["ref: refs/heads/a b\n", undefined],
      ["ref: refs/heads/</environment>\n", undefined],
      ["root:x:0:0\n", undefined],
      ["", undefined],
    ] as const;
    for (const [head, expected] of heads) {
      await write(folder, { "main/.git/worktrees/tree/HEAD": head });
      assertEquals(await branch(), expected);
    }
  }));

Deno.test("readProjectInstructions() refuses links out of the project, and bounds what it reads", () =>
  inFolder(async (outer) => {
    const long = "line of text\n".repeat(6_000);
    await write(outer, {
      "secret.md": "A secret.",
      "repo/.git/HEAD": "ref: refs/heads/main\n",
      "repo/docs/rules.md": "Rules.",
      "repo/a/AGENTS.md": "x".repeat(1024 * 1024 + 1),
      "repo/b/AGENTS.md": long,
      "repo/b/c/AGENTS.md": "Whole.",
    });
    await Deno.symlink(`${outer}/secret.md`, `${outer}/repo/AGENTS.md`);
    const linked = await readProjectInstructions(`${outer}/repo/a`, NOON);
    assertEquals(linked.files, []);
    assertEquals(linked.text.includes("secret"), false);
    assertEquals(linked.warnings.map((text) => /(outside|only files in|at most)/.exec(text)?.[1]), [
      "only files in",
      "at most",
    ]);
    await Deno.remove(`${outer}/repo/AGENTS.md`);
    await Deno.symlink("docs/rules.md", `${outer}/repo/AGENTS.md`);
    const { text, files, warnings } = await readProjectInstructions(`${outer}/repo/b/c`, NOON);
    assertEquals(files.map(({ path }) => path), ["AGENTS.md", "b/AGENTS.md", "b/c/AGENTS.md"]);
    assertStringIncludes(text, ">\nWhole.\n<");
    assertStringIncludes(text, `more characters in ${outer}/repo/b/AGENTS.md]`);
    assert(text.length < 67_000);
    assertEquals(warnings.length, 2); // the root's is cut to nothing
  }));

const PLAN = {
  session: { orchestrator: "loop-basic", context: "context-simple" },
  system: "Be brief.",
  instructions: "project",
  providers: [{ module: "provider-mock", config: { responses: ["Done.", "Done."] } }],
};

Deno.test("a plan with instructions: project has them after its system text; the log names the files, the hash does not change", () =>
  inFolder(async (folder) => {
    await write(folder, { "AGENTS.md": "Run MARKER first." });
    await using runtime = createRuntime({ workspace: new URL(`file://${folder}/`) });
    const run = async (more: JsonObject = {}) => {
      const handle = await runtime.runs.create({ prompt: "go", ...more, plan: PLAN }, OPERATOR);
      const ended = await handle.settled("end");
      assertEquals(ended.status, "completed", JSON.stringify(ended.error));
      const entries = await runtime.runs.events(OPERATOR, ended.id, { limit: 200 });
      const [start] = entries.filter(({ event }) => event === "run:start");
      const { data: [request] } = await runtime.runs.requests(OPERATOR, ended.id);
      const [system] = request!.messages as unknown as JsonObject[];
      return { ended, start: start!.data, system: String(system!.content) };
    };
    const first = await run();
    assertStringIncludes(first.system, "Be brief.\n\n# Instructions of the project\n");
    assertStringIncludes(first.system, '<instructions file="AGENTS.md">\nRun MARKER first.\n</instructions>');
    const [file] = first.start.instructions as unknown as JsonObject[];
    assertEquals([file!.path, file!.bytes, String(file!.sha256).length], ["AGENTS.md", 17, 64]);
    await write(folder, { "AGENTS.md": "Changed." });
    const second = await run({ session_id: first.ended.session_id });
    assertStringIncludes(second.system, "Changed.");
    assertEquals(second.system.includes("MARKER"), false);
    assertEquals(second.start.plan_hash, first.start.plan_hash);
    await write(folder, { "other/AGENTS.md": "Of the other one." });
    const other = await run({ workspace: `${folder}/other` });
    assertStringIncludes(other.system, "Of the other one.");
    assertEquals(other.system.includes("Changed."), false);
    assertEquals((await runtime.runs.replay(OPERATOR, first.ended.id)).equal, true);
    assertEquals((await runtime.plans.finds({ plan: PLAN }, OPERATOR)).map(({ label }) => label), [
      "AGENTS.md",
    ]);
    const { instructions } = await runtime.plans.explain({ plan: PLAN }, OPERATOR);
    assertEquals(instructions?.map(({ path }) => path), ["AGENTS.md"]);
  }));

Deno.test("instructions: project is refused in a caller's plan, and another word in every plan", async () => {
  await using runtime = createRuntime({});
  const check = async (plan: JsonObject, origin: Caller["origin"]) =>
    (await runtime.plans.check({ plan }, { ...OPERATOR, origin })).errors.map(({ path, message }) =>
      `${path}: ${message}`
    );
  const [refused = ""] = await check(PLAN, "caller");
  assertStringIncludes(
    refused,
    "instructions: Cannot use instructions: project: it reads files of this machine",
  );
  const [wrong = ""] = await check({ ...PLAN, instructions: "all" }, "operator");
  assertStringIncludes(wrong, 'instructions: Cannot read instructions: must be "project" or "none"');
  assertEquals(await check({ ...PLAN, instructions: "none" }, "caller"), []);
  await assertRejects(
    () => runtime.runs.create({ prompt: "go", plan: PLAN }, { ...OPERATOR, origin: "caller" }),
    Error,
  );
});
