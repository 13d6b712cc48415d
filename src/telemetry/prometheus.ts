/** Counts samples and formats them as Prometheus's text. The only file that imports prom-client. */
import { Counter, Gauge, Histogram, Registry } from "prom-client";
import {
  type GaugeName,
  type GaugeValue,
  type MetricDefinition,
  METRICS,
  type RecordedName,
  type Sample,
} from "./metric_table.ts";

/** The values of the counters and histograms of one server. */
export class Prometheus {
  readonly #registry = new Registry();
  readonly #counters = new Map<RecordedName, Counter>();
  readonly #histograms = new Map<RecordedName, Histogram>();
  readonly #gauges = new Map<GaugeName, Gauge>();

  constructor() {
    const registers = [this.#registry];
    for (const [name, definition] of Object.entries<MetricDefinition>(METRICS)) {
      const { type, help, labels } = definition;
      const options = { name, help, labelNames: [...labels], registers };
      if (type === "counter") this.#counters.set(name as RecordedName, new Counter(options));
      else if (type === "gauge") this.#gauges.set(name as GaugeName, new Gauge(options));
      else {
        const buckets = [...definition.buckets ?? []];
        this.#histograms.set(name as RecordedName, new Histogram({ ...options, buckets }));
      }
    }
  }

  /** Adds samples. */
  count(samples: readonly Sample[]): void {
    for (const { name, labels, value } of samples) {
      this.#counters.get(name)?.inc(labels, value);
      this.#histograms.get(name)?.observe(labels, value);
    }
  }

  /** Returns the text with these values of the gauges. */
  text(gauges: readonly { name: GaugeName; values: readonly GaugeValue[] }[]): Promise<string> {
    for (const { name, values } of gauges) {
      const gauge = this.#gauges.get(name);
      gauge?.reset();
      if (values.length === 0) gauge?.remove();
      for (const { labels, value } of values) gauge?.set(labels, value);
    }
    return this.#registry.metrics();
  }
}
