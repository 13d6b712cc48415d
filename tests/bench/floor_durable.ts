/**
 * The least that a durable answer costs: reads each body, adds one row with it to a SQLite file as durably as
 * Preamp does (write-ahead log, `synchronous=FULL`), one commit for each request, and returns the same bytes.
 * Arguments: a file with the bytes, a file for SQLite. Prints its address.
 */
import { DatabaseSync } from "node:sqlite";
import { serveAnnounced } from "./announced_server.ts";

const [path = "", file = ""] = Deno.args;
const answer = Deno.readFileSync(path);
const database = new DatabaseSync(file);
database.exec("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE request (body TEXT NOT NULL)");
const insert = database.prepare("INSERT INTO request (body) VALUES (?)");

serveAnnounced(async (request) => {
  insert.run(await request.text());
  return new Response(answer, { headers: { "content-type": "application/json" } });
});
