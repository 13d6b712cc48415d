import { FairScheduler } from "../../src/sandbox/guest_process.ts";
import { assert, assertEquals } from "../assert.ts";

function turns(): {
  turns: FairScheduler;
  work(ms: number): Promise<void> | undefined;
  pass(ms: number): void;
  round(): void;
} {
  let now = 1_000;
  const later: (() => void)[] = [];
  const made = new FairScheduler(() => now, (then) => void later.push(then));
  return {
    turns: made,
    work(ms) {
      made.begin();
      now += ms;
      return made.end();
    },
    pass: (ms) => void (now += ms),
    round: () => later.splice(0).forEach((then) => then()),
  };
}

Deno.test("FairScheduler.end() does not delay work within a slice, or after long pauses", () => {
  const { work, pass } = turns();
  assertEquals(work(1), undefined);
  assertEquals(work(2), undefined);
  pass(60);
  assertEquals(work(3), undefined);
});

Deno.test("FairScheduler.end() makes work wait for the event loop when the slice is used up", async () => {
  const { work, round } = turns();
  work(3);
  const waiting = work(2);
  assert(waiting);
  round();
  await waiting;
  assertEquals(work(1), undefined);
});

Deno.test("FairScheduler resumes waiting guests one at a time, in order", async () => {
  const { work, round } = turns();
  const order: string[] = [];
  const first = work(5)?.then(() => order.push("first"));
  const second = work(0)?.then(() => order.push("second"));
  assert(first && second);
  round();
  await first;
  assertEquals(order, ["first"]);
  round();
  await second;
  assertEquals(order, ["first", "second"]);
});
