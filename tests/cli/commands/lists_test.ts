import { cli } from "../../../src/cli/mod.ts";
import { EXIT } from "../../../src/cli/errors.ts";
import { assertEquals, assertMatch, assertStringIncludes } from "../../assert.ts";
import { fakeIo } from "../../support/io.ts";
import { temporaryFolder } from "../../support/folder.ts";

const PLAN = {
  session: { orchestrator: "loop-basic", context: "context-simple" },
  providers: [{ module: "provider-mock", config: { response: "Hello." } }],
};

Deno.test("sessions and runs list what run --session stored, the last used first", async () => {
  await using folder = await temporaryFolder();
  await Deno.writeTextFile(`${folder.path}/plan.json`, JSON.stringify(PLAN));
  const run = async (...words: string[]) => {
    const io = fakeIo({
      cwd: new URL(`file://${folder.path}/`),
      env: { PREAMP_HOME: `${folder.path}/home` },
    });
    return { code: await cli(words, io), stdout: io.stdout, stderr: io.stderr };
  };
  const listed = async (...words: string[]) => JSON.parse((await run(...words, "--json")).stdout).data;
  assertMatch(
    (await run("sessions")).stdout,
    /^No session is stored; begin one with preamp run --session new/,
  );
  assertEquals((await run("runs")).stdout, "No run is stored\n");
  const plan = ["-p", "plan.json"];
  assertEquals((await run("run", ...plan, "not stored")).code, EXIT.done);
  assertEquals((await run("run", ...plan, "--session", "new", "the first")).code, EXIT.done);
  assertEquals((await run("run", ...plan, "--session", "new", "the second")).code, EXIT.done);
  const [second, first] = await listed("sessions");
  assertEquals((await run("run", "--session", first.id, "again")).code, EXIT.done);
  const [newest] = await listed("sessions", "--last", "1");
  assertEquals([newest.id, newest.run_count], [first.id, 2]);
  const table = (await run("sessions")).stdout.split("\n");
  assertMatch(table[1]!, /^ses_\S+ +\d{4}-\d\d-\d\d \d\d:\d\d +2 +the first$/);
  assertMatch(table[2]!, / 1 +the second$/);
  const runs = await listed("runs");
  assertEquals(runs.map((one: { session_id: string }) => one.session_id), [first.id, second.id, first.id]);
  assertEquals((await listed("runs", "--session", second.id)).length, 1);
  assertMatch((await run("runs")).stdout, /^run_\S+ +\S+ \S+ +completed +[\d,]+ +- +ses_/m);
});

Deno.test("run names the list of sessions for one that is not stored", async () => {
  await using folder = await temporaryFolder();
  const io = fakeIo({ env: { PREAMP_HOME: folder.path } });
  assertEquals(await cli(["run", "--session", "nope", "hi"], io), EXIT.usage);
  assertStringIncludes(
    io.stderr,
    'Cannot continue session "nope": there is no such session; preamp sessions lists them',
  );
});
