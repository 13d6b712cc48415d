/** Compares a loop with the hand-written loop, in one process. */
import type { JsonObject } from "../../src/sdk/types.ts";
import { runBare } from "./bare_loop.ts";
import { median } from "./figures.ts";
import { memoryNow } from "./heap.ts";
import { ANSWER, DELTAS, type ProbeClock, PROMPT, scriptOf, STREAM } from "./loop_scripts.ts";
import { middle, ratio, stopwatch, type Taken, takeTurns } from "./rounds.ts";

/** A loop to measure. `run` executes one prompt with the calculator and a provider with this config. */
export interface MeasuredLoop {
  run(prompt: string, config: JsonObject): Promise<{ iterations: number; text: string }>;
  /** Does the same while a reader counts the deltas. */
  stream(prompt: string, config: JsonObject): Promise<{ deltas: number; text: string }>;
}

/** Processor time of one unit, the floor's, and the ratios of processor time and elapsed time. */
export interface Compared {
  readonly us: number;
  readonly floor_us: number;
  readonly ratio: number;
  readonly wall_ratio: number;
}

/** Time of one iteration among the first hundred and among the last hundred of the longest run. */
export interface Ends {
  readonly first_us: number;
  readonly last_us: number;
  readonly ratio: number;
  readonly wall_ratio: number;
}

/** The figures of a loop. */
export interface LoopFigures {
  /** Iterations of a run → figures of one iteration. */
  readonly per_iteration: Readonly<Record<number, Compared>>;
  readonly ends: Ends;
  /** Figures of one of a thousand deltas. */
  readonly deltas: Compared;
}

/** Growth of the heap in MB for a thousand iterations. */
export interface LoopMemory {
  /** Growth from the first to the last call of the model. */
  readonly running_mb: number;
  /** Growth that remains after the run, such as a stored log. */
  readonly after_mb: number;
}

/** Options of `measureLoop`. */
export interface LoopOptions {
  rounds: number;
  /** The clock of the loop's provider. */
  clock: ProbeClock;
}

/** Iterations of a run, and runs that are timed together so that each time is many milliseconds long. */
const SIZES: readonly (readonly [iterations: number, runs: number])[] = [[1, 50], [50, 10], [1_000, 1]];
/** Iterations of the longest run. */
const LONGEST = 1_000;
/** Factor by which the faster floor is repeated. */
const FLOOR_TIMES = 10;
/** Iterations at each end of a run that are compared. */
const END = 100;
/** Factor by which the short ends are measured more often. */
const END_TIMES = 2;
const STREAMS = 5;
/** Duration of the warm-up, and iterations of its runs. */
const WARM_UP_MS = 5_000;
const WARM_UP_ITERATIONS = 200;
/** Few enough that the memory store does not become full. */
const MEMORY_RUNS = 3;

/**
 * Measures time: runs of 1, 50 and 1,000 iterations, both ends of the longest run, and a thousand deltas.
 * Both loops warm up first until they are compiled, because processor time includes the compiler's threads.
 */
export async function measureLoop(loop: MeasuredLoop, options: LoopOptions): Promise<LoopFigures> {
  const { rounds } = options;
  await warmUp(loop);
  const per_iteration: Record<number, Compared> = {};
  for (const [iterations, together] of SIZES) {
    const config = scriptOf(iterations);
    const { floor, ours } = await takeTurns(rounds, {
      floor: () => repeat(together * FLOOR_TIMES, () => checkedBare(config, iterations)),
      ours: () => repeat(together, () => checkedRun(loop, config, iterations)),
    });
    per_iteration[iterations] = compared(ours, floor, together * iterations);
  }
  const ends = await endsOf(loop, options);
  const { floor, ours } = await takeTurns(rounds, {
    floor: () => repeat(STREAMS * FLOOR_TIMES, checkedBareStream),
    ours: () => repeat(STREAMS, () => checkedStream(loop)),
  });
  return { per_iteration, ends, deltas: compared(ours, floor, STREAMS * DELTAS) };
}

/** Measures memory; no other work may run in the process. Needs `--v8-flags=--expose-gc`. */
export async function measureLoopMemory(
  loop: MeasuredLoop,
  clock: ProbeClock,
  iterations: number,
): Promise<LoopMemory> {
  const config = scriptOf(iterations, [0, iterations - 1]);
  const running: number[] = [];
  const ended: number[] = [];
  for (let run = -1; run < MEMORY_RUNS; run++) { // the first run allocates what is created once
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

async function endsOf(loop: MeasuredLoop, { rounds, clock }: LoopOptions): Promise<Ends> {
  const config = scriptOf(LONGEST, [0, END, LONGEST - 1 - END, LONGEST - 1]);
  const [first, last]: [Taken[], Taken[]] = [[], []];
  for (let round = -1; round < rounds * END_TIMES; round++) {
    const laps: Taken[] = [];
    let lap = stopwatch();
    clock.onProbe = () => {
      laps.push(lap());
      lap = stopwatch();
    };
    await checkedRun(loop, config, LONGEST);
    const [, head, , tail] = laps; // before the first call, the head, the middle, the tail
    if (!head || !tail || laps.length !== 4) {
      throw new Error(`Cannot measure: the run must reach four probes: received ${laps.length}`);
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
  check("the hand-written loop", await runBare(PROMPT, config), iterations);
}

async function checkedRun(loop: MeasuredLoop, config: JsonObject, iterations: number): Promise<void> {
  check("the loop", await loop.run(PROMPT, config), iterations);
}

function check(label: string, result: { iterations: number; text: string }, iterations: number): void {
  if (result.iterations === iterations && result.text === ANSWER) return;
  throw new Error(
    `Cannot measure: ${label} must make ${iterations} iterations: received ${result.iterations}, "${result.text}"`,
  );
}

async function checkedBareStream(): Promise<void> {
  checkStream("the hand-written loop", await runBare(PROMPT, STREAM));
}

async function checkedStream(loop: MeasuredLoop): Promise<void> {
  checkStream("the loop", await loop.stream(PROMPT, STREAM));
}

function checkStream(label: string, { deltas, text }: { deltas: number; text: string }): void {
  if (deltas === DELTAS && text === STREAM.response) return;
  throw new Error(
    `Cannot measure: ${label} must stream ${DELTAS} deltas: received ${deltas}, ${text.length} characters`,
  );
}

function nextTask(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve));
}
