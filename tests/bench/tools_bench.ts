/**
 * Parallel tools: eight calls in one answer of `loop-streaming`, each waiting for a timer, compared with a
 * `Promise.all` of the same eight calls; and the processor time of a call.
 *
 *   deno run -A tests/bench/tools_bench.ts [rounds]
 */
import { wait } from "./modules/tool_wait.ts";
import { print, report, tableOf } from "./figures.ts";
import { middle, ratio, takeTurns } from "./rounds.ts";
import { repeat } from "./run_scenarios.ts";
import { openScripted, runScripted } from "./scripted_runs.ts";

const CALLS = 8;
const ITERATIONS = 20;

const rounds = Number(Deno.args[0] ?? 7);

const runtime = openScripted();
print(`Tools, ${CALLS} in parallel, ${ITERATIONS} times, median of ${rounds} rounds`);
const figures = [await measure(0), await measure(10)];
print(tableOf(
  ["each waits ms", "Promise.all ms", "preamp ms", "ratio", "processor µs/call", "Promise.all's"],
  figures.map(({ wait_ms, floor_ms, ms, ratio, cpu_us, floor_cpu_us }) => [
    String(wait_ms),
    floor_ms,
    ms,
    ratio,
    cpu_us,
    floor_cpu_us,
  ]),
));
await runtime.close();
report("tools", { rounds, calls: CALLS, iterations: ITERATIONS, figures });

/** Resolves to the figures of an answer whose calls wait `wait_ms` each. */
async function measure(wait_ms: number) {
  const call = { name: "wait", arguments: { ms: wait_ms } };
  const script = { turns: ITERATIONS, calls: CALLS, call };
  const changes = {
    session: { orchestrator: "loop-streaming", context: "context-simple" },
    tools: [{ module: "tool-wait", source: import.meta.resolve("./modules/tool_wait.ts") }],
  };
  const { floor, ours } = await takeTurns(rounds, {
    floor: () =>
      repeat(
        ITERATIONS,
        () => Promise.all(Array.from({ length: CALLS }, () => wait.execute(call.arguments))),
      ),
    ours: async () => {
      const run = await runScripted(runtime, script, changes);
      if (run.tool_call_count === CALLS * ITERATIONS) return;
      throw new Error(`Cannot measure: every call must run: received ${JSON.stringify(run)}`);
    },
  });
  const calls = CALLS * ITERATIONS;
  return {
    wait_ms,
    floor_ms: middle(floor, "wall_ms") / ITERATIONS,
    ms: middle(ours, "wall_ms") / ITERATIONS,
    ratio: ratio(ours, floor, "wall_ms"),
    cpu_us: middle(ours) * 1_000 / calls,
    floor_cpu_us: middle(floor) * 1_000 / calls,
  };
}
