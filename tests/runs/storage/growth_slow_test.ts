/** A long conversation takes as much space as it has messages, in Postgres too. */
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
    const maintenance = await openMaintenance(parseStoreName(database.url)!);
    const { bytes } = await maintenance.state();
    await maintenance.close();
    assert(bytes < MOST_TIMES * CONTENT, `${bytes} bytes of ${CONTENT}`);
  },
});
