/** Waiting for other work without timers. */
import { turn } from "../../src/sdk/testing/clocks.ts";

/** Resolves when `condition` holds; has no timeout of its own. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await turn();
  await turn();
}
