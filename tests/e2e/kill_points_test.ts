/**
 * kill -9 before and after every commit of a scripted turn: another process ends each run, and no side effect
 * is repeated.
 */
import { assert, assertEquals } from "../assert.ts";
import { inFolder } from "../support/folder.ts";
import { POSTGRES, startPostgres } from "../support/postgres.ts";
import type { Json } from "./program.ts";

const PROGRAM = new URL("./killed_turn.ts", import.meta.url).pathname;
/** Processes at once. */
const AT_ONCE = 4;
const MAX_COMMITS = 40;

async function start(args: readonly string[]): Promise<{ killed: boolean; stdout: string }> {
  const { success, signal, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--no-check", "--allow-all", PROGRAM, ...args],
    stdout: "piped",
    stderr: "piped",
  }).output();
  const decoder = new TextDecoder();
  assert(success || signal === "SIGKILL", decoder.decode(stderr));
  return { killed: signal === "SIGKILL", stdout: decoder.decode(stdout) };
}

async function checkKillPoints(url: string, effects: string): Promise<void> {
  await Deno.writeTextFile(effects, "");
  const kill = async (when: string, commit: number) =>
    (await start([url, effects, `${when}-${commit}`, when, String(commit)])).killed;
  let commits = MAX_COMMITS;
  for (let first = 1; first < commits; first += AT_ONCE / 2) {
    const some = Array.from({ length: AT_ONCE / 2 }, (_, index) => first + index);
    const killed = await Promise.all(
      some.flatMap((commit) => [kill("before", commit), kill("after", commit)]),
    );
    if (killed.includes(false)) commits = first;
  }
  assert(commits > 5 && commits < MAX_COMMITS, `${commits} commits`);
  const { stdout } = await start([url, effects, "recover"]);
  const found: Json[] = JSON.parse(stdout);
  assert(found.length >= 2 * commits - 3, `${found.length} runs`); // killed before its first commit, there is no run
  const lines = (await Deno.readTextFile(effects)).split("\n");
  for (const { run, events, next } of found) {
    const asked = events.find(({ event }: Json) => event === "prompt:submit")?.data.prompt ?? run.id;
    const count = (event: string) => events.filter((entry: Json) => entry.event === event).length;
    assertEquals([asked, run.status, next], [asked, "completed", "completed"]);
    assertEquals(
      events.map(({ seq }: Json) => seq),
      events.map((_: Json, index: number) => index + 1),
      asked,
    );
    assertEquals([count("tool:post") + count("tool:error"), count("run:end")], [1, 1], asked);
    const times = lines.filter((line) => line === asked).length;
    assert(times <= 1 && (count("tool:post") === 0 || times === 1), `${asked}: ${times} side effects`);
  }
}

Deno.test("kill -9 around every commit of a turn on SQLite: every run ends, no side effect is repeated", () =>
  inFolder((folder) => checkKillPoints(`sqlite:${folder}/runs.db`, `${folder}/effects`)));

Deno.test({
  name: "kill -9 around every commit of a turn on Postgres: every run ends, no side effect is repeated",
  ignore: POSTGRES === null,
  fn: () =>
    inFolder(async (folder) => {
      await using database = await startPostgres();
      await checkKillPoints(database.url, `${folder}/effects`);
    }),
});
