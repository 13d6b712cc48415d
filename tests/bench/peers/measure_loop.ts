/** Measures one library of `loops/` in every scenario and prints its figures as one JSON line. Arguments: file name, rounds. */
import { print } from "../figures.ts";
import { answerOf, type Script } from "../modules/scripted.ts";
import { middle, ratio, take, takeTurns } from "../rounds.ts";
import { FLOOR_TIMES, repeat, runBare, type Scenario, SCENARIOS } from "../run_scenarios.ts";
import type { Contestant, CreateContestant, PeerFigure, PeerFigures } from "./loops/contestant.ts";

/** Maximum time of one run in ms; longer runs have fewer turns. */
const LONGEST_RUN_MS = 900;
/** Turns of those runs. */
const FEWER_TURNS = 200;
/** Runs before a measurement, so that both sides are compiled. */
const WARM_UP_RUNS = 40;

const [file = "", rounds = "5"] = Deno.args;
const { create } = await import(`./loops/${file}`) as { create: CreateContestant };
const contestant = await create();
const scenarios: Record<string, PeerFigure> = {};
for (const [name, scenario] of Object.entries(SCENARIOS)) {
  scenarios[name] = await measure(contestant, scenario);
}
await contestant.close?.();
print(JSON.stringify({ name: contestant.name, scenarios } satisfies PeerFigures));

async function measure(contestant: Contestant, { script, runs, units }: Scenario): Promise<PeerFigure> {
  const turns = await turnsOf(contestant, script);
  const cut = { ...script, turns };
  const parts = script.turns ? units * turns / script.turns : units;
  const run = () => checkedRun(contestant, cut);
  await repeat(Math.min(WARM_UP_RUNS, runs * 3), run);
  const { bare, theirs } = await takeTurns(Number(rounds), {
    bare: () => repeat(runs * FLOOR_TIMES, () => runBare(cut)),
    theirs: () => repeat(runs, run),
  });
  return {
    turns,
    us: middle(theirs, "wall_ms") * 1_000 / runs / parts,
    cpu_us: middle(theirs) * 1_000 / runs / parts,
    bare_us: middle(bare, "wall_ms") * 1_000 / runs / parts / FLOOR_TIMES,
    ratio: ratio(theirs, bare, "wall_ms") * FLOOR_TIMES,
  };
}

/** Resolves to the turns of a script, or to {@link FEWER_TURNS} if its run would take too long at quadratic growth. */
async function turnsOf(contestant: Contestant, script: Script): Promise<number> {
  const turns = script.turns ?? 0;
  if (turns <= FEWER_TURNS) return turns;
  const run = () => checkedRun(contestant, { ...script, turns: FEWER_TURNS });
  await run(); // warms up
  const { wall_ms } = await take(run);
  return wall_ms * (turns / FEWER_TURNS) ** 2 <= LONGEST_RUN_MS ? turns : FEWER_TURNS;
}

async function checkedRun(contestant: Contestant, script: Script): Promise<void> {
  const { turns = 0, calls = 1, deltas = 0 } = script;
  const outcome = await contestant.run(script);
  const same = outcome.answers === turns + 1 && outcome.executed === turns * calls &&
    outcome.text === answerOf(script);
  if (same && (deltas === 0 || outcome.deltas === deltas)) return;
  throw new Error(
    `Cannot measure: ${contestant.name} must follow the script: received ${outcome.answers} answers, ` +
      `${outcome.executed} calls, ${outcome.deltas} deltas, ${outcome.text.length} characters`,
  );
}
