/** Measures one loop of `loops/` and prints its figures as one JSON line. Arguments: file name, rounds. */
import { print } from "../figures.ts";
import { measureLoop, measureLoopMemory } from "../loop_figures.ts";
import type { CreateContestant, PeerFigures } from "./loops/contestant.ts";

/** Maximum processor time of one run in ms; longer runs are cut. */
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
const fresh = await create(); // without memory of the runs before
const memory = await measureLoopMemory(fresh.loop, fresh.clock, figures.longest);
await fresh.close?.();
print(JSON.stringify({ name: timed.name, ...figures, memory } satisfies PeerFigures));
