/** Waiting for other work without a verdict by the clock. */
import { turn } from "../../src/testing/clocks.ts";

/** Milliseconds after which a test gives up what never ends; the busiest machine needs a tenth of them. */
export const HANGS_MS = 300_000;

/** Resolves when `condition` holds; has no timeout of its own. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await turn();
  await turn();
}
