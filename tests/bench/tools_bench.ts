/**
 * Parallel tools: eight calls in one answer of `loop-streaming`, each waiting for a timer, compared with a
 * `Promise.all` of the same eight calls; and the processor time of a call.
 *
 *   deno run -A tests/bench/tools_bench.ts [rounds]
 */
import { wait } from "./modules/tool_wait.ts";
import { print, report, tableOf } from "./figures.ts";
import { PROMPT } from "./loop_scripts.ts";
import { openRuns } from "./measured_runs.ts";
import { middle, ratio, takeTurns } from "./rounds.ts";

const CALLS = 8;
const ITERATIONS = 20;

const rounds = Number(Deno.args[0] ?? 7);

await using runs = await openRuns();
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
report("tools", { rounds, calls: CALLS, iterations: ITERATIONS, figures });

/** Resolves to the figures of an answer whose calls wait `wait_ms` each. */
async function measure(wait_ms: number) {
  const tool_calls = Array.from({ length: CALLS }, () => ({ name: "wait", arguments: { ms: wait_ms } }));
  const usage = { input_tokens: 10, output_tokens: 5 };
  const config = {
    responses: [...Array.from({ length: ITERATIONS }, () => ({ tool_calls, usage })), {
      text: "Done.",
      usage,
    }],
    context_window: 10_000_000,
  };
  const changes = {
    session: { orchestrator: "loop-streaming", context: "context-simple" },
    tools: [{ module: "tool-wait", source: import.meta.resolve("./modules/tool_wait.ts") }],
  };
  const { floor, ours } = await takeTurns(rounds, {
    floor: async () => {
      for (let iteration = 0; iteration < ITERATIONS; iteration++) {
        await Promise.all(tool_calls.map((call) => wait.execute(call.arguments)));
      }
    },
    ours: async () => {
      const run = await runs.run(PROMPT, config, changes);
      if (run.status === "completed" && run.tool_call_count === CALLS * ITERATIONS) return;
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
