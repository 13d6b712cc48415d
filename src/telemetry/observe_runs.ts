/** Makes the observer of each run: its metrics, its spans, or both. */
import type { RunObserver, RunsDeps } from "../runs/ports.ts";
import type { Metrics } from "./metrics.ts";
import { RunsMetrics } from "./run_metrics.ts";
import type { Tracing } from "./tracing.ts";

/** Returns a function that creates the observer of a run; undefined when nothing is observed. */
export function runObservers(metrics: Metrics | null, tracing: Tracing | null): RunsDeps["observe"] {
  const counted = metrics ? new RunsMetrics(metrics) : null;
  if (counted && tracing) {
    return (run): RunObserver => {
      const [count, spans] = [counted.run(), tracing.run(run)];
      return {
        ...spans,
        stored(entries) {
          count.stored(entries);
          spans.stored(entries);
        },
        ended() {
          count.ended();
          spans.ended();
        },
      };
    };
  }
  if (tracing) return (run) => tracing.run(run);
  return counted ? () => counted.run() : undefined;
}
