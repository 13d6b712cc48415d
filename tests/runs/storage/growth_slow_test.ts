/** A long conversation takes as much space as it has messages, in Postgres too. */
import pg from "pg";
import { openMaintenance, openStore, parseStoreName } from "../../../src/store/open.ts";
import { assert } from "../../assert.ts";
import { POSTGRES, startPostgres } from "../../support/postgres.ts";
import { CONTENT, converse, MOST_TIMES } from "./growth.ts";

Deno.test({
  name: "a conversation in Postgres takes space by its messages, and each turn writes as much as the first",
  ignore: POSTGRES === null,
  async fn() {
    await using database = await startPostgres();
    const store = await openStore(database.url);
    await converse(store);
    await store.close();
    const bytes = async () => {
      const maintenance = await openMaintenance(parseStoreName(database.url)!);
      const { bytes } = await maintenance.state();
      await maintenance.close();
      return bytes;
    };
    const with_dead_rows = await bytes(); // the next conversations use their space again
    assert(with_dead_rows < 8 * CONTENT, `${with_dead_rows} bytes of ${CONTENT}`);
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    await client.query("VACUUM FULL preamp.entries");
    await client.query("VACUUM FULL preamp.records");
    await client.end();
    assert(await bytes() < MOST_TIMES * CONTENT, `${await bytes()} bytes of ${CONTENT}`);
  },
});
