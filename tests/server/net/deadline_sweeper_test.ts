import { DeadlineSweeper } from "../../../src/server/net/deadline_sweeper.ts";
import { assertEquals } from "../../assert.ts";
import { FakeClock } from "../fake_clock.ts";

Deno.test("Watch closes what is due, at most a tick early, and never late", async () => {
  const clock = new FakeClock();
  const watch = new DeadlineSweeper(clock, 100);
  const closed: [string, number][] = [];
  const add = (name: string, deadline: number) => {
    const one = {
      deadline,
      close() {
        closed.push([name, clock.monotonic()]);
        watch.delete(one);
      },
    };
    watch.add(one);
    return one;
  };
  add("a", 250);
  const moved = add("b", 250);
  const gone = add("c", 250);
  add("d", Infinity);
  await clock.advance(100);
  moved.deadline = 450;
  watch.delete(gone);
  await clock.advance(1000);
  assertEquals(closed, [["a", 200], ["b", 400]]);
});

Deno.test("Watch has a tick under way only while there is something to watch", async () => {
  const clock = new FakeClock();
  const watch = new DeadlineSweeper(clock, 100);
  assertEquals(clock.pending, 0);
  const one = { deadline: Infinity, close() {} };
  watch.add(one);
  watch.add({
    ...one,
    deadline: 50,
    close() {
      watch.delete(this);
    },
  });
  assertEquals(clock.pending, 1);
  await clock.advance(100);
  assertEquals(clock.pending, 1);
  watch.delete(one);
  await clock.advance(100);
  assertEquals(clock.pending, 0);
});
