/** A clock with timers that only a test advances, and waiting for other work without timers. */
import { FakeClock, turn } from "../../src/sdk/testing/clocks.ts";
import type { SystemClock } from "../../src/process/system_clock.ts";

/** A {@link FakeClock} with the timers of a `SystemClock`. */
export class FakeSystemClock extends FakeClock implements SystemClock {
  tick(ms: number, callback: () => void): void {
    this.later(ms, callback);
  }
}

/** Resolves when `condition` holds; has no timeout of its own. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await turn();
  await turn();
}
