/** Measures one loop of `loops/` in a process of its own and writes its figures as one line. Argument: its file name, rounds. */
import { print } from "../figures.ts";
import { measureLoop, measureLoopMemory } from "../loop_figures.ts";
import type { CreateContestant, PeerFigures } from "./loops/contestant.ts";

/** Processor time; a run that would take longer is cut: the whole comparison has minutes. */
const LONGEST_RUN_MS = 900;

const [file = "", rounds = "5"] = Deno.args;
const { create } = await import(`./loops/${file}`) as { create: CreateContestant };
const timed = await create();
const figures = await measureLoop(timed.loop, {
  rounds: Number(rounds),
  clock: timed.clock,
  longest_run_ms: LONGEST_RUN_MS,
});
await timed.close?.();
const weighed = await create(); // nothing of the runs before is in it
const memory = await measureLoopMemory(weighed.loop, weighed.clock, figures.longest);
await weighed.close?.();
print(JSON.stringify({ name: timed.name, ...figures, memory } satisfies PeerFigures));
