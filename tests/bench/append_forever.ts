/**
 * Appends to a log until it is killed; prints the number of each entry once the store has acknowledged it.
 */
import { openStore } from "../../src/server/mod.ts";

const [url = "", log = ""] = Deno.args;
const store = await openStore(url);
for (let seq = 1;; seq++) {
  await store.commit([{ append: log, after: seq - 1, entries: [{ seq }] }]);
  await Deno.stdout.write(new TextEncoder().encode(`${seq}\n`));
}
