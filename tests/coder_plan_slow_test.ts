/** Runs plans/coder.yaml on a copy of plans/broken_project, with its questions answered one by one. */
import { createRuntime } from "../src/app/runtime.ts";
import type { Approval, Caller } from "../src/runs/types.ts";
import { PreampClient } from "preamp/client";
import { createPreamp } from "../src/server/mod.ts";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "./assert.ts";
import { temporaryFolder } from "./support/folder.ts";

const PLANS = new URL("../plans/", import.meta.url);
const CALLER: Caller = { name: "library", namespace: "test", origin: "operator" };
const PROMPT = "The tests fail: find out why, and mend it";

/** A folder with a copy of the project, beside a file that no one may touch. */
async function broken() {
  const temporary = await temporaryFolder();
  const folder = `${temporary.path}/bill`;
  await Deno.mkdir(folder);
  for await (const { name } of Deno.readDir(new URL("broken_project/", PLANS))) {
    await Deno.copyFile(new URL(`broken_project/${name}`, PLANS), `${folder}/${name}`);
  }
  await Deno.writeTextFile(`${temporary.path}/outside.txt`, "outside");
  return Object.assign(temporary, {
    folder,
    test: async () =>
      (await new Deno.Command("sh", { args: ["test.sh"], cwd: folder, stdout: "null" }).output()).success,
    files: async () => {
      const names = await Array.fromAsync(Deno.readDir(temporary.path), ({ name }) => name);
      const own = await Array.fromAsync(Deno.readDir(folder), ({ name }) => name);
      return [...names, ...own].toSorted();
    },
  });
}

const FILES = ["README.md", "bill", "outside.txt", "test.sh", "total.sh"];

/** Runs the plan; `answer` decides about each question. Resolves to the questions and the results. */
async function mend(folder: string, answer: (approval: Approval) => "allow" | "deny") {
  const runtime = createRuntime({ plans: PLANS, workspace: new URL(`file://${folder}/`) });
  try {
    const handle = await runtime.runs.create({ plan_ref: "coder", prompt: PROMPT }, CALLER);
    const asked: string[] = [];
    let run = await handle.settled("attention");
    while (run.status === "awaiting_approval") {
      const approval = run.approvals.find(({ status }) => status === "pending")!;
      asked.push(`${approval.prompt} ${approval.preview?.split("\n").at(-1) ?? ""}`);
      await runtime.runs.decide(CALLER, run.id, approval.id, { decision: answer(approval) });
      run = await handle.settled("attention");
    }
    const entries = await runtime.runs.events(CALLER, run.id, { limit: 1000 });
    const results = entries.filter(({ event }) => event === "tool:post").map(({ data }) =>
      `${data.tool_name}: ${JSON.stringify(data.result)}`
    );
    assertEquals(await runtime.runs.replay(CALLER, run.id), { equal: true });
    return { run, asked, results };
  } finally {
    await runtime.close();
  }
}

Deno.test("plans/coder.yaml finds, edits and tests a broken project, and asks before commands and edits", async () => {
  await using project = await broken();
  assertEquals(await project.test(), false);
  const { run, asked, results } = await mend(project.folder, () => "allow");
  assertEquals([run.status, run.error, run.warnings], ["completed", null, []]);
  assertEquals(asked, [
    "Allow bash? ",
    "Allow edit? +echo $((sum + sum * tip / 100))",
    "Allow bash? ",
  ]);
  assertEquals(await project.test(), true);
  assertEquals(await project.files(), FILES);
  assertEquals(await Deno.readTextFile(`${project.folder}/../outside.txt`), "outside");
  const [glob, ...rest] = results;
  assertMatch(glob ?? "", /^(?:glob|bash)/);
  assert(rest.some((result) => /^task: .*tip is in percent/.test(result)));
  assert(
    rest.some((result) => result.startsWith("edit: ") && result.includes("+echo $((sum + sum * tip / 100))")),
  );
  assertStringIncludes(rest.at(-1) ?? "", "all tests pass");
});

Deno.test("plans/coder.yaml changes nothing when a person denies its calls", async () => {
  await using project = await broken();
  const before = await Deno.readTextFile(`${project.folder}/total.sh`);
  const { run, asked } = await mend(project.folder, () => "deny");
  assertEquals([run.status, asked.length], ["completed", 3]);
  assertEquals(await Deno.readTextFile(`${project.folder}/total.sh`), before);
  assertEquals(await project.files(), FILES);
});

Deno.test("plans/coder.yaml works over HTTP, with approvals by POST", async () => {
  await using project = await broken();
  const preamp = createPreamp({
    authenticate: null,
    plans: PLANS,
    workspace: new URL(`file://${project.folder}/`),
  });
  const client = new PreampClient({
    url: "http://localhost",
    fetch: (input, init) => preamp.fetch(new Request(input, init)),
  });
  try {
    let answered = 0;
    let id = "";
    for await (const entry of client.stream({ plan_ref: "coder", prompt: PROMPT })) {
      if (entry.event === "approval:required") {
        const { approvals } = await client.getRun(entry.run_id);
        await client.answer(approvals.find(({ status }) => status === "pending")!, "allow");
        answered++;
      }
      id = entry.run_id;
    }
    assertEquals([(await client.getRun(id)).status, answered], ["completed", 3]);
    assertEquals(await project.test(), true);
  } finally {
    await preamp.close();
  }
});
