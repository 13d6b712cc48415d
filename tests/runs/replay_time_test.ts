/** Replay does not depend on durations: not on gaps between entries, not on the number of microtask turns. */
import type { Entry } from "../../src/kernel/host.ts";
import { VirtualClock } from "../../src/runs/replay/virtual_clock.ts";
import { createLoop } from "../../src/sdk/loop/loop.ts";
import type { Orchestrator } from "../../src/sdk/types.ts";
import { assertEquals } from "../assert.ts";
import { someOf } from "../support/cases.ts";
import { CALLER, immediate, replayed } from "../support/runs.ts";
import { play, type Scenario } from "./play.ts";
import { SCENARIOS } from "./scenarios.ts";

/** Milliseconds of delay before an entry, alternating. */
const GAPS_MS = [0, 3, 11, 0, 37, 150, 1];

/** Replays a scenario whose log has a longer gap before an entry. */
async function replayedWithGaps(
  scenario: Scenario,
  gapBefore: (entry: Entry, entries: readonly Entry[]) => number,
) {
  const { service, run } = await play(scenario);
  const recording = await service.runs.recording(CALLER, run.id);
  let late_ms = 0;
  const events = recording.events.map((entry) => {
    late_ms += gapBefore(entry, recording.events);
    return { ...entry, ts: new Date(Date.parse(entry.ts) + late_ms).toISOString() };
  });
  return await replayed(service, { ...recording, events });
}

for (const [name, scenario] of Object.entries(SCENARIOS)) {
  Deno.test(`replay() is equal when time passed before any of the entries: ${name}`, async () => {
    for (const shift of someOf([...GAPS_MS.keys()], 3)) {
      const report = await replayedWithGaps(scenario, ({ seq }) => GAPS_MS[(seq + shift) % GAPS_MS.length]!);
      assertEquals([shift, report], [shift, { equal: true }]);
    }
  });
}

const DISTANCE = SCENARIOS["throttled provider calls"]!;

Deno.test("replay() of a throttled call is equal when the response took longer than the minimum interval", async () => {
  const gap = (entry: Entry) => entry.event === "content_block:end" && entry.iteration === 1 ? 40_000 : 0;
  assertEquals(await replayedWithGaps(DISTANCE, gap), { equal: true });
});

/** Delays before the throttle event count as part of the interval: later entries are not delayed. */
function beforeDistance({ event, seq }: Entry, entries: readonly Entry[]): number {
  if (event === "orchestrator:rate_limit_delay") return 5_000;
  return entries[seq - 2]?.event === "orchestrator:rate_limit_delay" ? -5_000 : 0;
}

Deno.test("replay() of a throttled call is equal when time passed before the throttle event", async () => {
  assertEquals(await replayedWithGaps(DISTANCE, beforeDistance), { equal: true });
});

/**
 * A loop that computes the duration of a sleep, emits it, and sleeps: the computation precedes the recorded
 * time.
 */
const SLEEPY: Scenario = {
  plan: {
    async orchestrator(coordinator) {
      const { clock, hooks } = coordinator;
      const mounted_ms = clock.monotonic();
      await coordinator.mount("orchestrator", {
        async execute(...turn: Parameters<Orchestrator["execute"]>) {
          const delay_ms = 10_000 - (clock.monotonic() - mounted_ms);
          await hooks.emit("orchestrator:rate_limit_delay", { delay_ms });
          await clock.after(delay_ms);
          return await loop.execute(...turn);
        },
      });
    },
  },
};
const loop = createLoop({
  orchestrator: "sleepy",
  max_iterations: -1,
  max_parallel_tools: 1,
  steering: false,
  request: {},
});

Deno.test("replay() is equal when a loop computed a sleep before the recorded time", async () => {
  assertEquals(await replayedWithGaps(SLEEPY, beforeDistance), { equal: true });
});

Deno.test("VirtualClock ends no wait before all other possible work is done", async () => {
  const clock = new VirtualClock(0);
  clock.follow(0, 1_000);
  const happened: string[] = [];
  const stop = clock.later(200, () => happened.push("deadline"));
  clock.after(300).then(() => happened.push("sleep"));
  for (let turn = 0; turn < 1_000; turn++) await null;
  happened.push("answer");
  stop();
  for (let turn = 0; turn < 3; turn++) await immediate();
  assertEquals([happened, clock.now()], [["answer", "sleep"], 300]);
});

Deno.test("VirtualClock.endLateSleep() ends sleeps that may have started before the last entry, and no deadline", async () => {
  const clock = new VirtualClock(0);
  clock.follow(0, 100);
  clock.follow(100, 1_000);
  const happened: string[] = [];
  clock.later(1_050, () => happened.push("deadline"));
  clock.after(1_000).then(() => happened.push("sleep of 1,000 ms"));
  clock.after(1_010).then(() => happened.push("sleep of 1,010 ms"));
  await immediate();
  // 1,010 is later than the log allows
  assertEquals([clock.endLateSleep(), clock.endLateSleep()], [true, false]);
  await immediate();
  assertEquals([happened, clock.now()], [["sleep of 1,000 ms"], 1_000]);
});

Deno.test("VirtualClock.endLateSleep() ends a sleep that was computed from a time before earlier entries", async () => {
  const clock = new VirtualClock(0);
  clock.follow(0, 100);
  clock.follow(100, 110); // the base was taken between 0 and 100
  clock.follow(110, 1_000);
  let ended = false;
  clock.after(970).then(() => ended = true);
  await immediate();
  assertEquals([ended, clock.endLateSleep()], [false, true]);
  await immediate();
  assertEquals(ended, true);
});
