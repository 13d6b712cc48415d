/** A long conversation takes as much space as it has messages. */
import { openMaintenance, openStore } from "../../../src/store/open.ts";
import { MemoryStore } from "../../../src/store/memory.ts";
import { assert } from "../../assert.ts";
import { temporaryFolder } from "../../support/folder.ts";
import { CONTENT, converse, MOST_TIMES } from "./growth.ts";

Deno.test("each turn of a conversation in memory writes as much as the first", async () => {
  await converse(new MemoryStore());
});

Deno.test("a conversation in SQLite takes space by its messages, and each turn writes as much as the first", async () => {
  await using folder = await temporaryFolder();
  const path = `${folder.path}/store.db`;
  const store = await openStore(`sqlite:${path}`);
  await converse(store);
  await store.close();
  const maintenance = await openMaintenance({ kind: "sqlite", path });
  const { bytes } = await maintenance.state();
  await maintenance.close();
  assert(bytes < MOST_TIMES * CONTENT, `${bytes} bytes of ${CONTENT}`);
});
