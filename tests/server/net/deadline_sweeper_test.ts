import { DeadlineSweeper } from "../../../src/server/net/deadline_sweeper.ts";
import { assertEquals } from "../../assert.ts";
import { FakeSystemClock } from "../../support/clock.ts";

Deno.test("DeadlineSweeper closes due items, at most one tick early and never late", async () => {
  const clock = new FakeSystemClock();
  const sweeper = new DeadlineSweeper(clock, 100);
  const closed: [string, number][] = [];
  const add = (name: string, deadline: number) => {
    const item = {
      deadline,
      close() {
        closed.push([name, clock.monotonic()]);
        sweeper.delete(item);
      },
    };
    sweeper.add(item);
    return item;
  };
  add("a", 250);
  const moved = add("b", 250);
  const removed = add("c", 250);
  add("d", Infinity);
  await clock.advance(100);
  moved.deadline = 450;
  sweeper.delete(removed);
  await clock.advance(1000);
  assertEquals(closed, [["a", 200], ["b", 400]]);
});

Deno.test("DeadlineSweeper has a pending tick only while it has items", async () => {
  const clock = new FakeSystemClock();
  const sweeper = new DeadlineSweeper(clock, 100);
  assertEquals(clock.pending, 0);
  const item = { deadline: Infinity, close() {} };
  sweeper.add(item);
  sweeper.add({
    ...item,
    deadline: 50,
    close() {
      sweeper.delete(this);
    },
  });
  assertEquals(clock.pending, 1);
  await clock.advance(100);
  assertEquals(clock.pending, 1);
  sweeper.delete(item);
  await clock.advance(100);
  assertEquals(clock.pending, 0);
});
