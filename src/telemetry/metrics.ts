/** Receives what the parts of a server report, and adds it up. */
import {
  type GaugeName,
  type GaugeValue,
  type Labels,
  type MetricDefinition,
  METRICS,
  type RecordedName,
} from "./metric_table.ts";
import { LoopDelay } from "./loop_delay.ts";
import { gaugeText, recordedText, SeriesTable } from "./prometheus_text.ts";

/** Content type of {@link Metrics.text}. */
export const METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** The metrics of one server. */
export class Metrics {
  readonly #recorded = new Map<RecordedName, SeriesTable>();
  readonly #gauges = new Map<GaugeName, () => readonly GaugeValue[]>();
  readonly #loop_delay = new LoopDelay();

  constructor() {
    for (const [name, definition] of Object.entries<MetricDefinition>(METRICS)) {
      if (definition.type !== "gauge") this.#recorded.set(name as RecordedName, new SeriesTable(definition));
    }
    this.watch("process_resident_memory_bytes", () => [{ labels: {}, value: Deno.memoryUsage().rss }]);
    this.watch("preamp_heap_used_bytes", () => [{ labels: {}, value: Deno.memoryUsage().heapUsed }]);
    this.watch("preamp_event_loop_delay_seconds", () => this.#loop_delay.take());
  }

  /**
   * Adds to a counter, or to a histogram as one observation. Ignores a value that is not a finite number from 0.
   * @param value Default 1.
   */
  record<Name extends RecordedName>(name: Name, labels: Labels<Name>, value = 1): void {
    if (!(value >= 0 && value < Infinity)) return;
    this.#recorded.get(name)!.find(labels).add(value); // has every recorded name
  }

  /** Sets the function that returns a gauge's values on a scrape. */
  watch(name: GaugeName, read: () => readonly GaugeValue[]): void {
    this.#gauges.set(name, read);
  }

  /** Returns all metrics in Prometheus's text format. */
  text(): string {
    return Object.entries<MetricDefinition>(METRICS).map(([name, definition]) =>
      definition.type === "gauge"
        ? gaugeText(name, definition, this.#gauges.get(name as GaugeName)?.() ?? [])
        : recordedText(name, definition, this.#recorded.get(name as RecordedName)?.all ?? [])
    ).join("");
  }

  /** Stops measuring the event loop. */
  close(): void {
    this.#loop_delay.close();
  }
}
