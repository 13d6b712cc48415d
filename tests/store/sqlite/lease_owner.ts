/** A process that acquires a lease of a SQLite file, says so, and lives until it is ended. */
import { openSqliteStore } from "../../../src/store/sqlite/sqlite_store.ts";

const [path = "", owner = ""] = Deno.args;
const store = await openSqliteStore(path);
const token = await store.acquire("lease", owner, 60_000);
await Deno.stdout.write(new TextEncoder().encode(`${token}\n`));
await new Promise(() => setInterval(() => {}, 60_000));
