/** Every metric of `GET /metrics` with its type, help text and labels; see src/docs/operating.md#metrics. */

export interface MetricDefinition {
  readonly type: "counter" | "histogram" | "gauge";
  readonly help: string;
  readonly labels: readonly string[];
  /** Labels that a counter has from the start, at zero: a rate would miss the first value otherwise. */
  readonly zeros?: readonly (readonly string[])[];
  /** Upper bounds of a histogram's buckets, ascending. */
  readonly buckets?: readonly number[];
}

/** Seconds of fast operations, such as requests and commits. */
const FAST = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10];
/** Seconds of operations that wait for models. */
const SLOW = [0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];

export const METRICS = {
  preamp_http_request_duration_seconds: {
    type: "histogram",
    help: "Time until the headers of a response, by route pattern; _count is the number of requests",
    labels: ["method", "route", "status"],
    buckets: FAST,
  },
  preamp_event_streams: { type: "gauge", help: "Open event streams", labels: [] },
  preamp_runs: {
    type: "gauge",
    help: "Runs of this process that have not ended, by status",
    labels: ["status"],
  },
  preamp_run_duration_seconds: {
    type: "histogram",
    help: "Time from the creation to the end of a run; _count is the number of ended runs",
    labels: ["status"],
    buckets: SLOW,
  },
  preamp_runs_ended_total: {
    type: "counter",
    help: "Ended runs by outcome",
    labels: ["status", "stop_reason"],
    zeros: [
      ["completed", "end_turn"],
      ["incomplete", "max_output_tokens"],
      ["incomplete", "content_filter"],
      ["incomplete", "empty_response"],
      ["incomplete", "limit:max_iterations"],
      ["incomplete", "limit:max_tool_calls"],
      ["incomplete", "limit:max_total_tokens"],
      ["incomplete", "limit:max_cost_usd"],
      ["incomplete", "limit:max_duration_s"],
      ["denied", "denied"],
      ["cancelled", "cancelled"],
      ["failed", "error"],
    ],
  },
  preamp_model_call_duration_seconds: {
    type: "histogram",
    help: "Time of a model call with its retries; outcome is ok or the type of the error",
    labels: ["provider", "outcome"],
    buckets: SLOW,
  },
  preamp_model_retries_total: {
    type: "counter",
    help: "Repeated attempts of model calls",
    labels: ["provider"],
  },
  preamp_model_tokens_total: {
    type: "counter",
    help: "Tokens of model calls; input contains cache_read, output contains reasoning",
    labels: ["provider", "kind"],
  },
  preamp_model_cost_usd_total: {
    type: "counter",
    help: "Cost of model calls with a known price, in US dollars",
    labels: ["provider"],
  },
  preamp_tool_call_duration_seconds: {
    type: "histogram",
    help: "Time of a tool call without the wait for an approval; outcome is ok, failed, error or denied",
    labels: ["outcome"],
    buckets: SLOW,
  },
  preamp_guests: { type: "gauge", help: "Running sandboxes", labels: [] },
  preamp_guests_ended_total: {
    type: "counter",
    help: "Ended sandboxes by cause",
    labels: ["cause"],
    zeros: [["ended"], ["crashed"], ["memory"], ["timeout"], ["output"], ["violation"]],
  },
  preamp_store_commit_duration_seconds: {
    type: "histogram",
    help: "Time of a commit of the store, except the memory store; outcome is ok, conflict or error",
    labels: ["store", "outcome"],
    buckets: FAST,
  },
  preamp_store_up: {
    type: "gauge",
    help: "0 from the first operation that finds the store away or full until one succeeds; else 1",
    labels: ["store"],
  },
  preamp_event_loop_delay_seconds: {
    type: "gauge",
    help: "Longest delay of the event loop since the previous scrape; absent on the first one",
    labels: [],
  },
  process_resident_memory_bytes: { type: "gauge", help: "Resident memory of the process", labels: [] },
  preamp_heap_used_bytes: { type: "gauge", help: "Used part of the JavaScript heap", labels: [] },
} as const satisfies Readonly<Record<string, MetricDefinition>>;

type Table = typeof METRICS;

export type MetricName = keyof Table;

type NamesOf<Type> = { [Name in MetricName]: Table[Name]["type"] extends Type ? Name : never }[MetricName];

/** Name of a counter or histogram. */
export type RecordedName = NamesOf<"counter" | "histogram">;

/** Name of a gauge, whose value is read on a scrape. */
export type GaugeName = NamesOf<"gauge">;

/** The labels of a metric with their values. */
export type Labels<Name extends MetricName> = Readonly<Record<Table[Name]["labels"][number], string>>;

/** A gauge's value. */
export interface GaugeValue {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}
