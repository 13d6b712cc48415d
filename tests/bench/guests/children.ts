/** Reads processor time and memory of child processes from Linux's `/proc`, and waits until they are idle. */
import { processorMs } from "../processes.ts";

/** Memory of processes in MB. */
export interface Memory {
  /** Sum of the resident memory; shared pages count once for each process. */
  readonly rss_mb: number;
  /** Sum of the proportional shares: the memory that the machine spends. */
  readonly pss_mb: number;
}

/** Milliseconds between two samples. */
const SAMPLE_MS = 100;
/** Number of consecutive idle samples that count as idle. */
const IDLE_SAMPLES = 4;
/** Processor time in ms between two samples that still counts as idle; a watchdog needs it. */
const IDLE_MS = 1.5;
/** Maximum milliseconds until all are idle. */
const IDLE_TIMEOUT_MS = 20_000;

/** Returns the process ids of the running children, without zombies. */
export async function children(): Promise<number[]> {
  const found: number[] = [];
  for await (const { name } of Deno.readDir("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const stat = await read(`/proc/${name}/stat`);
    // "pid (name) state ppid …"; the name may contain spaces and brackets (proc(5))
    const [state, parent] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    if (Number(parent) === Deno.pid && state !== "Z") found.push(Number(name));
  }
  return found;
}

/** Returns the processor time of processes in ms; one that has ended counts 0. */
export async function worked(pids: readonly number[]): Promise<number> {
  let sum = 0;
  for (const pid of pids) sum += await processorMs(pid).catch(() => null) ?? 0; // a thread may end meanwhile
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

/**
 * Resolves to the children once there are `count` of them and all are idle. @throws {Error} after a timeout.
 */
export async function resting(count: number): Promise<number[]> {
  const start = performance.now();
  let [before, idle] = [NaN, 0];
  while (idle < IDLE_SAMPLES) {
    if (performance.now() - start > IDLE_TIMEOUT_MS) {
      throw new Error(
        `Cannot measure: there must be ${count} idle children: received ${await children()}`,
      );
    }
    await new Promise((resolve) => setTimeout(resolve, SAMPLE_MS));
    const pids = await children();
    const now = await worked(pids);
    idle = pids.length === count && Math.abs(now - before) < IDLE_MS * Math.max(1, count) ? idle + 1 : 0;
    before = now;
  }
  return await children();
}

function kilobytes(text: string, field: string): number {
  const line = text.split("\n").find((text) => text.startsWith(`${field}:`)) ?? "";
  return Number(line.split(/\s+/)[1] ?? 0);
}

async function read(path: string): Promise<string> {
  try {
    return await Deno.readTextFile(path);
  } catch {
    return ""; // the process has ended
  }
}
