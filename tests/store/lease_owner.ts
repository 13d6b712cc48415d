/** A process that acquires a lease in a store, says so, and lives until it is ended. */
import { openPostgresStore } from "../../src/store/postgres/postgres_store.ts";
import { openSqliteStore } from "../../src/store/sqlite/sqlite_store.ts";

const [place = "", owner = ""] = Deno.args;
const store = place.startsWith("postgres:")
  ? await openPostgresStore(place, { now: () => 1 }) // its time is never over
  : await openSqliteStore(place);
await store.heartbeat(owner, 60_000);
const token = await store.acquire("lease", owner);
await Deno.stdout.write(new TextEncoder().encode(`${token}\n`));
setInterval(() => void store.heartbeat(owner, 60_000), 50);
