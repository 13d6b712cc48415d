import { DeferredFlush } from "../../../src/runs/run/deferred_flush.ts";
import { ReleasingMap } from "../../../src/runs/scheduler/releasing_map.ts";
import { assert, assertEquals } from "../../assert.ts";

Deno.test("Roster.items are what was put and has not left, oldest first", () => {
  const roster = new ReleasingMap<{ id: number }>();
  for (const id of [1, 2, 3]) roster.set(`run_${id}`, { id });
  roster.delete("run_2");
  roster.delete("run_9");
  roster.set("run_1", { id: 10 });
  assertEquals(roster.items, [{ id: 10 }, { id: 3 }]);
  assertEquals([roster.get("run_1"), roster.get("run_2")], [{ id: 10 }, undefined]);
  assertEquals([roster.has("run_3"), roster.has("run_2"), roster.size], [true, false, 2]);
});

Deno.test("LateFlush.ask() flushes once at the next turn, callOff() takes that back for this one alone", async () => {
  const flushed: string[] = [];
  const [a, b, c] = ["a", "b", "c"].map((name) => new DeferredFlush(() => flushed.push(name), 0));
  for (const one of [a, b, c, a]) one!.schedule();
  a!.cancel();
  a!.cancel();
  assertEquals([a!.pending, b!.pending, c!.pending], [false, true, true]);
  await new Promise((resolve) => setTimeout(resolve, 0));
  assertEquals(flushed.toSorted(), ["b", "c"]);
  assertEquals([a!.pending, b!.pending, c!.pending], [false, false, false]);
  a!.schedule();
  await new Promise((resolve) => setTimeout(resolve, 0));
  assertEquals(flushed.at(-1), "a");
});

Deno.test("LateFlush.ask() waits for its time where a store asks for one", async () => {
  const flushed = Promise.withResolvers<void>();
  const late = new DeferredFlush(flushed.resolve, 1);
  late.schedule();
  late.schedule();
  assertEquals(late.pending, true);
  await flushed.promise;
  assertEquals(late.pending, false);
  late.schedule();
  late.cancel();
  assertEquals(late.pending, false);
});

Deno.test("a run dies with its end: small collections free all but what is stored of it, with ten at once", async () => {
  const { stdout, stderr, success } = await new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "--no-prompt",
      "--v8-flags=--expose-gc",
      `--config=${new URL("../../../deno.json", import.meta.url).pathname}`,
      new URL("left_behind.ts", import.meta.url).href,
    ],
  }).output();
  assert(success, new TextDecoder().decode(stderr));
  const kb = Number(new TextDecoder().decode(stdout));
  assert(kb > 1 && kb < 18, `a run of one answer leaves ${kb} KB that only a full collection frees`);
});
