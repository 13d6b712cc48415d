/**
 * Compares a run with those of other libraries: `deno task bench:peers`. All use the same model and tool, which do nothing, in
 * the scenarios of `run_bench.ts`. Each library runs in its own process, with the bare loop as floor. Preamp executes a complete
 * run with guards, events and log; the others are called directly.
 *
 *   deno run -A tests/bench/peers/loop_bench.ts [rounds]
 */
import { print, report, rounded, tableOf } from "../figures.ts";
import { SCENARIOS } from "../run_scenarios.ts";
import type { PeerFigures } from "./loops/contestant.ts";

/** Timeout of all loops; later ones are left out, which the output notes. Both benches together take at most five minutes. */
const TIMEOUT_MS = 170_000;

const FOLDER = new URL("./", import.meta.url);

/** Files of `loops/` with their flags: preamp with this project's packages, the others with those of this folder. */
const LOOPS: readonly (readonly [file: string, flags: readonly string[]])[] = [
  ["preamp.ts", ["--config", "../../../deno.json"]],
  ["pi.ts", ["--frozen", "--import-map", "import_map.json"]],
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

print(`A run whose model and tool do nothing, µs and × a bare loop, median of ${rounds} rounds`);
const columns = Object.entries(SCENARIOS);
print(tableOf(["", ...columns.map(([, { unit }]) => unit)], measured.map(rowOf)));
for (const { name, scenarios } of measured) {
  const turns = scenarios.turns_1000?.turns ?? 0;
  if (turns < 1_000) print(`${name}: cut at ${turns} turns, a run of 1,000 would take too long.`);
}
for (const file of slow) print(`${file}: left out, the time was up.`);
report("loop-peers", { versions: Object.values(imports), rounds: Number(rounds), measured, left_out: slow });

/** Resolves to the figures of one loop; null after the timeout. */
async function measure(file: string, flags: readonly string[]): Promise<PeerFigures | null> {
  if (signal.aborted) return null;
  const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", ...flags, "-A", "measure_loop.ts", file, rounds],
    cwd: FOLDER,
    env: { NO_COLOR: "1" },
    stdin: "null",
    signal,
  }).output();
  if (signal.aborted && !success) return null;
  if (!success) throw new Error(`Cannot measure ${file}: ${new TextDecoder().decode(stderr)}`);
  return JSON.parse(new TextDecoder().decode(stdout)) as PeerFigures;
}

function rowOf({ name, scenarios }: PeerFigures): string[] {
  return [
    name,
    ...columns.map(([scenario]) => {
      const { us, ratio } = scenarios[scenario]!; // every scenario is measured
      return `${rounded(us)} (${rounded(ratio)})`;
    }),
  ];
}
