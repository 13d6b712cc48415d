/** What retention and DELETE erase: everything that was said in a session. */
import { contentOf, eraseNamespace } from "../../src/runs/storage/erase.ts";
import { openSqliteStore } from "../../src/store/sqlite/sqlite_store.ts";
import { assert, assertEquals } from "../assert.ts";
import { asking, codeOf } from "../support/asking_runs.ts";
import { temporaryFolder } from "../support/folder.ts";
import { CALLER, service } from "../support/runs.ts";
import { calls } from "../support/sessions.ts";

const SECRET = "the-words-that-must-go";
const DAY_MS = 86_400_000;

/** Returns a service over a SQLite file with one session, and the text of the files. */
async function sqliteService(folder: string) {
  const store = await openSqliteStore(`${folder}/runs.db`, { now: () => 0 });
  const plan = {
    ...asking({ approval_prompt: SECRET }),
    providers: [[calls(["t", { text: SECRET }]), SECRET]],
  };
  const made = service({ plans: { plan }, store: () => store });
  const first = await made.post("plan", { prompt: SECRET });
  const { approvals: [approval] } = await first.settled("attention");
  await made.runs.decide(CALLER, first.id, approval!.id, { decision: "deny", reason: SECRET });
  await first.settled("end");
  const { session_id } = first;
  const files = async () => {
    const decoder = new TextDecoder("latin1");
    const texts = [];
    for (const name of ["runs.db", "runs.db-wal"]) {
      texts.push(decoder.decode(await Deno.readFile(`${folder}/${name}`)));
    }
    return texts.join("");
  };
  return { ...made, store, session_id, run_id: first.id, files };
}

Deno.test("deleting a session erases its runs, messages, approvals and logs, bytes included", async () => {
  await using folder = await temporaryFolder();
  const { store, runs, session_id, run_id, files } = await sqliteService(folder.path);
  assert((await files()).includes(SECRET));
  await runs.sessions.remove(CALLER, session_id);
  assertEquals(await codeOf(() => runs.get(CALLER, run_id)), "not_found");
  assertEquals(await codeOf(() => runs.sessions.get(CALLER, session_id)), "not_found");
  assertEquals([await store.entries(run_id, 0, 10), (await runs.list(CALLER, {})).data], [null, []]);
  assertEquals((await files()).includes(SECRET), false);
  await runs.close();
  await store.close();
});

Deno.test("erasing a namespace erases its runs, messages and approvals, bytes included, and no other", async () => {
  await using folder = await temporaryFolder();
  const { store, runs, run_id, files } = await sqliteService(folder.path);
  const content = { runs: 1, open: 0, sessions: 1 };
  await eraseNamespace(store, "b");
  assertEquals(await contentOf(store, "a"), content);
  await eraseNamespace(store, "a");
  assertEquals(await contentOf(store, "a"), { runs: 0, open: 0, sessions: 0 });
  assertEquals([await store.entries(run_id, 0, 10), (await files()).includes(SECRET)], [null, false]);
  await runs.close();
  await store.close();
});

Deno.test("a run and its session expire retention.days after the last run", async () => {
  const { runs, clock, finish } = service({ limits: { retention_days: 2 } });
  const first = await finish("plain");
  await clock.advance(1.5 * DAY_MS);
  const second = await finish("plain", { session_id: first.session_id });
  await clock.advance(1 * DAY_MS);
  assertEquals(await codeOf(() => runs.get(CALLER, first.id)), "not_found");
  assertEquals((await runs.get(CALLER, second.id)).status, "completed");
  assertEquals((await runs.sessions.messages(CALLER, first.session_id)).data.length, 4);
  await clock.advance(1.5 * DAY_MS);
  assertEquals(await codeOf(() => runs.get(CALLER, second.id)), "not_found");
  assertEquals(await codeOf(() => runs.sessions.get(CALLER, first.session_id)), "not_found");
  assertEquals((await runs.list(CALLER, {})).data, []);
  assertEquals((await runs.sessions.list(CALLER, {})).data, []);
});
