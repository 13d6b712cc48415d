import { FakeClock } from "../../../src/sdk/testing/fake_clock.ts";
import { openSqliteStore } from "../../../src/store/sqlite/sqlite_store.ts";
import type { StoreSubject } from "../../contracts/store.ts";
import { testStore } from "../../contracts/store.ts";

testStore("SqliteStore", async (): Promise<StoreSubject> => {
  const clock = new FakeClock();
  const now = () => clock.now();
  const folder = await Deno.makeTempDir();
  const path = `${folder}/store.db`;
  const store = await openSqliteStore(path, { now });
  const close = store.close.bind(store);
  store.close = async () => {
    await close();
    await Deno.remove(folder, { recursive: true });
  };
  return { store, advance: (ms) => clock.advance(ms), another: () => openSqliteStore(path, { now }) };
});
