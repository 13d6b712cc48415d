/** Records the duration of each request under its route, and names its span by the route. */
import type { Metrics } from "../../telemetry/metrics.ts";
import type { OpenTelemetry } from "../../telemetry/open_telemetry.ts";
import type { Answer } from "../answers.ts";
import type { RequestContext } from "../context.ts";

const METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);

/** Observes the requests of one server. */
export class RequestObserver {
  readonly #metrics: Metrics;
  readonly #telemetry: OpenTelemetry | undefined;

  constructor(metrics: Metrics, telemetry: OpenTelemetry | undefined) {
    this.#metrics = metrics;
    this.#telemetry = telemetry;
  }

  /**
   * Records method, route, status and time until the headers of the answer. Labels have few values: requests for other paths
   * have the route `none`, other methods are `other`. Returns a promise while the request's span is being named.
   */
  answered(context: RequestContext, { status, headers }: Answer, ms: number): Promise<void> | undefined {
    const { route } = context;
    const method = METHODS.has(context.method) ? context.method : "other";
    const labels = { method, route: route ?? "none", status: String(status) };
    this.#metrics.record("preamp_http_request_duration_seconds", labels, ms / 1000);
    const run_id = headers["preamp-run-id"] ?? null;
    return this.#telemetry?.load()?.then((tracing) => tracing.nameRequest({ method, route, run_id }));
  }
}
