/** Makes the observer of each run: its metrics, its spans, or both. */
import type { RunObserver, RunsDeps } from "../runs/ports.ts";
import type { Metrics } from "./metrics.ts";
import { RunsMetrics } from "./run_metrics.ts";

/** Returns a function that creates the observer of a run; undefined when nothing is observed. */
export function runObservers(metrics: Metrics | null): RunsDeps["observe"] {
  if (metrics === null) return undefined;
  const runs = new RunsMetrics(metrics);
  return (): RunObserver => runs.run();
}
