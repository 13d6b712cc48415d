/** Measures one loop of `loops/` in a process of its own and writes its figures as one line. Argument: its file name, rounds. */
import { print } from "../figures.ts";
import { measureLoop, measureLoopMemory } from "../loop_figures.ts";
import type { CreateContestant, PeerFigures } from "./loops/contestant.ts";

/** A run that would take longer is cut: the whole comparison has minutes. */
const LONGEST_RUN_MS = 1_000;

const [file = "", rounds = "5"] = Deno.args;
const { create } = await import(`./loops/${file}`) as { create: CreateContestant };
const { name, loop, clock, close } = await create();
const figures = await measureLoop(loop, {
  rounds: Number(rounds),
  clock,
  longest_run_ms: LONGEST_RUN_MS,
});
const memory = await measureLoopMemory(loop, clock, figures.longest);
print(JSON.stringify({ name, ...figures, memory } satisfies PeerFigures));
await close?.();
