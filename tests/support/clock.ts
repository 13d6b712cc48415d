/** Waiting for other work without a verdict by the clock. */
import { type FakeClock, turn } from "../../src/testing/clocks.ts";

/** Milliseconds after which a test gives up what never ends; the busiest machine needs a tenth of them. */
export const HANGS_MS = 300_000;

/** Resolves when `condition` holds; has no timeout of its own. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await turn();
  await turn();
}

/** Makes intervals pass in the time of a clock, until the result is disposed. */
export function intervalsOf(clock: FakeClock): Disposable {
  const { setInterval, clearInterval } = globalThis;
  const stops: (() => void)[] = [];
  const every = (run: () => void, ms: number) => {
    const index = stops.length;
    const again = () => {
      stops[index] = clock.later(ms, again);
      run();
    };
    stops.push(clock.later(ms, again));
    return index + 1;
  };
  globalThis.setInterval = every as unknown as typeof setInterval; // the handle is only passed to clearInterval
  globalThis.clearInterval = (handle) => stops[Number(handle) - 1]?.();
  return {
    [Symbol.dispose]() {
      Object.assign(globalThis, { setInterval, clearInterval });
      for (const stop of stops) stop();
    },
  };
}
