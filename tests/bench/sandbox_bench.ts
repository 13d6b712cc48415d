/**
 * Sandboxed modules: start to a tool's first answer, a warm call, a large answer, memory, many at once, and a
 * call within a turn; compared with a child process with a worker that only echoes.
 *
 *   deno run -A tests/bench/sandbox_bench.ts [rounds] [path of the compiled program]
 */
import { median, print, report, tableOf } from "./figures.ts";
import { measureCalls } from "./guests/calling.ts";
import { crowdOfBareChildren, crowdOfGuests, memoryOfBareChild, memoryOfGuest } from "./guests/memory.ts";
import { measureProgram } from "./guests/program.ts";
import { measureStarts, type Start, type StartName, STARTS } from "./guests/spawning.ts";
import { measureTurns } from "./guests/turns.ts";
import { compiledProgram } from "./processes.ts";

/** Calls of a round trip measurement, and of a turn. */
const CALLS = 200;
const TURN_CALLS = 100;
/** Guests at once. */
const CROWD = 32;

/** From 20 and 8 ms on an idle machine with a cold start of 75-110 ms. */
const TARGETS: Partial<Record<StartName, string>> = {
  "child, pool, a new grant": "of cold ≤ 0.22",
  "child, pool, the same grant again": "of cold ≤ 0.22",
  "child, pool, no grant": "of cold ≤ 0.09",
};

const rounds = Number(Deno.args[0] ?? 7);
const program = Deno.args[1] ?? (await compiledProgram())?.path ?? null;

if (Deno.build.os !== "linux") {
  print("This bench runs on Linux only: it reads processor time and memory from /proc.");
  Deno.exit(0);
}

const calls = await reportCalls();
const starts = await reportStarts();
const memory = await reportMemory();
const crowd = await reportCrowd();
const turns = await reportTurns();
const compiled = await reportProgram();
report("sandbox", { rounds, starts, calls, memory, crowd, turns, compiled });

async function reportStarts() {
  const taken = await measureStarts(rounds);
  const cold = taken["child, cold"];
  const figures = STARTS.map((name) => {
    const floor = taken["bare child"];
    return {
      name,
      wall_ms: middle(taken[name], wall),
      cpu_ms: middle(taken[name], cpu),
      wall_ratio: ratios(taken[name], floor, wall),
      cpu_ratio: ratios(taken[name], floor, cpu),
      of_cold: name.includes("pool") ? ratios(taken[name], cold, wall) : null,
    };
  });
  print(`Start to a tool's first answer, median of ${rounds} rounds; processor time of both sides`);
  print(tableOf(
    ["", "ms", "ratio", "processor ms", "ratio", "of cold", "target"],
    figures.map((figure) => [
      figure.name,
      figure.wall_ms,
      figure.wall_ratio,
      figure.cpu_ms,
      figure.cpu_ratio,
      figure.of_cold ?? "",
      TARGETS[figure.name] ?? "",
    ]),
  ));
  print();
  return figures;
}

async function reportCalls() {
  const figures = await measureCalls(rounds, CALLS);
  print("A call of a warm tool; processor time of both sides");
  print(tableOf(
    ["", "bare µs", "µs", "ratio", "bare processor µs", "processor µs", "ratio", "target"],
    figures.map((figure) => [
      figure.label,
      figure.bare_wall_us,
      figure.wall_us,
      figure.wall_ratio,
      figure.bare_cpu_us,
      figure.cpu_us,
      figure.cpu_ratio,
      "≤ 1.5",
    ]),
  ));
  print();
  return figures;
}

async function reportMemory() {
  const bare = await memoryOfBareChild();
  const kinds = {
    "guest": await memoryOfGuest({}),
    "guest with a grant": await memoryOfGuest({ granted: true }),
    "guest with zod": await memoryOfGuest({ kit: true }),
  };
  print("Memory of one that has answered");
  print(tableOf(["", "rss MB", "ratio", "pss MB", "ratio", "target"], [
    ["bare child with a worker", bare.rss_mb, 1, bare.pss_mb, 1, ""],
    ...Object.entries(kinds).map(([name, { rss_mb, pss_mb }]) => [
      name,
      rss_mb,
      rss_mb / bare.rss_mb,
      pss_mb,
      pss_mb / bare.pss_mb,
      "≤ 1.2",
    ]),
  ]));
  print();
  return { bare, ...kinds };
}

async function reportCrowd() {
  const bare = await crowdOfBareChildren(CROWD);
  const guests = await crowdOfGuests(CROWD, {});
  print(`${CROWD} at once`);
  print(tableOf(["", "ms until all answered", "ratio", "pss MB", "ratio", "rss MB"], [
    ["bare children", bare.ms, 1, bare.pss_mb, 1, bare.rss_mb],
    ["guests", guests.ms, guests.ms / bare.ms, guests.pss_mb, guests.pss_mb / bare.pss_mb, guests.rss_mb],
  ]));
  print();
  return { bare, guests };
}

async function reportTurns() {
  const figures = await measureTurns(rounds, TURN_CALLS);
  const [inline] = figures;
  print(`A tool call within a turn of ${TURN_CALLS}, through loop, guards, events and log`);
  print(tableOf(
    ["", "µs/call", "× inline", "processor µs/call here", "× inline", "run of one call ms"],
    figures.map((figure) => [
      figure.tier,
      figure.wall_us,
      figure.wall_us / (inline?.wall_us ?? NaN),
      figure.host_us,
      figure.host_us / (inline?.host_us ?? NaN),
      figure.one_ms,
    ]),
  ));
  print();
  return figures;
}

async function reportProgram() {
  if (program === null) {
    print(
      "dist/preamp does not exist, so the compiled program was not measured; create it with `deno task compile`.",
    );
    return null;
  }
  const figures = await measureProgram(program, rounds);
  const { run, serve } = figures;
  print("The compiled program: a run with one call of a tool");
  print(tableOf(["", "built in ms", "of a file ms", "the file's first ms"], [
    ["preamp run, start to end", run.built_in_ms, run.file_ms, ""],
    ["POST /v1/runs to preamp serve", serve.built_in_ms, serve.file_ms, serve.first_ms],
  ]));
  return figures;
}

function wall({ wall_ms }: Start): number {
  return wall_ms;
}

function cpu({ host_ms, child_ms }: Start): number {
  return host_ms + child_ms;
}

function middle(starts: readonly Start[], measure: (start: Start) => number): number {
  return median(starts.map(measure));
}

function ratios(
  starts: readonly Start[],
  floor: readonly Start[],
  measure: (start: Start) => number,
): number {
  return median(starts.map((start, round) => measure(start) / (floor[round] ? measure(floor[round]) : NaN)));
}
