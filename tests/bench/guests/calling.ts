/** Measures calls of a warm tool and large answers, compared with the bare round trip of the same tier. */
import { median } from "../figures.ts";
import { ratio, stopwatch, type Taken } from "../rounds.ts";
import { openBareChild, openBareWorker } from "./bare.ts";
import { children, worked } from "./children.ts";
import { openSandbox, openTool } from "./tool.ts";

/** Bytes of a large answer. */
const LARGE = 1_000_000;

/** Figures of the calls of one tier and of the bare round trips. */
export interface Calls {
  readonly tier: "worker" | "process";
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

/** Measures both tiers. */
export async function measureCalls(rounds: number, calls: number): Promise<Calls[]> {
  const sandbox = openSandbox(0);
  await using bare_worker = openBareWorker();
  await using bare_child = openBareChild();
  await using worker = await openTool(sandbox, { tier: "worker" });
  await using child = await openTool(sandbox, { tier: "process" });
  const small = await inTurns(rounds, calls, {
    bare_worker: () => bare_worker.send("hello"),
    worker: () => worker.call({ text: "hello" }),
    bare_process: () => bare_child.send("hello"),
    process: () => child.call({ text: "hello" }),
  });
  const large = await inTurns(rounds, 10, {
    bare_worker: () => bare_worker.send(`size ${LARGE}`),
    worker: () => worker.call({ size: LARGE }),
    bare_process: () => bare_child.send(`size ${LARGE}`),
    process: () => child.call({ size: LARGE }),
  });
  await sandbox.close();
  return ([["a few bytes", small, calls], [`an answer of ${LARGE / 1e6} MB`, large, 10]] as const).flatMap(
    ([label, taken, count]) => [
      callsOf("worker", label, taken.worker, taken.bare_worker, count),
      callsOf("process", label, taken.process, taken.bare_process, count),
    ],
  );
}

function callsOf(
  tier: Calls["tier"],
  label: string,
  ours: readonly Taken[],
  bare: readonly Taken[],
  calls: number,
): Calls {
  const each = (taken: readonly Taken[], measure: keyof Taken) =>
    median(taken.map((time) => time[measure])) * 1_000 / calls;
  return {
    tier,
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
