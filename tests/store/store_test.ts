import { allRecords } from "../../src/store/store.ts";
import { MemoryStore } from "../../src/store/memory.ts";
import { assertEquals } from "../assert.ts";

Deno.test("allRecords() yields every record of a list that has several pages, newest first", async () => {
  const store = new MemoryStore();
  for (let number = 0; number < 2_345; number++) {
    const put = {
      kind: "note",
      key: `n${number}`,
      namespace: "a",
      value: {},
      index: { odd: String(number % 2) },
    };
    store.commit([{ put }]);
  }
  const keys = async (where?: Record<string, string>) => {
    const options = { namespace: "a", ...(where ? { where } : {}) };
    return await Array.fromAsync(allRecords(store, "note", options), ({ key }) => key);
  };
  const all = await keys();
  assertEquals([all.length, new Set(all).size, all[0], all.at(-1)], [2_345, 2_345, "n2344", "n0"]);
  assertEquals((await keys({ odd: "1" })).length, 1_172);
  assertEquals(await Array.fromAsync(allRecords(store, "note", { namespace: "b" })), []);
});
