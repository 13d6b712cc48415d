import { setImmediate as nextTurn } from "node:timers/promises";
import { DeferredFlush } from "../../../src/runs/run/deferred_flush.ts";
import { ReleasingMap } from "../../../src/runs/scheduler/releasing_map.ts";
import { assertEquals } from "../../assert.ts";

Deno.test("ReleasingMap.items are the values that were set and not deleted, oldest first", () => {
  const roster = new ReleasingMap<{ id: number }>();
  for (const id of [1, 2, 3]) roster.set(`run_${id}`, { id });
  roster.delete("run_2");
  roster.delete("run_9");
  roster.set("run_1", { id: 10 });
  assertEquals(roster.items, [{ id: 10 }, { id: 3 }]);
  assertEquals([roster.get("run_1"), roster.get("run_2")], [{ id: 10 }, undefined]);
  assertEquals([roster.has("run_3"), roster.has("run_2"), roster.size], [true, false, 2]);
});

Deno.test("DeferredFlush.schedule() flushes once at the next turn, and cancel() affects this flush alone", async () => {
  const flushed: string[] = [];
  const [a, b, c] = ["a", "b", "c"].map((name) =>
    new DeferredFlush({ flush: () => void flushed.push(name) })
  );
  for (const one of [a, b, c, a]) one!.schedule();
  a!.cancel();
  a!.cancel();
  assertEquals([a!.pending, b!.pending, c!.pending], [false, true, true]);
  await nextTurn();
  assertEquals(flushed.toSorted(), ["b", "c"]);
  assertEquals([a!.pending, b!.pending, c!.pending], [false, false, false]);
  a!.schedule();
  await nextTurn();
  assertEquals(flushed.at(-1), "a");
});
