/**
 * Measures the time from start to a tool's first answer: cold and from the pool, compared with a
 * bare one.
 */
import { stopwatch } from "../rounds.ts";
import { type Echo, openBareChild } from "./bare.ts";
import { children, resting, worked } from "./children.ts";
import { type GuestKind, openSandbox, openTool } from "./tool.ts";

/** Times from one start to its first answer. */
export interface Start {
  readonly wall_ms: number;
  /** Processor time of this process. */
  readonly host_ms: number;
  /** Processor time of the child. */
  readonly child_ms: number;
}

/** The name of a kind of start. */
export type StartName = typeof STARTS[number];

/** Kinds of starts, in the order of a round. */
export const STARTS = [
  "bare child",
  "child, cold",
  "child with zod, cold",
  "child, pool, a new grant",
  "child, pool, the same grant again",
  "child, pool, no grant",
  "child with zod, pool, no grant",
] as const;

const POOLED: Partial<Record<StartName, GuestKind>> = {
  "child, pool, a new grant": { granted: true },
  "child, pool, the same grant again": { granted: true },
  "child, pool, no grant": {},
  "child with zod, pool, no grant": { kit: true },
};

const COLD: Partial<Record<StartName, GuestKind>> = {
  "child, cold": {},
  "child with zod, cold": { kit: true },
};

/** Measures all kinds in turn; a first round warms up and is not counted. */
export async function measureStarts(rounds: number): Promise<Record<StartName, Start[]>> {
  const taken = Object.fromEntries(STARTS.map((name) => [name, []])) as unknown as Record<StartName, Start[]>;
  for (let round = -1; round < rounds; round++) {
    for (const name of STARTS) {
      const start = await startOf(name);
      if (round >= 0) taken[name].push(start);
    }
  }
  return taken;
}

async function startOf(name: StartName): Promise<Start> {
  if (name === "bare child") return await timed(() => echo(openBareChild()));
  const cold = COLD[name];
  if (cold) return await coldStart(cold);
  return await pooledStart(POOLED[name]!, name.includes("again"));
}

async function coldStart(kind: GuestKind): Promise<Start> {
  const sandbox = openSandbox("no pool");
  const start = await timed(async () => await answering(sandbox, kind));
  await sandbox.close();
  return start;
}

/** @param again Whether the pool has opened guests with this grant before. */
async function pooledStart(kind: GuestKind, again: boolean): Promise<Start> {
  const sandbox = openSandbox("pool");
  sandbox.prepare();
  for (let seen = 0; again && seen < 2; seen++) await (await answering(sandbox, kind))[Symbol.asyncDispose]();
  await resting(again ? 3 : 2);
  const start = await timed(async () => await answering(sandbox, kind), true);
  await sandbox.close();
  await resting(0);
  return start;
}

async function answering(sandbox: ReturnType<typeof openSandbox>, kind: GuestKind): Promise<AsyncDisposable> {
  const tool = await openTool(sandbox, kind);
  await tool.call({ text: "hello" });
  return tool;
}

async function echo(bare: Echo): Promise<AsyncDisposable> {
  await bare.send("hello");
  return bare;
}

/** @param pooled Whether the child is already running; others that start meanwhile are not counted. */
async function timed(start: () => Promise<AsyncDisposable>, pooled = false): Promise<Start> {
  const before = await children();
  const worked_before = await worked(before);
  const taken = stopwatch();
  const started = await start();
  const { wall_ms, cpu_ms: host_ms } = taken();
  const child_ms = await worked(pooled ? before : await children()) - worked_before;
  await started[Symbol.asyncDispose]();
  return { wall_ms, host_ms, child_ms };
}
