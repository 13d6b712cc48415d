/** Measures a loop against the loop by hand, in one process. Knows nothing of whose loop it is. */
import type { JsonObject } from "../../src/sdk/types.ts";
import { runBare } from "./bare_loop.ts";
import { median } from "./figures.ts";
import { memoryNow } from "./heap.ts";
import { ANSWER, DELTAS, type ProbeClock, PROMPT, scriptOf, STREAM } from "./loop_scripts.ts";
import { middle, ratio, stopwatch, take, type Taken, takeTurns } from "./rounds.ts";

/** A loop, run from one prompt to its answer with the calculator and a provider under this config. */
export interface MeasuredLoop {
  run(prompt: string, config: JsonObject): Promise<{ iterations: number; text: string }>;
  /** The same, and somebody reads the deltas as they come. */
  stream(prompt: string, config: JsonObject): Promise<{ deltas: number; text: string }>;
}

/** Processor time of one thing and its ratio to the floor; the ratio on the wall beside it. */
export interface Compared {
  readonly us: number;
  readonly floor_us: number;
  readonly ratio: number;
  readonly wall_ratio: number;
}

/** One iteration of the first hundred and of the last hundred of the longest run. */
export interface Ends {
  readonly first_us: number;
  readonly last_us: number;
  readonly ratio: number;
  readonly wall_ratio: number;
}

/** What was measured of a loop. */
export interface LoopFigures {
  /** Iterations of the longest run: fewer than a thousand when that would take too long. */
  readonly longest: number;
  /** Iterations of a run → one iteration. */
  readonly per_iteration: Readonly<Record<number, Compared>>;
  readonly ends: Ends;
  /** One of a thousand deltas. */
  readonly deltas: Compared;
}

/** What an iteration adds to the heap, in MB for a thousand. */
export interface LoopMemory {
  /** Alive at the last call of the model and not at the first. */
  readonly running_mb: number;
  /** Alive when the run has ended and nobody holds its result: a log that is kept, say. */
  readonly after_mb: number;
}

/** How a loop is measured. */
export interface LoopOptions {
  rounds: number;
  /** Told by the provider of the loop. */
  clock: ProbeClock;
  /** Milliseconds of processor time that one run may take; what would take longer is cut. Default: no bound. */
  longest_run_ms?: number;
}

/** Iterations of a run → runs taken together, so that each time is many milliseconds long. */
const SIZES: readonly (readonly [iterations: number, runs: number])[] = [[1, 50], [50, 10]];
/** Lengths of the longest run, the longest first; two ends fit into the shortest. */
const LENGTHS: readonly number[] = [1_000, 500, 200];
/** The floor is run as many times more: it takes that much less. */
const FLOOR_TIMES = 10;
/** Iterations of an end. */
const END = 100;
/** The ends are short, so they are taken more often. */
const END_TIMES = 2;
const STREAMS = 5;
/** Time and size of what warms up. */
const WARM_UP_MS = 5_000;
const WARM_UP_ITERATIONS = 200;
/** With the one before them few enough that the store in memory still has room. */
const MEMORY_RUNS = 3;

/**
 * Measures time: runs of 1, 50 and 1,000 iterations, the two ends of the longest, a thousand deltas. Before that both loops run
 * until they are compiled: a server has been up for more than a second when it counts, and compilers run on threads whose time
 * is in the figures.
 */
export async function measureLoop(loop: MeasuredLoop, options: LoopOptions): Promise<LoopFigures> {
  const { rounds } = options;
  await warmUp(loop);
  const longest = await longestOf(loop, options.longest_run_ms ?? Infinity);
  const per_iteration: Record<number, Compared> = {};
  for (const [iterations, together] of [...SIZES, [longest, 1] as const]) {
    const config = scriptOf(iterations);
    const { floor, ours } = await takeTurns(rounds, {
      floor: () => repeat(together * FLOOR_TIMES, () => checkedBare(config, iterations)),
      ours: () => repeat(together, () => checkedRun(loop, config, iterations)),
    });
    per_iteration[iterations] = compared(ours, floor, together * iterations);
  }
  const ends = await endsOf(loop, options, longest);
  const { floor, ours } = await takeTurns(rounds, {
    floor: () => repeat(STREAMS * FLOOR_TIMES, checkedBareStream),
    ours: () => repeat(STREAMS, () => checkedStream(loop)),
  });
  return { longest, per_iteration, ends, deltas: compared(ours, floor, STREAMS * DELTAS) };
}

/** Measures memory, in a process where nothing else is going on. Needs `--v8-flags=--expose-gc`. */
export async function measureLoopMemory(
  loop: MeasuredLoop,
  clock: ProbeClock,
  iterations: number,
): Promise<LoopMemory> {
  const config = scriptOf(iterations, [0, iterations - 1]);
  const running: number[] = [];
  const ended: number[] = [];
  for (let run = -1; run < MEMORY_RUNS; run++) { // what is made once is made in the first
    const alive: number[] = [];
    clock.onProbe = () => void alive.push(memoryNow().heap_mb);
    await checkedRun(loop, config, iterations);
    await nextTask();
    ended.push(memoryNow().heap_mb);
    const [first = NaN, last = NaN] = alive;
    if (run >= 0) running.push(last - first);
  }
  clock.onProbe = () => {};
  const thousands = iterations / 1_000;
  const after = ended.slice(1).map((mb, run) => mb - (ended[run] ?? NaN));
  return { running_mb: median(running) / thousands, after_mb: median(after) / thousands };
}

function compared(
  ours: readonly Taken[],
  floor: readonly Taken[],
  units: number,
): Compared {
  return {
    us: middle(ours) * 1_000 / units,
    floor_us: middle(floor) * 1_000 / units / FLOOR_TIMES,
    ratio: ratio(ours, floor) * FLOOR_TIMES,
    wall_ratio: ratio(ours, floor, "wall_ms") * FLOOR_TIMES,
  };
}

async function warmUp(loop: MeasuredLoop): Promise<void> {
  const config = scriptOf(WARM_UP_ITERATIONS);
  const end = performance.now() + WARM_UP_MS;
  while (performance.now() < end) {
    await checkedRun(loop, config, WARM_UP_ITERATIONS);
    await checkedBare(config, WARM_UP_ITERATIONS);
    await checkedStream(loop);
    await checkedBareStream();
  }
}

/** The longest of the lengths whose run stays within the bound, by how the time grew up to the shortest of them. */
async function longestOf(loop: MeasuredLoop, longest_run_ms: number): Promise<number> {
  const [cut, sample] = [LENGTHS.at(-1)!, 50]; // there is one
  const time = async (iterations: number) => {
    const config = scriptOf(iterations);
    const run = () => checkedRun(loop, config, iterations);
    await run(); // warms up
    const [one, other] = [await take(run), await take(run)];
    return Math.min(one.cpu_ms, other.cpu_ms);
  };
  const sample_ms = await time(sample);
  const cut_ms = await time(cut);
  const exponent = Math.max(1, Math.log(cut_ms / sample_ms) / Math.log(cut / sample));
  return LENGTHS.find((length) => cut_ms * (length / cut) ** exponent <= longest_run_ms) ?? cut;
}

async function endsOf(loop: MeasuredLoop, { rounds, clock }: LoopOptions, longest: number): Promise<Ends> {
  const config = scriptOf(longest, [0, END, longest - 1 - END, longest - 1]);
  const [first, last]: [Taken[], Taken[]] = [[], []];
  for (let round = -1; round < rounds * END_TIMES; round++) {
    const laps: Taken[] = [];
    let lap = stopwatch();
    clock.onProbe = () => {
      laps.push(lap());
      lap = stopwatch();
    };
    await checkedRun(loop, config, longest);
    const [, head, , tail] = laps; // up to the first call, the head, what is between, the tail
    if (!head || !tail || laps.length !== 4) {
      throw new Error(`Cannot measure: four probes must be told: received ${laps.length}`);
    }
    if (round < 0) continue;
    first.push(head);
    last.push(tail);
  }
  clock.onProbe = () => {};
  return {
    first_us: middle(first) * 1_000 / END,
    last_us: middle(last) * 1_000 / END,
    ratio: ratio(last, first),
    wall_ratio: ratio(last, first, "wall_ms"),
  };
}

async function repeat(times: number, run: () => Promise<unknown>): Promise<void> {
  for (let time = 0; time < times; time++) await run();
}

async function checkedBare(config: JsonObject, iterations: number): Promise<void> {
  check("the loop by hand", await runBare(PROMPT, config), iterations);
}

async function checkedRun(loop: MeasuredLoop, config: JsonObject, iterations: number): Promise<void> {
  check("the loop", await loop.run(PROMPT, config), iterations);
}

function check(whose: string, made: { iterations: number; text: string }, iterations: number): void {
  if (made.iterations === iterations && made.text === ANSWER) return;
  throw new Error(
    `Cannot measure: ${whose} must make ${iterations} iterations: received ${made.iterations}, "${made.text}"`,
  );
}

async function checkedBareStream(): Promise<void> {
  checkStream("the loop by hand", await runBare(PROMPT, STREAM));
}

async function checkedStream(loop: MeasuredLoop): Promise<void> {
  checkStream("the loop", await loop.stream(PROMPT, STREAM));
}

function checkStream(whose: string, { deltas, text }: { deltas: number; text: string }): void {
  if (deltas === DELTAS && text === STREAM.response) return;
  throw new Error(
    `Cannot measure: ${whose} must give ${DELTAS} deltas: received ${deltas}, ${text.length} characters`,
  );
}

function nextTask(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve));
}
