/** Texts in files that steer the model: part of the plan's hash, of its lock and of its diff. */
import { createRuntime } from "../../src/app/runtime.ts";
import type { Runtime } from "../../src/app/types.ts";
import { formatLock, lockDifferences } from "../../src/plan/lock.ts";
import { defaultPolicy } from "../../src/policy/settings.ts";
import type { Caller } from "../../src/runs/types.ts";
import type { JsonObject } from "../../src/sdk/json.ts";
import { assertEquals, assertMatch, assertNotEquals, assertStringIncludes } from "../assert.ts";
import { inFolder } from "../support/folder.ts";
import { refusal } from "../support/plans.ts";

const OPERATOR: Caller = { name: "library", namespace: "test", origin: "operator" };

const PLAN: JsonObject = {
  session: {
    orchestrator: "loop-basic",
    context: {
      module: "context-persistent",
      config: { memory_files: ["./memory/tone.md"] },
      permissions: { read: ["./memory"] },
    },
  },
  system: { file: "./system.md" },
  providers: [{ module: "provider-mock", config: { responses: ["Done."] } }],
  tools: [{ module: "tool-skills", config: { skills: ["./skills"] }, permissions: { read: ["./skills"] } }],
  agents: { reviewer: { description: "Reviews", system: { file: "./reviewer.md" } } },
};

const FILES = {
  "system.md": "Be brief.",
  "reviewer.md": "Be strict.",
  "memory/tone.md": "Be kind.",
  "skills/release/SKILL.md": "---\nname: release\ndescription: Releases\n---\nTest first.",
};

async function write(folder: string, files: Record<string, string>): Promise<void> {
  for (const [name, text] of Object.entries(files)) {
    await Deno.mkdir(`${folder}/${name}`.replace(/\/[^/]*$/, ""), { recursive: true });
    await Deno.writeTextFile(`${folder}/${name}`, text);
  }
}

const place = (folder: string) => ({ base_url: `file://${folder}/plan.yaml` });

async function hashIn(runtime: Runtime, folder: string): Promise<string> {
  const { errors, plan_hash = "" } = await runtime.plans.check({ plan: PLAN }, OPERATOR, place(folder));
  assertEquals(errors, []);
  const explained = await runtime.plans.explain({ plan: PLAN }, OPERATOR, place(folder));
  assertEquals(explained.plan_hash, plan_hash);
  const handle = await runtime.runs.create({ prompt: "go", plan: PLAN }, OPERATOR, place(folder));
  const run = await handle.settled("end");
  assertEquals([run.status, run.plan_hash], ["completed", plan_hash]);
  return plan_hash;
}

Deno.test("the hash of a plan changes with each text in a file that steers its model, and is the same elsewhere", () =>
  inFolder(async (folder) => {
    await using runtime = createRuntime({});
    await write(`${folder}/a`, FILES);
    await write(`${folder}/b`, FILES);
    const hash = await hashIn(runtime, `${folder}/a`);
    assertEquals(await hashIn(runtime, `${folder}/b`), hash);
    for (const name of Object.keys(FILES) as (keyof typeof FILES)[]) {
      await write(`${folder}/a`, { [name]: `${FILES[name]} Changed.` });
      assertNotEquals(await hashIn(runtime, `${folder}/a`), hash, name);
      await write(`${folder}/a`, FILES);
    }
    assertEquals(await hashIn(runtime, `${folder}/a`), hash);
    const { texts } = await runtime.plans.explain({ plan: PLAN }, OPERATOR, place(`${folder}/a`));
    assertEquals(texts.map(({ label, url }) => [label, url]), [
      ["system", "./system.md"],
      ["agents.reviewer.system", "./reviewer.md"],
      ["memory file tone.md", "./memory/tone.md"],
      ["skill release", "./skills/release/SKILL.md"],
    ]);
  }));

Deno.test("a lock pins the texts: a changed one stops a run before it begins, a new one warns, or is refused as frozen", () =>
  inFolder(async (folder) => {
    await write(folder, FILES);
    await using runtime = createRuntime({});
    const lock = await runtime.plans.lock({ plan: PLAN }, OPERATOR, place(folder));
    assertEquals(Object.keys(lock.texts), [
      "./memory/tone.md",
      "./reviewer.md",
      "./skills/release/SKILL.md",
      "./system.md",
    ]);
    await Deno.writeTextFile(`${folder}/plan.lock.json`, formatLock(lock));
    await hashIn(runtime, folder);
    const { agents: _, ...alone } = PLAN;
    const start = (used: Runtime) => used.runs.create({ prompt: "go", plan: alone }, OPERATOR, place(folder));
    for (const name of ["system.md", "memory/tone.md", "skills/release/SKILL.md"] as const) {
      await write(folder, { [name]: `${FILES[name]} Changed.` });
      const error = await refusal(() => start(runtime));
      assertEquals(error.code, "module_integrity_mismatch");
      assertStringIncludes(error.message, `Cannot use the text ./${name}: it has changed since`);
      const fresh = await runtime.plans.lock({ plan: PLAN }, OPERATOR, place(folder));
      assertEquals(lockDifferences(lock, fresh), [`the text ./${name} has changed`]);
      await write(folder, FILES);
    }
    await write(folder, { "skills/more/SKILL.md": "---\nname: more\ndescription: d\n---\nx" });
    const run = await (await start(runtime)).settled("end");
    assertEquals(run.warnings.map(({ code, message }) => [code, message]), [
      ["text_not_locked", "The lock does not have the text ./skills/more/SKILL.md: run preamp plan lock"],
    ]);
    const policy = defaultPolicy();
    await using frozen = createRuntime({
      policy: { ...policy, modules: { ...policy.modules, frozen: true } },
    });
    assertEquals((await refusal(() => start(frozen))).code, "module_pin_required");
    await Deno.remove(`${folder}/plan.lock.json`);
    assertEquals((await refusal(() => start(frozen))).code, "module_pin_required");
  }));

Deno.test("a diff of two plans shows a changed, a new and a removed skill, and changed files of the system text", () =>
  inFolder(async (folder) => {
    await using runtime = createRuntime({});
    await write(`${folder}/a`, { ...FILES, "skills/old/SKILL.md": "---\nname: old\ndescription: d\n---\nx" });
    await write(`${folder}/b`, {
      ...FILES,
      "system.md": "Be long.",
      "skills/release/SKILL.md": `${FILES["skills/release/SKILL.md"]} Changed.`,
      "skills/new/SKILL.md": "---\nname: new\ndescription: d\n---\nx",
    });
    const side = (name: string) => ({ plan: PLAN, ...place(`${folder}/${name}`) });
    const { widens, other } = await runtime.plans.diff(side("a"), side("b"), OPERATOR);
    assertEquals(widens, []);
    assertEquals(other.map(({ message }) => message).sort(), [
      "The system instruction changed",
      "The text of skill new was added",
      "The text of skill old was removed",
      "The text of skill release changed",
    ]);
    assertMatch(String(other.find(({ path }) => path === "texts.skill release")?.from), /^[0-9a-f]{64}$/);
  }));
