/**
 * Compares the loop with those of other libraries: `deno task bench:peers`. All use the same scripted model and tool. Each runs
 * in its own process, in sequence, with the hand-written loop as floor. Preamp executes a complete run with guards, events,
 * hooks and log; the others are called directly.
 *
 *   deno run -A tests/bench/peers/loop_bench.ts [rounds]
 */
import { type Cell, print, report, tableOf } from "../figures.ts";
import type { PeerFigures } from "./loops/contestant.ts";

/** Timeout of all loops; later ones are left out, which the output notes. Both benches together take at most five minutes. */
const TIMEOUT_MS = 170_000;

const FOLDER = new URL("./", import.meta.url);

/** Files of `loops/` with their flags: preamp with this project's packages, the others with those of this folder. */
const LOOPS: readonly (readonly [file: string, flags: readonly string[]])[] = [
  ["preamp.ts", ["--config", "../../../deno.json"]],
  ["ai_sdk.ts", ["--frozen", "--import-map", "import_map.json"]],
  ["langgraph.ts", ["--frozen", "--import-map", "import_map.json"]],
  ["openai_agents.ts", ["--frozen", "--import-map", "import_map.json"]],
];

const rounds = Deno.args[0] ?? "5";
const { imports } = JSON.parse(await Deno.readTextFile(new URL("deno.json", FOLDER))) as {
  imports: Record<string, string>;
};

const signal = AbortSignal.timeout(TIMEOUT_MS);
const measured: PeerFigures[] = [];
const slow: string[] = [];
for (const [file, flags] of LOOPS) {
  const figures = await measure(file, flags);
  if (figures) measured.push(figures);
  else slow.push(file);
}

print();
print(
  "Loops: processor time as a ratio to the hand-written loop, by iterations of a run; a thousand streamed deltas",
);
print(tableOf(["", "1", "50", "longest", "iterations", "a delta"], measured.map(ratioRow)));
print();
print(tableOf(
  ["", "last / first 100", "µs/iteration at 50", "µs at the longest", "MB running", "MB kept"],
  measured.map(costRow),
));
print(
  "MB: heap after garbage collection, for 1,000 iterations; running: at the last call, kept: after the run (preamp's log).",
);
for (const { name, longest } of measured) {
  if (longest < 1_000) print(`${name}: cut at ${longest} iterations, a run of 1,000 would take too long.`);
}
for (const file of slow) print(`${file}: left out, the time was up.`);
for (const figures of measured) report("loop-peers", { ...figures });
report("loop-peers-versions", { versions: Object.values(imports), rounds: Number(rounds), left_out: slow });

/** Resolves to the figures of one loop; null after the timeout. */
async function measure(file: string, flags: readonly string[]): Promise<PeerFigures | null> {
  if (signal.aborted) return null;
  const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", ...flags, "-A", "--v8-flags=--expose-gc", "measure_loop.ts", file, rounds],
    cwd: FOLDER,
    env: { NO_COLOR: "1" },
    stdin: "null",
    signal,
  }).output();
  if (signal.aborted && !success) return null;
  if (!success) throw new Error(`Cannot measure ${file}: ${new TextDecoder().decode(stderr)}`);
  return JSON.parse(new TextDecoder().decode(stdout)) as PeerFigures;
}

function ratioRow({ name, longest, per_iteration, deltas }: PeerFigures): Cell[] {
  const ratio = (iterations: number) => per_iteration[iterations]?.ratio ?? NaN;
  return [name, ratio(1), ratio(50), ratio(longest), String(longest), deltas.ratio];
}

function costRow({ name, longest, per_iteration, ends, memory }: PeerFigures): Cell[] {
  const us = (iterations: number) => per_iteration[iterations]?.us ?? NaN;
  return [name, ends.ratio, us(50), us(longest), memory.running_mb, memory.after_mb];
}
