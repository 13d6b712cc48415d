/**
 * Alternating measurements: the compared functions run in sequence within each round, and ratios are computed
 * within a round, so that a slow moment of the machine affects both sides. Elapsed time and processor time
 * are measured; processor time excludes other processes.
 */
import process from "node:process";
import { median } from "./figures.ts";

/** The time of one measurement. */
export interface Taken {
  readonly wall_ms: number;
  /** Processor time of all threads of this process, including garbage collection and compilation. */
  readonly cpu_ms: number;
}

/** The time that a figure is based on. */
export type Measure = keyof Taken;

/** Starts a measurement and returns a function that returns the time since. */
export function stopwatch(): () => Taken {
  const before = process.cpuUsage();
  const start = performance.now();
  return () => {
    const wall_ms = performance.now() - start;
    const { user, system } = process.cpuUsage(before);
    return { wall_ms, cpu_ms: (user + system) / 1000 };
  };
}

/** Resolves to the time of `run`. */
export async function take(run: () => unknown): Promise<Taken> {
  const taken = stopwatch();
  await run();
  return taken();
}

/**
 * Runs all functions in turn for `rounds` rounds and resolves to their times. A first round warms up and is
 * not counted.
 */
export async function takeTurns<Name extends string>(
  rounds: number,
  runs: Record<Name, () => unknown>,
): Promise<Record<Name, Taken[]>> {
  const names = Object.keys(runs) as Name[];
  const taken = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<Name, Taken[]>; // one each
  for (let round = -1; round < rounds; round++) {
    for (const name of names) {
      const time = await take(runs[name]);
      if (round >= 0) taken[name].push(time);
    }
  }
  return taken;
}

/** Returns the median of one measure, in ms. */
export function middle(taken: readonly Taken[], measure: Measure = "cpu_ms"): number {
  return median(taken.map((time) => time[measure]));
}

/** Returns the median of the ratios of the rounds. */
export function ratio(taken: readonly Taken[], floor: readonly Taken[], measure: Measure = "cpu_ms"): number {
  return median(taken.map((time, round) => time[measure] / (floor[round]?.[measure] ?? NaN)));
}
