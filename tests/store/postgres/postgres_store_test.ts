import { FakeClock } from "../../../src/sdk/testing/fake_clock.ts";
import { openPostgresStore } from "../../../src/store/postgres/postgres_store.ts";
import type { StoreSubject } from "../../contracts/store.ts";
import { testStore } from "../../contracts/store.ts";
import postgres from "postgres";

const url = Deno.env.get("PREAMP_TEST_POSTGRES");
if (url) {
testStore("PostgresStore", async (): Promise<StoreSubject> => {
  const clock = new FakeClock();
  const now = () => clock.now();
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  await sql.unsafe("DROP SCHEMA IF EXISTS preamp CASCADE");
  await sql.end();
  const store = await openPostgresStore(url, { now });
  return { store, advance: (ms) => clock.advance(ms), another: () => openPostgresStore(url, { now }) };
});
}
