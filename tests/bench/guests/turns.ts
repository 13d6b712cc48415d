/** Measures a tool call within a turn by tier, including guards, events, checks and the log. */
import { median } from "../figures.ts";
import { stopwatch, type Taken } from "../rounds.ts";
import { openScripted, runScripted, type ScriptedRuntime } from "../scripted_runs.ts";

const TIERS = ["inline", "process"] as const;

/** Figures of the calls of one tier within a turn. */
export interface TurnCosts {
  readonly tier: typeof TIERS[number];
  /** µs that each further call adds to a run. */
  readonly wall_us: number;
  /** Processor time of this process that each further call adds, in µs. */
  readonly host_us: number;
  /** Milliseconds of a run with one call, including the start of a guest from the pool. */
  readonly one_ms: number;
}

/** Measures runs with `calls` tool calls and with one; the difference is the cost of the calls. */
export async function measureTurns(rounds: number, calls: number): Promise<TurnCosts[]> {
  await using opened = new AsyncDisposableStack();
  const runs = new Map(
    TIERS.map((tier) => [tier, opened.adopt(openScripted({ tier }), (runtime) => runtime.close())]),
  );
  const taken = new Map(TIERS.map((tier) => [tier, { one: [] as Taken[], many: [] as Taken[] }]));
  for (let round = -1; round < rounds; round++) {
    for (const [tier, measured] of runs) {
      const one = await run(measured, 1);
      const many = await run(measured, calls);
      if (round < 0) continue;
      taken.get(tier)?.one.push(one);
      taken.get(tier)?.many.push(many);
    }
  }
  return [...taken].map(([tier, { one, many }]) => {
    const added = (measure: keyof Taken) =>
      median(many.map((taken, round) => taken[measure] - (one[round]?.[measure] ?? NaN))) * 1_000 /
      (calls - 1);
    return {
      tier,
      wall_us: added("wall_ms"),
      host_us: added("cpu_ms"),
      one_ms: median(one.map(({ wall_ms }) => wall_ms)),
    };
  });
}

async function run(runtime: ScriptedRuntime, calls: number): Promise<Taken> {
  const script = { turns: calls, call: { name: "echo", arguments: { text: "hello" } } };
  const tools = [{ module: "tool-echo", source: import.meta.resolve("../modules/tool_echo.ts") }];
  const stop = stopwatch();
  const ended = await runScripted(runtime, script, { tools });
  const taken = stop();
  if (ended.tool_call_count === calls) return taken;
  throw new Error(`Cannot measure: every call must run: received ${JSON.stringify(ended)}`);
}
