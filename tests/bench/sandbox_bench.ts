/**
 * Modules that run elsewhere: from nothing to a tool's first answer, a warm call, a large answer, memory, many at once, and a
 * call within a turn; against a worker, and a child with a worker in it, that only echo.
 *
 *   deno run -A tests/bench/sandbox_bench.ts [rounds] [path of the compiled program]
 */
import { median, print, report, tableOf } from "./figures.ts";
import { measureCalls } from "./guests/calling.ts";
import {
  crowdOfBareChildren,
  crowdOfGuests,
  memoryOfBareChild,
  memoryOfGuest,
  memoryOfWorkers,
} from "./guests/memory.ts";
import { measureProgram } from "./guests/program.ts";
import { measureStarts, type Start, type StartName, STARTS } from "./guests/spawning.ts";
import { measureTurns } from "./guests/turns.ts";
import { compiledProgram } from "./processes.ts";

/** Calls of one round trip measurement, and of a turn. */
const CALLS = 200;
const TURN_CALLS = 100;
/** Guests at once. */
const CROWD = 32;
/** Workers whose memory is taken together. */
const WORKERS = 8;

/** Of 20 and 8 ms on a quiet machine where a cold start takes 75-110. */
const TARGETS: Partial<Record<StartName, string>> = {
  "child, pool, a new grant": "of cold ≤ 0.22",
  "child, pool, the same grant again": "of cold ≤ 0.22",
  "child, pool, no grant": "of cold ≤ 0.09",
};

const rounds = Number(Deno.args[0] ?? 7);
const program = Deno.args[1] ?? (await compiledProgram())?.path ?? null;

if (Deno.build.os !== "linux") {
  print("Guests are measured on Linux alone: their processor time and memory are read from /proc.");
  Deno.exit(0);
}

const calls = await tellCalls();
const starts = await tellStarts();
const memory = await tellMemory();
const crowd = await tellCrowd();
const turns = await tellTurns();
const compiled = await tellProgram();
report("sandbox", { rounds, starts, calls, memory, crowd, turns, compiled });

async function tellStarts() {
  const taken = await measureStarts(rounds);
  const cold = taken["child, cold"];
  const figures = STARTS.map((name) => {
    const floor = taken[name.includes("worker") ? "bare worker" : "bare child"];
    return {
      name,
      wall_ms: middle(taken[name], wall),
      cpu_ms: middle(taken[name], cpu),
      wall_ratio: ratios(taken[name], floor, wall),
      cpu_ratio: ratios(taken[name], floor, cpu),
      of_cold: name.includes("pool") ? ratios(taken[name], cold, wall) : null,
    };
  });
  print(`Start → a tool's first answer, median of ${rounds} rounds; processor time of both sides`);
  print(tableOf(
    ["", "ms", "ratio", "processor ms", "ratio", "of cold", "target"],
    figures.map((one) => [
      one.name,
      one.wall_ms,
      one.wall_ratio,
      one.cpu_ms,
      one.cpu_ratio,
      one.of_cold ?? "",
      TARGETS[one.name] ?? "",
    ]),
  ));
  print();
  return figures;
}

async function tellCalls() {
  const figures = await measureCalls(rounds, CALLS);
  print("A call of a warm tool; processor time of both sides");
  print(tableOf(
    ["", "bare µs", "µs", "ratio", "bare processor µs", "processor µs", "ratio", "target"],
    figures.map((one) => [
      `${one.tier}, ${one.what}`,
      one.bare_wall_us,
      one.wall_us,
      one.wall_ratio,
      one.bare_cpu_us,
      one.cpu_us,
      one.cpu_ratio,
      "≤ 1.5",
    ]),
  ));
  print();
  return figures;
}

async function tellMemory() {
  const bare = await memoryOfBareChild();
  const kinds = {
    "guest": await memoryOfGuest({ tier: "process" }),
    "guest with a grant": await memoryOfGuest({ tier: "process", granted: true }),
    "guest with zod": await memoryOfGuest({ tier: "process", kit: true }),
  };
  const workers = await memoryOfWorkers(WORKERS);
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
    [`bare worker, one of ${WORKERS}`, workers.bare_mb, 1, "", "", ""],
    ["guest in a worker", workers.guest_mb, workers.guest_mb / workers.bare_mb, "", "", ""],
  ]));
  print();
  return { bare, ...kinds, workers };
}

async function tellCrowd() {
  const bare = await crowdOfBareChildren(CROWD);
  const guests = await crowdOfGuests(CROWD, { tier: "process" });
  print(`${CROWD} at once`);
  print(tableOf(["", "ms until all answered", "ratio", "pss MB", "ratio", "rss MB"], [
    ["bare children", bare.ms, 1, bare.pss_mb, 1, bare.rss_mb],
    ["guests", guests.ms, guests.ms / bare.ms, guests.pss_mb, guests.pss_mb / bare.pss_mb, guests.rss_mb],
  ]));
  print();
  return { bare, guests };
}

async function tellTurns() {
  const figures = await measureTurns(rounds, TURN_CALLS);
  const [inline] = figures;
  print(`A tool call within a turn of ${TURN_CALLS}, through loop, guards, events and log`);
  print(tableOf(
    ["", "µs/call", "× inline", "processor µs/call here", "× inline", "run of one call ms"],
    figures.map((one) => [
      one.tier,
      one.wall_us,
      one.wall_us / (inline?.wall_us ?? NaN),
      one.host_us,
      one.host_us / (inline?.host_us ?? NaN),
      one.one_ms,
    ]),
  ));
  print();
  return figures;
}

async function tellProgram() {
  if (program === null) {
    print(
      "dist/preamp is not there, so that the compiled program was not measured: `deno task compile` makes it.",
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
