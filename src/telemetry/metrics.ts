/**
 * Receives what the parts of a server report. Recording only appends to a buffer: prom-client is imported, and
 * the buffer is counted, on a scrape or when the buffer is full.
 */
import type { GaugeName, GaugeValue, Labels, RecordedName, Sample } from "./metric_table.ts";
import { LoopDelay } from "./loop_delay.ts";
import type { Prometheus } from "./prometheus.ts";

/** Content type of {@link Metrics.text}. */
export const METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** Samples that are kept before they are counted. */
const MAX_BUFFERED = 1000;

/** The metrics of one server. */
export class Metrics {
  readonly #gauges = new Map<GaugeName, () => readonly GaugeValue[]>();
  readonly #loop_delay = new LoopDelay();
  #buffer: Sample[] = [];
  #prometheus: Promise<Prometheus> | undefined;

  constructor() {
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
    if (this.#buffer.push({ name, labels, value }) % MAX_BUFFERED !== 0) return;
    this.#count().catch(() => this.#buffer = []); // a scrape answers with the error
  }

  /** Sets the function that returns a gauge's values on a scrape. */
  watch(name: GaugeName, read: () => readonly GaugeValue[]): void {
    this.#gauges.set(name, read);
  }

  /** Returns all metrics in Prometheus's text format. */
  async text(): Promise<string> {
    const prometheus = await this.#count();
    const gauges = [...this.#gauges].map(([name, read]) => ({ name, values: read() }));
    return await prometheus.text(gauges);
  }

  async #count(): Promise<Prometheus> {
    const prometheus =
      await (this.#prometheus ??= import("./prometheus.ts").then(({ Prometheus }) => new Prometheus()));
    const samples = this.#buffer;
    this.#buffer = [];
    prometheus.count(samples);
    return prometheus;
  }

  /** Stops measuring the event loop. */
  close(): void {
    this.#loop_delay.close();
  }
}
