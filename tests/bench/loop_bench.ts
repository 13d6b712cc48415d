/**
 * The loop: microseconds per iteration of `loop-basic` in a whole run (guards, events, hooks, log, memory store) against a
 * loop by hand over the same provider and tool, in runs of 1, 50 and 1,000 iterations; the first hundred iterations of the
 * long run against its last hundred, which must not cost more; and a thousand streamed deltas.
 *
 *   deno run -A tests/bench/loop_bench.ts [rounds]
 */
import type { Entry } from "../../src/kernel/host.ts";
import type { JsonObject } from "../../src/sdk/types.ts";
import { runBare } from "./bare_loop.ts";
import { type Cell, compare, print, report, tableOf } from "./figures.ts";
import { openRuns } from "./measured_runs.ts";

const PROMPT = "Work it out.";
const ANSWER = "It is 42.";
const DELTAS = 1_000;
const CHUNK_CHARS = 20;

/** Iterations of a run → runs taken together, so that each time is some milliseconds long. */
const SIZES: readonly (readonly [iterations: number, runs: number])[] = [[1, 50], [50, 10], [1_000, 1]];

const rounds = Number(Deno.args[0] ?? 5);

await using runs = await openRuns();
print(`Loop, median of ${rounds} rounds`);
const rows: Cell[][] = [];
const per_iteration: Record<string, { bare_us: number; preamp_us: number; ratio: number }> = {};
for (const [iterations, together] of SIZES) {
  const config = scriptOf(iterations);
  const { bare, preamp } = await compare(rounds, {
    bare: () => repeat(together, () => checkedBare(config, iterations)),
    preamp: () => repeat(together, () => checkedRun(config, iterations)),
  });
  const [bare_us, preamp_us] = [bare, preamp].map((ms) => ms * 1000 / together / iterations) as [
    number,
    number,
  ]; // two in, two out
  per_iteration[iterations] = { bare_us, preamp_us, ratio: preamp_us / bare_us };
  rows.push([`${iterations} iterations`, bare_us, preamp_us, preamp_us / bare_us]);
}
print(tableOf(["", "by hand µs/iteration", "preamp µs/iteration", "ratio"], rows));

const { first_us, last_us } = await ends();
print();
print(tableOf(["1,000 iterations", "µs/iteration"], [["first 100", first_us], ["last 100", last_us]]));

const deltas = await streaming();
print();
print(tableOf([`${DELTAS} deltas`, "ms/run", "ratio"], [
  ["by hand", deltas.bare_ms, 1],
  ["preamp", deltas.preamp_ms, deltas.preamp_ms / deltas.bare_ms],
]));
report("loop", {
  rounds,
  per_iteration,
  ends: { first_us, last_us, ratio: last_us / first_us },
  deltas: { ...deltas, ratio: deltas.preamp_ms / deltas.bare_ms },
});

/** Returns provider-mock's config for a run of so many iterations: all but the last call the calculator. */
function scriptOf(iterations: number): JsonObject {
  const usage = { input_tokens: 10, output_tokens: 5 };
  const calling = { tool_calls: [{ name: "calculator", arguments: { expression: "6*7" } }], usage };
  const responses = [...Array.from({ length: iterations - 1 }, () => calling), { text: ANSWER, usage }];
  return { responses, context_window: 10_000_000 };
}

async function repeat(times: number, run: () => Promise<unknown>): Promise<void> {
  for (let time = 0; time < times; time++) await run();
}

async function checkedBare(config: JsonObject, iterations: number): Promise<void> {
  const { iterations: made, text } = await runBare(PROMPT, config);
  if (made !== iterations || text !== ANSWER) {
    throw new Error(`Cannot measure: the loop by hand made ${made}: "${text}"`);
  }
}

async function checkedRun(config: JsonObject, iterations: number): Promise<string> {
  const run = await runs.run(PROMPT, config);
  if (run.status !== "completed" || run.turn_count !== iterations || run.output_text !== ANSWER) {
    throw new Error(
      `Cannot measure: the run must complete: received ${JSON.stringify({ ...run, approvals: [] })}`,
    );
  }
  return run.id;
}

/** Microseconds per iteration at the two ends of a long run, by the times in its log; several runs, because these are in milliseconds. */
async function ends(): Promise<{ first_us: number; last_us: number }> {
  let [first, last] = [0, 0];
  for (let round = 0; round < rounds; round++) {
    const entries = await runs.entries(await checkedRun(scriptOf(1_000), 1_000));
    const starts = entries.filter((entry) => entry.event === "provider:request").map(timeOf);
    first += span(starts, 0, 100);
    last += span(starts, starts.length - 101, starts.length - 1);
  }
  return { first_us: first * 1000 / rounds / 100, last_us: last * 1000 / rounds / 100 };
}

function timeOf(entry: Entry): number {
  return Date.parse(entry.ts);
}

function span(times: readonly number[], from: number, to: number): number {
  return (times[to] ?? NaN) - (times[from] ?? NaN);
}

async function streaming(): Promise<{ bare_ms: number; preamp_ms: number }> {
  const text = "A delta of 20 chars ".repeat(DELTAS);
  const config: JsonObject = { response: text, chunk_chars: CHUNK_CHARS };
  const together = 5;
  const { bare, preamp } = await compare(rounds, {
    bare: () =>
      repeat(together, async () => {
        const { deltas } = await runBare(PROMPT, config);
        if (deltas !== DELTAS) {
          throw new Error(`Cannot measure: ${DELTAS} deltas must come: received ${deltas}`);
        }
      }),
    preamp: () =>
      repeat(together, async () => {
        const run = await runs.run(PROMPT, config);
        if (run.output_text !== text) {
          throw new Error(`Cannot measure: the run must complete: received ${run.status}`);
        }
      }),
  });
  const { id } = await runs.run(PROMPT, config);
  const told = (await runs.entries(id)).filter((entry) => entry.event === "content_block:delta").length;
  if (told !== DELTAS) throw new Error(`Cannot measure: ${DELTAS} deltas must be logged: received ${told}`);
  return { bare_ms: bare / together, preamp_ms: preamp / together };
}
