/** Records the duration of each request under its route, and names its span by the route. */
import type { SystemClock } from "../../process/system_clock.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import type { OpenTelemetry } from "../../telemetry/open_telemetry.ts";
import type { Middleware } from "../context.ts";

const METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);

/**
 * Records method, route, status and time until the headers of the response. Labels have few values: requests
 * for other paths have the route `none`, other methods are `other`.
 */
export function observeRequests(
  metrics: Metrics,
  telemetry: OpenTelemetry | undefined,
  clock: SystemClock,
): Middleware {
  return async (context, next) => {
    const { env } = context;
    const started = clock.monotonic();
    await next();
    const seconds = (clock.monotonic() - started) / 1000;
    const method = METHODS.has(env.method) ? env.method : "other";
    const labels = { method, route: env.route ?? "none", status: String(context.res.status) };
    const tracing = telemetry?.load();
    if (tracing) {
      const run_id = context.res.headers.get("preamp-run-id");
      (await tracing).nameRequest({ method, route: env.route, run_id });
    }
    metrics.record("preamp_http_request_duration_seconds", labels, seconds);
  };
}
