/**
 * Asks URLs again and again from a process of its own, and says at the end how long the answers took: one JSON line. Arguments:
 * the URLs. Ends with its stdin.
 */

/** Milliseconds between two questions. */
const EVERY_MS = 8;

/** What the answers of one URL took, in milliseconds. */
export interface ProbeReport {
  count: number;
  /** Answers that were none, or not 200. */
  failed: number;
  p50: number;
  p99: number;
  max: number;
}

async function probe(url: string, signal: AbortSignal): Promise<ProbeReport> {
  const times: number[] = [];
  let failed = 0;
  while (!signal.aborted) {
    const start = performance.now();
    try {
      const answer = await fetch(url);
      await answer.body?.cancel();
      if (answer.status !== 200) failed++;
    } catch {
      failed++;
    }
    times.push(performance.now() - start);
    await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
  }
  times.sort((one, other) => one - other);
  const at = (part: number) =>
    Number((times[Math.min(times.length - 1, Math.floor(times.length * part))] ?? 0).toFixed(1));
  return { count: times.length, failed, p50: at(0.5), p99: at(0.99), max: at(1) };
}

if (import.meta.main) {
  const stop = new AbortController();
  const reports = Deno.args.map((url) => probe(url, stop.signal));
  for await (const _ of Deno.stdin.readable); // until whoever started it is done
  stop.abort();
  Deno.stdout.writeSync(new TextEncoder().encode(`${JSON.stringify(await Promise.all(reports))}\n`));
  Deno.exit(0);
}
