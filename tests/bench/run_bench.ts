/**
 * A whole run (plan check, session, guards, events, log, memory store) beside a bare loop over the same model and tool,
 * which do nothing: one completion, a tool turn in runs of 50 and 1,000, a parallel call, a streamed delta; without hooks,
 * with one hook on every event, and with ten registered secrets.
 *
 *   deno run -A tests/bench/run_bench.ts [rounds]
 */
import { createRuntime } from "../../src/app/runtime.ts";
import { defaultPolicy } from "../../src/policy/policy_schema.ts";
import type { Caller } from "../../src/runs/types.ts";
import { CANONICAL_EVENTS } from "../../src/sdk/events.ts";
import type { JsonObject, Message, ToolResult } from "../../src/sdk/types.ts";
import { MemoryStore } from "../../src/store/memory.ts";
import { print, report, tableOf } from "./figures.ts";
import { noop, type Script, SCRIPTED_MODULES, scriptedProvider } from "./modules/scripted.ts";
import { middle, ratio, takeTurns } from "./rounds.ts";

interface Scenario {
  readonly script: Script;
  /** What a figure is for; `units` of them are in one run. */
  readonly unit: string;
  readonly units: number;
  /** Runs in one measurement; the bare loop is repeated {@link FLOOR_TIMES} times as often. */
  readonly runs: number;
  readonly target_us: number;
}

const SCENARIOS: Readonly<Record<string, Scenario>> = {
  completion: { script: {}, unit: "a run of one completion", units: 1, runs: 300, target_us: 30 },
  turns_50: { script: { turns: 50 }, unit: "a tool turn of 50", units: 50, runs: 20, target_us: 16 },
  turns_1000: {
    script: { turns: 1_000 },
    unit: "a tool turn of 1,000",
    units: 1_000,
    runs: 1,
    target_us: 16,
  },
  parallel: { script: { turns: 10, calls: 8 }, unit: "a parallel call", units: 80, runs: 15, target_us: 12 },
  deltas: { script: { deltas: 1_000 }, unit: "a delta", units: 1_000, runs: 15, target_us: 0.4 },
};
const FLOOR_TIMES = 20;
const WARM_UP_RUNS = 40;

const EVERY = { module: "hooks-every", config: { events: [...CANONICAL_EVENTS] } };
const SECRETS = Array.from({ length: 10 }, (_, index) => `secret-value-number-${index}`);
const CALLER: Caller = { name: "library", namespace: "bench", origin: "operator" };

const rounds = Number(Deno.args[0] ?? 7);
const only = Deno.args[1]?.split(",");

const settings: Readonly<Record<string, { hooks: JsonObject[]; secrets: string[] }>> = {
  "no hook": { hooks: [], secrets: [] },
  "a hook on every event": { hooks: [EVERY], secrets: [] },
  "10 secrets": { hooks: [], secrets: SECRETS },
};

const rows = [];
for (const [name, { script, unit, units, runs, target_us }] of Object.entries(SCENARIOS)) {
  if (only && !only.includes(name)) continue;
  for (const [setting, { hooks, secrets }] of Object.entries(settings)) {
    if (only?.includes("bare") && setting !== "no hook") continue;
    const runtime = openRuntime(secrets);
    const run = () => runOnce(runtime, script, hooks);
    for (let count = 0; count < Math.min(WARM_UP_RUNS, runs * 3); count++) await run();
    const { floor, ours } = await takeTurns(rounds, {
      floor: () => repeat(runs * FLOOR_TIMES, () => bareLoop(script)),
      ours: () => repeat(runs, run),
    });
    await runtime.close();
    const us = (taken: typeof ours, measure: "cpu_ms" | "wall_ms") =>
      middle(taken, measure) * 1_000 / runs / units;
    rows.push({
      unit,
      setting,
      us: us(ours, "wall_ms"),
      cpu_us: us(ours, "cpu_ms"),
      bare_us: us(floor, "wall_ms") / FLOOR_TIMES,
      ratio: ratio(ours, floor, "wall_ms") * FLOOR_TIMES,
      target_us: setting === "a hook on every event" ? 3 * target_us : target_us,
    });
  }
}
print(`A run beside a bare loop, median of ${rounds} rounds`);
print(tableOf(
  ["", "", "bare loop µs", "preamp µs", "processor µs", "ratio", "target µs"],
  rows.map((
    row,
  ) => [row.unit, row.setting, row.bare_us, row.us, row.cpu_us, row.ratio, `≤ ${row.target_us}`]),
));
report("run", { rounds, rows });

function openRuntime(secrets: string[]) {
  const policy = defaultPolicy();
  const large = { max_iterations: 10_000, max_tool_calls: 100_000, max_total_tokens: 1_000_000_000 };
  return createRuntime({
    policy: { ...policy, limits: { ...policy.limits, ...large } },
    store: new MemoryStore({ max_entries: 50_000, max_records: 1_000 }),
    modules: SCRIPTED_MODULES,
    secrets,
  });
}

async function runOnce(
  { runs }: ReturnType<typeof openRuntime>,
  script: Script,
  hooks: JsonObject[],
): Promise<void> {
  const plan = {
    session: { orchestrator: "loop-basic", context: "context-simple" },
    providers: [{ module: "provider-scripted", config: { ...script } }],
    ...(script.turns ? { tools: ["tool-noop"] } : {}),
    hooks,
  };
  const handle = await runs.create({ prompt: "Work it out.", plan }, CALLER);
  const run = await handle.settled("end");
  if (run.status === "completed" && run.turn_count === (script.turns ?? 0) + 1) return;
  throw new Error(`Cannot measure: the run must complete: received ${JSON.stringify(run)}`);
}

async function bareLoop(script: Script): Promise<string> {
  const provider = scriptedProvider(script);
  const messages: Message[] = [{ role: "user", content: "Work it out." }];
  let deltas = 0;
  for (;;) {
    const response = await provider.complete({ messages }, { onDelta: () => void deltas++ });
    const calls = response.tool_calls ?? [];
    messages.push({ role: "assistant", content: response.content });
    if (calls.length === 0) return String(response.content[0]?.text ?? "");
    const results = await Promise.all(calls.map((call) => noop.execute(call.arguments)));
    for (const [index, result] of results.entries()) {
      const { id, name } = calls[index]!; // one result for each call
      messages.push({
        role: "tool",
        tool_call_id: id,
        name,
        content: (result as ToolResult).output as string,
      });
    }
  }
}

async function repeat(times: number, run: () => Promise<unknown>): Promise<void> {
  for (let time = 0; time < times; time++) await run();
}
