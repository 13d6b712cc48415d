/** Measures calls of a warm tool and large answers, compared with a bare round trip. */
import { median } from "../figures.ts";
import { ratio, stopwatch, type Taken } from "../rounds.ts";
import { openBareChild } from "./bare.ts";
import { children, worked } from "./children.ts";
import { openSandbox, openTool } from "./tool.ts";

/** Bytes of a large answer. */
const LARGE = 1_000_000;

/** Figures of calls and of the bare round trips. */
export interface Calls {
  readonly label: string;
  /** µs of a call. */
  readonly wall_us: number;
  readonly bare_wall_us: number;
  readonly wall_ratio: number;
  /** Processor time of both sides. */
  readonly cpu_us: number;
  readonly bare_cpu_us: number;
  readonly cpu_ratio: number;
}

/** Measures small and large answers. */
export async function measureCalls(rounds: number, calls: number): Promise<Calls[]> {
  const sandbox = openSandbox("no pool");
  await using bare_child = openBareChild();
  await using child = await openTool(sandbox, {});
  const small = await inTurns(rounds, calls, {
    bare_process: () => bare_child.send("hello"),
    process: () => child.call({ text: "hello" }),
  });
  const large = await inTurns(rounds, 10, {
    bare_process: () => bare_child.send(`size ${LARGE}`),
    process: () => child.call({ size: LARGE }),
  });
  await sandbox.close();
  return ([["a few bytes", small, calls], [`an answer of ${LARGE / 1e6} MB`, large, 10]] as const).map(
    ([label, taken, count]) => callsOf(label, taken.process, taken.bare_process, count),
  );
}

function callsOf(
  label: string,
  ours: readonly Taken[],
  bare: readonly Taken[],
  calls: number,
): Calls {
  const each = (taken: readonly Taken[], measure: keyof Taken) =>
    median(taken.map((time) => time[measure])) * 1_000 / calls;
  return {
    label,
    wall_us: each(ours, "wall_ms"),
    bare_wall_us: each(bare, "wall_ms"),
    wall_ratio: ratio(ours, bare, "wall_ms"),
    cpu_us: each(ours, "cpu_ms"),
    bare_cpu_us: each(bare, "cpu_ms"),
    cpu_ratio: ratio(ours, bare, "cpu_ms"),
  };
}

/** Like `takeTurns`, including the processor time of child processes. */
async function inTurns<Name extends string>(
  rounds: number,
  calls: number,
  runs: Record<Name, () => Promise<unknown>>,
): Promise<Record<Name, Taken[]>> {
  const names = Object.keys(runs) as Name[];
  const taken = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<Name, Taken[]>;
  const pids = await children();
  for (let round = -1; round < rounds; round++) {
    for (const name of names) {
      const before = await worked(pids);
      const stop = stopwatch();
      for (let call = 0; call < calls; call++) await runs[name]();
      const { wall_ms, cpu_ms } = stop();
      if (round >= 0) taken[name].push({ wall_ms, cpu_ms: cpu_ms + await worked(pids) - before });
    }
  }
  return taken;
}
