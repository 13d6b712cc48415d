/** The children of this process, by Linux's `/proc`: how much they have worked, how much memory they take, when they rest. */
import { processorMs } from "../processes.ts";

/** Memory of processes in MB. */
export interface Memory {
  /** What each has resident, summed: shared pages count once for each. */
  readonly rss_mb: number;
  /** The share of each, summed: what the machine has less. */
  readonly pss_mb: number;
}

/** Milliseconds between two looks at who works. */
const LOOK_MS = 100;
/** Looks in a row without work that count as rest. */
const RESTS = 4;
/** Processor time in ms between two looks that is still rest: a watchdog's. */
const IDLE_MS = 1.5;
/** Milliseconds until it is said that they never rest. */
const PATIENCE_MS = 20_000;

/** Returns the ids of the children that are there, without those that ended and were not waited for. */
export async function children(): Promise<number[]> {
  const found: number[] = [];
  for await (const { name } of Deno.readDir("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const stat = await read(`/proc/${name}/stat`);
    // "pid (name) state ppid …", and a name may have spaces and brackets in it (proc(5))
    const [state, parent] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    if (Number(parent) === Deno.pid && state !== "Z") found.push(Number(name));
  }
  return found;
}

/** Returns the processor time in ms that processes have taken; one that ended counts nothing. */
export async function worked(pids: readonly number[]): Promise<number> {
  let sum = 0;
  for (const pid of pids) sum += await processorMs(pid).catch(() => null) ?? 0; // its threads end while we look
  return sum;
}

/** Returns the memory of processes. */
export async function memoryOf(pids: readonly number[]): Promise<Memory> {
  let [rss_mb, pss_mb] = [0, 0];
  for (const pid of pids) {
    const text = await read(`/proc/${pid}/smaps_rollup`);
    rss_mb += kilobytes(text, "Rss") / 1024;
    pss_mb += kilobytes(text, "Pss") / 1024;
  }
  return { rss_mb, pss_mb };
}

/** Resolves to the children once there are `count` of them and none works. @throws {Error} when that does not come. */
export async function resting(count: number): Promise<number[]> {
  const start = performance.now();
  let [before, rests] = [NaN, 0];
  while (rests < RESTS) {
    if (performance.now() - start > PATIENCE_MS) {
      throw new Error(
        `Cannot measure: there must be ${count} children at rest: received ${await children()}`,
      );
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    const pids = await children();
    const now = await worked(pids);
    rests = pids.length === count && Math.abs(now - before) < IDLE_MS * Math.max(1, count) ? rests + 1 : 0;
    before = now;
  }
  return await children();
}

function kilobytes(text: string, field: string): number {
  const line = text.split("\n").find((one) => one.startsWith(`${field}:`)) ?? "";
  return Number(line.split(/\s+/)[1] ?? 0);
}

async function read(path: string): Promise<string> {
  try {
    return await Deno.readTextFile(path);
  } catch {
    return ""; // it ended while we looked
  }
}
