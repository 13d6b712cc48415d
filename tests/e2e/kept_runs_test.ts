/**
 * What each store keeps: runs and idempotency keys over a restart, `410` after expiry, and a database that
 * takes no writes.
 */
import pg from "pg";
import { openStore } from "../../src/server/mod.ts";
import { assert, assertEquals } from "../assert.ts";
import { inFolder } from "../support/folder.ts";
import { POSTGRES, startPostgres } from "../support/postgres.ts";
import { startServer } from "./program.ts";
import { call, KEYS, planOf } from "./shared_store.ts";

const REQUEST = { prompt: "hello", plan: planOf(0) };

/** Runs on a store, restarts the server, lets the log of the run expire, and restarts it again. */
async function checkKept(store: string): Promise<void> {
  const flags = ["--store", store];
  const key = { "idempotency-key": "kept-1" };
  let run_id: string;
  {
    await using server = await startServer(flags, { env: KEYS });
    const { body } = await call(server, "/v1/runs", REQUEST, key);
    assertEquals(body.status, "completed", JSON.stringify(body));
    run_id = body.id;
  }
  {
    await using server = await startServer(flags, { env: KEYS });
    assertEquals((await call(server, "/v1/runs", REQUEST, key)).body.id, run_id);
    const other = await call(server, "/v1/runs", { ...REQUEST, prompt: "other" }, key);
    assertEquals(other.body.error.code, "idempotency_conflict");
    assertEquals((await call(server, `/v1/runs/${run_id}/events`)).status, 200);
  }
  const opened = await openStore(store);
  await opened.commit([{ expireLog: run_id, at_ms: 1 }]);
  await opened.close();
  await using server = await startServer(flags, { env: KEYS });
  const gone = await call(server, `/v1/runs/${run_id}/events`);
  assertEquals([gone.status, gone.body.error.code, gone.body.run.status], [410, "log_expired", "completed"]);
  assertEquals((await call(server, `/v1/runs/${run_id}`)).body.status, "completed");
}

Deno.test("sqlite: a restart keeps runs and idempotency keys; the events of an expired log answer 410", () =>
  inFolder((folder) => checkKept(`sqlite:${folder}/runs.db`)));

Deno.test({
  name: "postgres: a restart keeps runs and idempotency keys; the events of an expired log answer 410",
  ignore: POSTGRES === null,
  async fn() {
    await using database = await startPostgres();
    await checkKept(database.url);
  },
});

Deno.test({
  name: "a Postgres that takes no writes answers 507, loses nothing, and the server writes again when it can",
  ignore: POSTGRES === null,
  async fn() {
    await using database = await startPostgres();
    const readOnlyOfNew = async () => {
      const client = new pg.Client({ connectionString: database.url });
      await client.connect();
      const { rows } = await client.query("SHOW default_transaction_read_only");
      await client.end();
      return rows[0].default_transaction_read_only;
    };
    const setReadOnly = async (value: "on" | "off") => {
      const client = new pg.Client({ connectionString: database.url });
      await client.connect();
      await client.query("SET default_transaction_read_only = off");
      await client.query(`ALTER SYSTEM SET default_transaction_read_only = ${value}`);
      await client.query("SELECT pg_reload_conf()");
      await client.end();
      // then the postmaster has signalled the older backends too
      for (let tries = 1; await readOnlyOfNew() !== value; tries++) {
        assert(tries < 1_000, "it was not reloaded");
      }
    };
    await using server = await startServer(["--store", database.url], { env: KEYS });
    const before = (await call(server, "/v1/runs", REQUEST)).body;
    await setReadOnly("on");
    const full = await call(server, "/v1/runs", REQUEST);
    assertEquals([full.status, full.body.error.code], [507, "storage_full"], JSON.stringify(full.body));
    assertEquals((await call(server, `/v1/runs/${before.id}`)).body, before);
    await setReadOnly("off");
    const after = await call(server, "/v1/runs", REQUEST);
    assertEquals([after.status, after.body.status], [200, "completed"], JSON.stringify(after.body));
    const listed = (await call(server, "/v1/runs")).body.data.map(({ id }: { id: string }) => id);
    assertEquals(listed, [after.body.id, before.id]);
  },
});
