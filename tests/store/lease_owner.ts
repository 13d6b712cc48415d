/** A process that acquires a lease in a store, says so, and lives until it is ended. */
import { openPostgresStore } from "../../src/store/postgres/postgres_store.ts";
import { openSqliteStore } from "../../src/store/sqlite/sqlite_store.ts";

const [place = "", owner = "", ttl_ms = "60000"] = Deno.args;
const store = place.startsWith("postgres:")
  ? await openPostgresStore(place, { now: () => 1 }) // no lease of it expires
  : await openSqliteStore(place);
const token = await store.acquire("lease", owner, Number(ttl_ms));
await Deno.stdout.write(new TextEncoder().encode(`${token}\n`));
await new Promise(() => setInterval(() => {}, 60_000));
