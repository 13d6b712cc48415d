/**
 * Asks URLs again and again from a process of its own, and says at the end how long the answers took: one
 * JSON line. Arguments: the milliseconds between two questions, then pairs of a URL and the number of the
 * process that answers it. Ends with its stdin.
 */

/** What the answers of one URL took, in milliseconds. */
export interface ProbeReport {
  count: number;
  /** Answers that were none, or not 200. */
  failed: number;
  p50: number;
  p99: number;
  max: number;
  /**
   * p99 without the time that server or probe waited for a processor: what the server itself made its client
   * wait.
   */
  own_p99: number;
}

async function probe(url: string, pid: string, every_ms: number, signal: AbortSignal): Promise<ProbeReport> {
  const times: number[] = [];
  const own: number[] = [];
  let failed = 0;
  while (!signal.aborted) {
    const waited = [waitedFor(pid), waitedFor("self")];
    const start = performance.now();
    try {
      const answer = await fetch(url);
      await answer.body?.cancel();
      if (answer.status !== 200) failed++;
    } catch {
      failed++;
    }
    const took = performance.now() - start;
    times.push(took);
    // the longer of the two: when both wait at once, the time counts once
    const wait = Math.max(waitedFor(pid) - waited[0]!, waitedFor("self") - waited[1]!);
    own.push(Math.max(0, took - wait));
    await new Promise((resolve) => setTimeout(resolve, every_ms));
  }
  const [of_all, of_own] = [percentiles(times), percentiles(own)];
  return {
    count: times.length,
    failed,
    p50: of_all(0.5),
    p99: of_all(0.99),
    max: of_all(1),
    own_p99: of_own(0.99),
  };
}

function percentiles(times: readonly number[]): (part: number) => number {
  const sorted = times.toSorted((one, other) => one - other);
  return (part) =>
    Number((sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0).toFixed(1));
}

/**
 * Milliseconds that the main thread of a process was ready to run and had no processor; 0 where the system
 * does not say.
 */
function waitedFor(pid: string): number {
  try {
    const path = pid === "self" ? "/proc/self/task" : `/proc/${pid}/task`;
    const thread = pid === "self" ? String(Deno.pid) : pid;
    const [, waited_ns] = Deno.readTextFileSync(`${path}/${thread}/schedstat`).split(" ");
    return Number(waited_ns) / 1e6;
  } catch {
    return 0;
  }
}

if (import.meta.main) {
  const stop = new AbortController();
  const [every_ms, ...args] = Deno.args;
  const reports = args.flatMap((url, index) =>
    index % 2 ? [] : [probe(url, args[index + 1]!, Number(every_ms), stop.signal)]
  );
  for await (const _ of Deno.stdin.readable); // until the parent process closes stdin
  stop.abort();
  Deno.stdout.writeSync(new TextEncoder().encode(`${JSON.stringify(await Promise.all(reports))}\n`));
  Deno.exit(0);
}
