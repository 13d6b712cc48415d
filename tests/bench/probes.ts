/** Sends requests to a server that is busy with other clients. */

/** What became of the requests. */
export interface Probed {
  readonly requests: number;
  /** Answers that were not 200, and requests without one. */
  readonly failed: number;
  readonly p50_ms: number;
  readonly p99_ms: number;
}

/** Milliseconds between two requests. */
const EVERY_MS = 10;

/** Requests `GET /healthz` one at a time until `end` resolves. */
export async function probe(url: string, end: Promise<unknown>): Promise<Probed> {
  let ended = false;
  end.finally(() => ended = true);
  const times: number[] = [];
  let failed = 0;
  while (!ended) {
    const start = performance.now();
    try {
      const response = await fetch(`${url}/healthz`);
      await response.body?.cancel();
      if (response.status !== 200) failed++;
    } catch {
      failed++;
    }
    times.push(performance.now() - start);
    await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
  }
  times.sort((a, b) => a - b);
  const at = (part: number) => times[Math.ceil(times.length * part) - 1] ?? NaN;
  return { requests: times.length, failed, p50_ms: at(0.5), p99_ms: at(0.99) };
}
