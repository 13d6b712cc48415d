/**
 * Taking turns: things compared run one after the other within each round, and a ratio is taken within its round, so that a
 * slow moment of the machine hits both sides of it. Processor time beside the clock on the wall: it does not count what other
 * processes take.
 */
import process from "node:process";
import { median } from "./figures.ts";

/** What one turn took. */
export interface Taken {
  readonly wall_ms: number;
  /** Processor time of this process, all its threads: garbage collection and compilation are in it. */
  readonly cpu_ms: number;
}

/** Which of the two a figure is about. */
export type Measure = keyof Taken;

/** Starts to measure; the function returned tells what was taken since. */
export function stopwatch(): () => Taken {
  const before = process.cpuUsage();
  const start = performance.now();
  return () => {
    const wall_ms = performance.now() - start;
    const { user, system } = process.cpuUsage(before);
    return { wall_ms, cpu_ms: (user + system) / 1000 };
  };
}

/** Resolves to what `run` took. */
export async function take(run: () => unknown): Promise<Taken> {
  const taken = stopwatch();
  await run();
  return taken();
}

/** Runs all in turn, `rounds` times over; resolves to what each took in each round. A first round warms up and is not counted. */
export async function takeTurns<Name extends string>(
  rounds: number,
  runs: Record<Name, () => unknown>,
): Promise<Record<Name, Taken[]>> {
  const names = Object.keys(runs) as Name[];
  const taken = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<Name, Taken[]>; // one each
  for (let round = -1; round < rounds; round++) {
    for (const name of names) {
      const one = await take(runs[name]);
      if (round >= 0) taken[name].push(one);
    }
  }
  return taken;
}

/** Returns the median of one measure, in ms. */
export function middle(taken: readonly Taken[], measure: Measure = "cpu_ms"): number {
  return median(taken.map((one) => one[measure]));
}

/** Returns the median of the ratios of the rounds. */
export function ratio(taken: readonly Taken[], floor: readonly Taken[], measure: Measure = "cpu_ms"): number {
  return median(taken.map((one, round) => one[measure] / (floor[round]?.[measure] ?? NaN)));
}
