/** Undo, and the next message of a conversation, after `preamp run` was killed: neither waits. */
import { assert, assertEquals, assertMatch } from "../assert.ts";
import { filesPlan, write } from "../support/file_plans.ts";
import { inFolder } from "../support/folder.ts";
import { runProgram, startProgram } from "./program.ts";

const WRITE = write("new/a.txt", "a\n");
const LATE = { text: "late", delay_ms: 600_000 };

/** Kills a `preamp run` that has written `new/a.txt` and waits for its model. */
async function killRun(folder: string): Promise<void> {
  await Deno.writeTextFile(`${folder}/plan.json`, JSON.stringify(filesPlan(folder, [WRITE, LATE])));
  const args = ["run", "-p", "plan.json", "--workspace", folder, "--session", "new", "do it"];
  await using program = await startProgram(args, { cwd: folder, env: { PREAMP_HOME: `${folder}/home` } });
  await program.stderr.until((text) => /called write[^]*asking/.test(text));
  program.kill("SIGKILL");
  assertEquals((await program.ended).signal, "SIGKILL");
  // the model call that was lost is the next one of the script
  await Deno.writeTextFile(`${folder}/plan.json`, JSON.stringify(filesPlan(folder, [WRITE, "continued"])));
}

async function preamp(folder: string, ...args: string[]) {
  return await runProgram(args, { cwd: folder, env: { PREAMP_HOME: `${folder}/home` } });
}

Deno.test({
  name:
    "after a kill, preamp undo last takes the files back, and the conversation continues, without waiting",
  fn: () =>
    inFolder(async (folder) => {
      await killRun(folder);
      const undone = await preamp(folder, "undo", "last");
      assertEquals(undone.code, 0, undone.stderr);
      assertMatch(undone.stdout, /^"do it" \(run_\w+, .* UTC\):\ndeleted \S+new\/a\.txt\n$/);
      assertEquals(await Deno.stat(`${folder}/new`).catch(() => null), null);
      const next = await preamp(folder, "run", "-p", "plan.json", "--session", "last", "continue");
      assertEquals([next.code, next.stdout], [0, "continued\n"], next.stderr);
      const { data } = JSON.parse((await preamp(folder, "runs", "--json")).stdout);
      assertEquals([data[0].status, data.at(-1).status], ["completed", "failed"]);
      assertEquals(data.at(-1).error.code, "interrupted");
    }),
});

Deno.test({
  name: "after a kill, preamp chat continues the conversation with the next message",
  fn: () =>
    inFolder(async (folder) => {
      await killRun(folder);
      const { code, stdout, stderr } = await runProgram(["chat", "-p", "plan.json", "--session", "last"], {
        cwd: folder,
        env: { PREAMP_HOME: `${folder}/home` },
        stdin: "continue\n/undo list\n/undo\n",
      });
      assertEquals(code, 0, stderr);
      assertMatch(stdout, /continued\n1 {2}"do it" .*1 file: \S+new\/a\.txt\n/);
      assert(!stderr.includes("another process"), stderr);
      assertEquals(await Deno.stat(`${folder}/new`).catch(() => null), null);
    }),
});

Deno.test({
  name: "commands that only read leave the run of a killed program as it is",
  fn: () =>
    inFolder(async (folder) => {
      await killRun(folder);
      for (const args of [["runs", "--json"], ["sessions", "--json"], ["runs", "--json"]]) {
        assertEquals((await preamp(folder, ...args)).code, 0);
      }
      await Deno.writeTextFile(`${folder}/plan.json`, JSON.stringify(filesPlan(folder, ["hello"])));
      const other = await preamp(folder, "run", "-p", "plan.json", "--session", "new", "something else");
      assertEquals([other.code, other.stdout], [0, "hello\n"], other.stderr);
      const { data } = JSON.parse((await preamp(folder, "runs", "--json")).stdout);
      assertEquals(data.at(-1).status, "running"); // its next message or its undo decides
      assertEquals(await Deno.readTextFile(`${folder}/new/a.txt`), "a\n");
    }),
});
